"""`tfstudy new`: the files of a new task or architecture, to begin with."""

import keyword
import re
import sys
from importlib.util import find_spec
from pathlib import Path
from string import Template
from typing import Annotated

import typer

from tfstudy.cli.command_line import app
from tfstudy.cli.options import some_path
from tfstudy.errors import UserError, one_of, quoted

TEMPLATES = Path(__file__).parent / "templates"
NAME = re.compile(r"[a-z][a-z0-9_]{0,40}")


@app.command()
def new(
    kind: Annotated[str, typer.Argument(metavar="task|architecture", help="What to write.")],
    name: Annotated[str, typer.Argument(metavar="NAME", help="Its name, such as my_task, which is that of its file.")],
    out: Annotated[
        Path, typer.Option(parser=some_path, metavar="PATH", help="Folder for the files.", show_default="this folder")
    ] = Path(),
) -> None:
    """Write the files of a new task or architecture.

    They are a file for --plugin, its test and, for a task, presets. The task reverses strings and the architecture is a
    GRU: both work at once, and are there to be edited.
    """
    one_of("kind", kind, ("task", "architecture"))
    _check_name(kind, name)
    code = (TEMPLATES / f"{kind}.py.txt").read_text(encoding="utf-8")
    cls = "".join(part.capitalize() for part in name.split("_"))
    if re.search(rf"\b{cls}\b", code):  # such as Task, which the module imports
        cls += kind.capitalize()
    templates = {f"{name}.py": f"{kind}.py", f"test_{name}.py": f"test_{kind}.py"}
    if kind == "task":
        templates[f"{name}.presets.yaml"] = "task.presets.yaml"
    files = {}
    for file, template in templates.items():
        text = (TEMPLATES / f"{template}.txt").read_text(encoding="utf-8")
        files[out / file] = Template(text).substitute(name=name, Class=cls)
    _write(files)
    for path in files:
        print(path)
    words = name if kind == "task" else f"scan --arch {name}"
    print(f"next: tfstudy run {words} --smoke --plugin {out / name}.py")


def _check_name(kind: str, name: str) -> None:
    """`UserError` for a name that is taken, that Python could not import, or that hides or is hidden by a module."""
    from tfstudy import models, tasks

    registry = tasks.get_registry() if kind == "task" else models.REGISTRY
    if not NAME.fullmatch(name) or keyword.iskeyword(name) or name.startswith("test_"):
        raise UserError(
            f"the name must be a name in Python such as my_{kind}, of small letters, digits and '_' and not a keyword, "
            f"but is {quoted(name)}"
        )
    if name in registry.names():
        raise UserError(f"there is {'an' if kind[0] in 'aeiou' else 'a'} {kind} '{name}' already; choose another name")
    if name in registry.shared or name in sys.stdlib_module_names or find_spec(name):
        raise UserError(f"'{name}' is the name of a module of Python, tfstudy or an installed package; choose another")


def _write(files: dict[Path, str]) -> None:
    """Write all files, or none. `UserError` if one exists or can't be written."""
    written: list[Path] = []
    try:
        for path, text in files.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("x", encoding="utf-8") as file:
                written.append(path)
                file.write(text)
    except OSError as error:
        for path in written:
            path.unlink(missing_ok=True)
        raise UserError(
            f"can't write {quoted(error.filename, 300, '')}: {error.strerror}; nothing was written"
        ) from None
