"""Trees of settings: nested dictionaries, merged and flattened, and read from YAML within bounds. Imports no torch."""

import re
from collections import Counter
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar

import yaml

from tfstudy.errors import UserError, quoted

Tree = dict[str, Any]
AMBIGUOUS = ("batch_size", "seed")  # the last words of keys of several sections
MAX_BYTES = 1 << 20
MAX_DEPTH = 64  # of lists and mappings within each other
MAX_DIGITS = 40  # of an integer
MAX_SECTIONS = 100  # of a config, which are parsed one by one


def merge(*trees: Tree) -> Tree:
    """Return one tree of all; later trees win, key by key within sections."""
    merged: Tree = {}
    for tree in trees:
        for key, value in tree.items():
            both = isinstance(value, dict) and isinstance(merged.get(key), dict)
            merged[key] = merge(merged[key], value) if both else value
    return merged


def flatten(tree: Mapping[str, Any], prefix: str = "") -> Tree:
    """Return `{"model": {"dim": 64}}` as `{"model.dim": 64}`; an empty section stays a value."""
    flat: Tree = {}
    for key, value in tree.items():
        section = isinstance(value, dict) and value
        flat |= flatten(value, f"{prefix}{key}.") if section else {f"{prefix}{key}": value}
    return flat


def unflatten(flat: Mapping[str, Any]) -> Tree:
    """Return `{"model.dim": 64}` as `{"model": {"dim": 64}}`; the inverse of `flatten`."""
    tree: Tree = {}
    for key, value in flat.items():
        for part in reversed(key.split(".")):
            value = {part: value}
        tree = merge(tree, value)
    return tree


def short_key(key: str) -> str:
    """Return `norm` for `model.norm`, as tables name a setting; the whole key if its last word is ambiguous."""
    word = key.rpartition(".")[2]
    return key if word in AMBIGUOUS else word


TIMESTAMP = "tag:yaml.org,2002:timestamp"
BOOLEAN = re.compile(r"(?:true|True|TRUE|false|False|FALSE)\Z")


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """Reads numbers, also 1e-3, true, false, null and text: 2020-02-30 is a name and no date, and `no` is not false."""

    yaml_implicit_resolvers: ClassVar = {
        first: [(tag, BOOLEAN if tag.endswith(":bool") else pattern) for tag, pattern in resolvers if tag != TIMESTAMP]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """Return a mapping, in which no key may occur twice: the first value would be lost."""
        for key, count in Counter(str(key.value) for key, _ in node.value).items():
            if count > 1:
                raise ValueError(f"the key {quoted(key)} occurs twice")
        found: dict[Any, Any] = super().construct_mapping(node, deep)
        return found

    def integer(self, node: yaml.ScalarNode) -> int:
        """Return an integer, which may not be too long to be shown."""
        if len(node.value) > MAX_DIGITS:
            raise ValueError(f"an integer has more than {MAX_DIGITS} digits")
        return int(self.construct_yaml_int(node))


_Loader.add_constructor("tag:yaml.org,2002:int", _Loader.integer)
EXPONENT = re.compile(r"[-+]?\d+(\.\d*)?[eE][-+]?\d+\Z")
_Loader.add_implicit_resolver("tag:yaml.org,2002:float", EXPONENT, [*"-+0123456789"])


def configs() -> Path:
    """Return the folder `configs/`: next to the package in a checkout, inside the package in an installed wheel."""
    inside = Path(__file__).parents[1] / "configs"
    return inside if inside.is_dir() else Path(__file__).parents[2] / "configs"


def read_yaml(path: Path, aliases: bool = False) -> Tree:
    """Return the mapping that a YAML file holds; `UserError` with the file and the line if it holds something else.

    `aliases` are for files of the project only.
    """
    what = quoted(path, limit=300, marks="")
    try:
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise UserError(f"can't read {what}: {error.strerror}") from None
    return yaml_sections(content, what, aliases)


def flat_yaml(content: bytes) -> Tree:
    """Return the values of a config by dotted keys such as `model.dim`; empty if it is not one.

    Sections are parsed and cached separately, since most of them are the same in the configs of many runs.
    """
    try:
        texts = re.split(r"^(?=\w)", content.decode(), maxsplit=MAX_SECTIONS, flags=re.MULTILINE)
        return {key: value for text in texts for key, value in _flat_section(text).items()}
    except (ValueError, AttributeError, UserError):
        return {}


@lru_cache(maxsize=4096)
def _flat_section(text: str) -> Tree:
    return flatten(parse_yaml(text, "config.yaml") or {})


def yaml_sections(content: bytes, what: str, aliases: bool = False) -> Tree:
    """Return the mapping that a YAML document holds; `UserError` with its name if it holds something else."""
    tree = parse_yaml(content, what, aliases)
    if not isinstance(tree, dict):
        raise UserError(f"{what} must contain sections such as 'train:', but contains {quoted(tree)}")
    return tree


def parse_yaml(text: str | bytes, what: str, aliases: bool = False) -> Any:
    """Return the value of a YAML document: mappings, lists, text, numbers, booleans and None.

    `UserError` if it is not YAML, is larger or deeper than the bounds of this module, has explicit tags, or has aliases
    where none are allowed: a few of them can stand for more values than fit into memory. `what` names the text.
    """
    if len(text) > MAX_BYTES:
        raise UserError(f"{what} is too large: at most {MAX_BYTES:,} bytes are read")
    try:
        if isinstance(text, bytes):
            text = text.decode()
        depth = 0
        for event in yaml.parse(text, _Loader):
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if depth > MAX_DEPTH:
                raise UserError(f"{what} is too deeply nested: at most {MAX_DEPTH} levels are read")
            if isinstance(event, yaml.AliasEvent) and not aliases:
                raise UserError(f"{what} must not have aliases, but has {quoted(f'*{event.anchor}')}")
            if tag := getattr(event, "tag", None):
                raise UserError(f"{what} must not have tags, but has {quoted(tag)}")
        return _Loader(text).get_single_data()
    except (yaml.YAMLError, ValueError) as error:  # a ValueError: wrong encoding, or a long integer
        reason = quoted(" ".join(str(error).split()), limit=200, marks="")
        raise UserError(f"{what} is not valid YAML: {reason}") from None
