"""Plug-ins: tasks, architectures and instruments of installed packages (entry points) and of files named by `--plugin`.

Nothing else is imported: no file of the working folder, and nothing that a record names. Imports no torch.
"""

import inspect
import os
import re
import shlex
import sys
import traceback
from collections.abc import Callable
from functools import cache, partial
from hashlib import sha256
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.metadata import EntryPoint, entry_points
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from types import ModuleType
from typing import NamedTuple, TypeVar, cast

from tfstudy.errors import UserError, quoted

T = TypeVar("T")
VARIABLE = "TFSTUDY_PLUGINS"  # environment variable: the files of --plugin, separated as in PATH; processes inherit it
GROUPS = {  # of entry points
    "task": "tfstudy.tasks", "architecture": "tfstudy.architectures", "instrument": "tfstudy.instruments",
}  # fmt: skip
BASES = {
    "task": ("tfstudy.tasks.base", "Task"), "architecture": ("tfstudy.models.base", "Model"),
    "instrument": ("tfstudy.instruments.base", "Instrument"),
}  # fmt: skip
NAME = re.compile(r"[A-Za-z]\w{0,63}", re.ASCII)


class Plugin(NamedTuple):
    """A task, an architecture or an instrument that is no part of tfstudy."""

    name: str
    origin: str  # the file, or the package with its version
    load: Callable[[], type]  # import it and return the class; `UserError` if that fails


def add(*paths: str | Path) -> None:
    """Use these files as plug-ins in this process and in all that it starts; `UserError` for what is no Python file.

    A file defines one task, architecture or instrument, which has the name of the file. It is imported when needed.
    """
    os.environ[VARIABLE] = os.pathsep.join(dict.fromkeys(map(str, [*files(), *map(_checked, paths)])))


def files() -> list[Path]:
    """Return the files that are plug-ins in this process."""
    return [_checked(text) for text in os.environ.get(VARIABLE, "").split(os.pathsep) if text]


def command(*words: str | Path) -> str:
    """Return a command of ours as a shell reads it: quoted where needed, with the plug-ins of this process."""
    named = [word for path in files() for word in ("--plugin", path)]
    return shlex.join(map(str, ["tfstudy", *words, *named]))


def from_files(kind: str) -> list[Plugin]:
    """Return the plug-ins of this kind that are files; `UserError` if any file can't be imported."""
    classes = {path: load_file(path) for path in files()}
    return [
        Plugin(path.stem, quoted(path, 300, ""), partial(load_file, path))
        for path, cls in classes.items()
        if is_a(cls, kind)
    ]


def installed(kind: str) -> list[Plugin]:
    """Return the plug-ins of this kind that are entry points; nothing is imported."""
    return [Plugin(e.name, _package(e), partial(_load_entry, e, kind)) for e in _entries(GROUPS[kind], tuple(sys.path))]


def is_a(cls: type, kind: str) -> bool:
    """Whether a class is of this kind. It is asked by name, since importing `Model` imports torch."""
    return any((base.__module__, base.__name__) == BASES[kind] for base in cls.__mro__)


def defined_in(module: ModuleType, kind: str) -> list[type]:
    """Return the classes of this kind that a module, or a package with its modules, defines.

    A class with two names is one class.
    """
    return [
        cls
        for cls in dict.fromkeys(value for value in vars(module).values() if inspect.isclass(value))
        if is_a(cls, kind) and f"{cls.__module__}.".startswith(f"{module.__name__}.")
    ]


@cache
def load_file(path: Path) -> type:
    """Import a file that is a plug-in and return the one class that it defines; `UserError` if that fails."""
    name = f"tfstudy_plugin_{path.stem}_{sha256(str(path).encode()).hexdigest()[:8]}"
    loader = SourceFileLoader(name, str(path))
    module = module_from_spec(cast("ModuleSpec", spec_from_loader(name, loader)))
    sys.modules[name] = module
    try:
        _guarded(partial(loader.exec_module, module), quoted(path, 300, ""), path)
    except BaseException:
        del sys.modules[name]
        raise
    classes = [cls for kind in GROUPS for cls in defined_in(module, kind)]
    if len(classes) != 1:
        bases = ", ".join(base for _, base in BASES.values())
        raise UserError(f"the plug-in {path} must define one subclass of {bases}, but defines {len(classes)}")
    return classes[0]


def source_files(cls: type) -> list[Path]:
    """Return the files with the code of a plug-in: its module, or all of the top package that the module is in.

    For a class of `pkg.sub.mod` these are the files of `pkg`, since `pkg.sub.mod` may import any of them.
    """
    module = sys.modules[cls.__module__]
    file = Path(str(module.__file__))
    if not module.__package__:
        return [file]
    depth = len(module.__package__.split("."))
    return sorted(file.parents[depth - 1].rglob("*.py"))


def presets_file(plugin: Plugin) -> Path:
    """Return the path of the presets that a plug-in may bring: `NAME.presets.yaml` beside its module."""
    module = sys.modules[plugin.load().__module__]
    return Path(str(module.__file__)).with_name(f"{plugin.name}.presets.yaml")


def _checked(text: str | Path) -> Path:
    path = Path(text).expanduser()
    if path.suffix != ".py" or not NAME.fullmatch(path.stem):
        raise UserError(f"--plugin must be a file such as mine.py, the file of the task 'mine', but is {quoted(text)}")
    if os.pathsep in str(path.absolute()):
        raise UserError(f"--plugin: the path of a plug-in must not contain '{os.pathsep}', but is {quoted(text)}")
    if not path.is_file():
        raise UserError(f"--plugin or TFSTUDY_PLUGINS: there is no file {quoted(text)}")
    return path.resolve()


@cache
def _entries(group: str, _: tuple[str, ...]) -> list[EntryPoint]:
    """The entry points of the packages on `sys.path`, whose value is an argument so that a change is noticed."""
    return sorted(entry_points(group=group))


def _package(entry: EntryPoint) -> str:
    return f"{entry.dist.name} {entry.dist.version}" if entry.dist else entry.value


def _load_entry(entry: EntryPoint, kind: str) -> type:
    what = f"{entry.name} = {entry.value} of {_package(entry)}"
    if not NAME.fullmatch(entry.name):
        raise UserError(f"the plug-in {what} needs a name such as my_{kind}")
    found: object = _guarded(entry.load, what)
    classes = defined_in(found, kind) if isinstance(found, ModuleType) else [found]
    if len(classes) == 1 and isinstance(classes[0], type) and is_a(classes[0], kind):
        return classes[0]
    raise UserError(f"the plug-in {what} must be one subclass of {BASES[kind][1]}")


def _guarded(load: Callable[[], T], what: str, path: Path | None = None) -> T:
    """Call a function that imports code of others; `UserError` with the error and its line in the file if it fails."""
    try:
        return load()
    except (Exception, SystemExit) as error:
        lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
        line = error.lineno if isinstance(error, SyntaxError) else next(reversed(lines), None)
        where = f", line {line}" if path and line else ""
        reason = error.msg if isinstance(error, SyntaxError) else quoted(error, 200, "")
        raise UserError(f"the plug-in {what} can't be imported: {type(error).__name__}{where}: {reason}") from None
