"""The folder `configs/`, and YAML read within bounds of size and depth. Imports no torch."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any, ClassVar

import yaml

from tfstudy.errors import UserError, quoted

MAX_BYTES = 1 << 20
MAX_DEPTH = 64  # of lists and mappings within each other
MAX_VALUES = 100_000  # with every alias replaced by what it stands for
MAX_DIGITS = 40  # of an integer


class SyntaxUserError(UserError):
    """Text that is not YAML."""


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """Reads numbers, booleans, null and text, but no dates: a config has none, and 2020-02-30 is a name."""

    yaml_implicit_resolvers: ClassVar = {
        first: [(tag, pattern) for tag, pattern in resolvers if not tag.endswith(":timestamp")]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }

    def integer(self, node: yaml.ScalarNode) -> int:
        """Return an integer, which may not be too long to be shown."""
        if len(node.value) > MAX_DIGITS:
            raise ValueError(f"an integer has more than {MAX_DIGITS} digits")
        return int(self.construct_yaml_int(node))


_Loader.add_constructor("tag:yaml.org,2002:int", _Loader.integer)


def configs() -> Path:
    """Return the folder `configs/`: next to the package in a checkout, inside the package in an installed wheel."""
    package = Path(__file__).parents[1]
    inside = package / "configs"
    return inside if inside.is_dir() else package.parent / "configs"


def read_yaml(path: Path, what: str = "") -> dict[str, Any]:
    """Return the mapping that a YAML file holds; `UserError` with the file and the line if it holds something else.

    `what` names the file in messages; the default is its path.
    """
    what = what or quoted(path, limit=300, marks="")
    try:
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise UserError(f"can't read {what}: {error.strerror}") from None
    return yaml_sections(content, what)


def yaml_sections(content: bytes, what: str) -> dict[str, Any]:
    """Return the mapping that a YAML document holds; `UserError` with its name if it holds something else."""
    tree = parse_yaml(content, what)
    if not isinstance(tree, dict):
        raise UserError(f"{what} must contain sections such as 'train:', but contains {quoted(tree)}")
    return tree


def parse_yaml(text: str | bytes, what: str) -> Any:
    """Return the value of a YAML document: mappings, lists, text, numbers, booleans and None.

    `UserError` if it is larger or deeper than the bounds of this module, or has explicit tags; `SyntaxUserError` if it
    is not YAML. `what` names the text in the message.
    """
    if len(text) > MAX_BYTES:
        raise UserError(f"{what} is too large: at most {MAX_BYTES:,} bytes are read")
    try:
        if isinstance(text, bytes):
            text = text.decode()
        _check_bounds(yaml.parse(text, _Loader), what)
        return _Loader(text).get_single_data()
    except (yaml.YAMLError, ValueError) as error:  # a ValueError: wrong encoding, or a long integer
        reason = quoted(" ".join(str(error).split()), limit=200, marks="")
        raise SyntaxUserError(f"{what} is not valid YAML: {reason}") from None


def _check_bounds(events: Iterable[Any], what: str) -> None:
    """`UserError` for a document that is too deep or, with its aliases replaced, too large."""
    total = 0
    opened: list[tuple[str | None, int]] = []  # of each open list or mapping, its anchor and the values before it
    sizes: dict[str | None, int] = {}  # of the value of each anchor
    for event in events:
        if isinstance(event, yaml.AliasEvent):
            if event.anchor not in sizes:
                raise UserError(f"{what}: the alias {quoted(event.anchor)} has no complete value before it")
            total += sizes[event.anchor]
        elif isinstance(event, yaml.ScalarEvent | yaml.CollectionStartEvent):
            total += 1
            if event.tag:
                raise UserError(f"{what} must not have tags, but has {quoted(event.tag)}")
            if isinstance(event, yaml.ScalarEvent):
                sizes[event.anchor] = 1
            else:
                opened.append((event.anchor, total))
        elif isinstance(event, yaml.CollectionEndEvent):
            anchor, before = opened.pop()
            sizes[anchor] = total - before + 1
        if len(opened) > MAX_DEPTH:
            raise UserError(f"{what} is too deeply nested: at most {MAX_DEPTH} levels are read")
        if total > MAX_VALUES:
            raise UserError(f"{what} is too large: at most {MAX_VALUES:,} values are read, aliases included")
