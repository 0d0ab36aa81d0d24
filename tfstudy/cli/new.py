"""`tfstudy new`: the files of a new task or architecture, to begin with."""

import keyword
import re
import sys
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Annotated

import typer

from tfstudy.cli.command_group import SHARE
from tfstudy.cli.options import app, some_path

if TYPE_CHECKING:
    from tfstudy.registry import Registry

TEMPLATES = Path(__file__).parent / "templates"
KINDS = ("task", "architecture")
NAME = re.compile(r"[a-z][a-z0-9_]{0,40}")
PACKAGES = {"task": "tfstudy.tasks", "architecture": "tfstudy.models"}
LOADED = """from pathlib import Path

from tfstudy.testing import check_{kind}, load_plugin

{cls} = load_plugin(Path(__file__).with_name("{name}.py"))"""
FOUND = """from {package}.{name} import {cls}
from tfstudy.testing import check_{kind}"""


@app.command(rich_help_panel=SHARE)
def new(
    kind: Annotated[str, typer.Argument(metavar="task|architecture", help="What to write.")],
    name: Annotated[str, typer.Argument(metavar="NAME", help="Its name, such as my_task, which is that of its file.")],
    out: Annotated[
        Path | None,
        typer.Option(parser=some_path, metavar="PATH", help="Folder for a plug-in (default: this checkout or folder)."),
    ] = None,
) -> None:
    """Write the files of a new task or architecture.

    In a checkout of tfstudy they become a part of it. Elsewhere, or with --out, they are a file for --plugin. The task
    reverses strings and the architecture is a GRU: both work at once, and are there to be edited.
    """
    from tfstudy.errors import UserError, one_of, quoted

    one_of("kind", kind, KINDS)
    _check_name(kind, name)
    checkout = None if out else _checkout()
    files = _in_checkout(kind, name, checkout) if checkout else _as_plugin(kind, name, out or Path())
    for path in files:
        if path.exists():
            raise UserError(f"{quoted(path, 300, '')} exists already; nothing was written")
    _check_module(kind, name)
    _write(files)
    for path in files:
        print(path)
    print("\n".join(["", "Next:", *_next_steps(kind, name, list(files), bool(checkout))]))


def _check_name(kind: str, name: str) -> None:
    """`UserError` for a name that is taken or that Python could not import."""
    from tfstudy.errors import UserError, quoted

    if not NAME.fullmatch(name) or keyword.iskeyword(name) or name.startswith("test_"):
        raise UserError(
            f"the name must be a name in Python such as my_{kind}, of small letters, digits and '_' and not a keyword, "
            f"but is {quoted(name)}"
        )
    if name in _registry(kind).names():
        raise UserError(f"there is {'an' if kind[0] in 'aeiou' else 'a'} {kind} '{name}' already; choose another name")


def _check_module(kind: str, name: str) -> None:
    """`UserError` for the name of another module, which the file would hide, or be hidden by."""
    from importlib.util import find_spec

    from tfstudy.errors import UserError

    registry = _registry(kind)
    if name in registry.shared or name in sys.stdlib_module_names or find_spec(name):
        raise UserError(f"'{name}' is the name of a module of Python, tfstudy or an installed package; choose another")


def _registry(kind: str) -> "Registry":
    from tfstudy import models, tasks

    return tasks.get_registry() if kind == "task" else models.REGISTRY


def _checkout() -> Path | None:
    """The folder of the checkout that this code is from, if the working folder is in it."""
    root = Path(__file__).resolve().parents[2]
    is_checkout = (root / "tests" / "tasks").is_dir() and (root / "configs" / "presets").is_dir()
    return root if is_checkout and Path.cwd().resolve().is_relative_to(root) else None


def _in_checkout(kind: str, name: str, root: Path) -> dict[Path, str]:
    """The files of a part of tfstudy: path to content."""
    code, presets, test = _rendered(kind, name, FOUND)
    if kind == "architecture":
        return {root / "tfstudy/models" / f"{name}.py": code, root / "tests/models" / f"test_{name}.py": test}
    return {
        root / "tasks" / f"{name}.py": code,
        root / "configs/presets" / f"{name}.yaml": presets,
        root / "tests/tasks" / f"test_{name}.py": test,
    }


def _as_plugin(kind: str, name: str, folder: Path) -> dict[Path, str]:
    """The files of a plug-in: path to content."""
    code, presets, test = _rendered(kind, name, LOADED)
    files = {folder / f"{name}.py": _with_installed_imports(code), folder / f"test_{name}.py": test}
    return files | ({folder / f"{name}.presets.yaml": presets} if kind == "task" else {})


def _with_installed_imports(code: str) -> str:
    """The code with the imports of tfstudy among those of other packages, as ruff sorts them where it is installed."""
    found = re.search(r"((?:^(?:import|from) .*\n)+)\n((?:^from tfstudy\..*\n)+)", code, re.MULTILINE)
    lines = (found[1] + found[2]).splitlines(keepends=True) if found else []
    ordered = sorted(lines, key=lambda line: (line.startswith("from"), line.split()[1]))
    return code.replace(found[0], "".join(ordered), 1) if found else code


def _rendered(kind: str, name: str, imports: str) -> tuple[str, str, str]:
    """The module, the presets and the test."""
    code = (TEMPLATES / f"{kind}.py.txt").read_text(encoding="utf-8")
    cls = "".join(part.capitalize() for part in name.split("_"))
    if re.search(rf"\b{cls}\b", code):  # such as Task, which the module imports
        cls += kind.capitalize()
    header = imports.format(kind=kind, name=name, cls=cls, package=PACKAGES[kind])
    values = {"name": name, "Class": cls, "imports": header}
    presets = (TEMPLATES / "task.presets.yaml.txt").read_text(encoding="utf-8")
    test = (TEMPLATES / f"test_{kind}.py.txt").read_text(encoding="utf-8")
    module, given, tested = (Template(text).substitute(values) for text in (code, presets, test))
    return module, given, tested


def _write(files: dict[Path, str]) -> None:
    """Write all files, or none. `UserError` if one exists."""
    from tfstudy.errors import UserError, quoted

    written: list[Path] = []
    try:
        for path, text in files.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("x", encoding="utf-8") as file:
                written.append(path)
                file.write(text)
    except BaseException as error:
        for path in written:
            path.unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise UserError(f"can't write {quoted(path, 300, '')}: {error.strerror}; nothing was written") from None
        raise


def _next_steps(kind: str, name: str, files: list[Path], in_checkout: bool) -> list[str]:
    """What to type next, with what it does."""
    code, tests = files[0], next(path for path in files if path.name.startswith("test_"))
    plugin = "" if in_checkout else f" --plugin {code}"
    words = f"run {name}" if kind == "task" else f"run scan --arch {name}"
    steps = [
        (f"edit {code}", ""),
        (f"tfstudy {words} --smoke{plugin}", "a few steps, end to end"),
        (f"python -m pytest {tests}", "its test"),
        (f"tfstudy {words}{plugin}", "train and evaluate it"),
    ]
    if in_checkout:
        steps += [("python -m tests.config.golden_defaults", "record its defaults, which tests then guard")]
    width = max(len(step) for step, _ in steps)
    return [f"  {step:{width}}  # {does}" if does else f"  {step}" for step, does in steps]
