"""The tasks, architectures or instruments by name: those of this package, one per file, and those of plug-ins."""

import ast
import importlib
import os
import pkgutil
import sys
from collections.abc import Set
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from tfstudy import plugins
from tfstudy.errors import UserError, one_of, similar
from tfstudy.plugins import BASES, Plugin


class Registry:
    """The classes of one kind, found by name.

    A plug-in may not have the name of another class. A clash of a file, which the user named, is refused at once; a
    clash of an installed package is refused when the name is used, so that it stands in the way of nothing else.
    """

    def __init__(self, kind: str, package: str, folder: str, shared: Set[str]) -> None:
        self.kind, self.package, self.folder = kind, package, folder
        self.shared = shared  # modules of the package that define no class of this kind

    def built_in(self) -> list[str]:
        """Return the names of the modules of the package, sorted."""
        folders = sys.modules[self.package].__path__
        modules = (name for folder in folders for name in _modules(folder, os.stat(folder).st_mtime_ns))
        return sorted({*modules} - self.shared)

    def names(self) -> list[str]:
        """Return the names of all classes, sorted, plug-ins included. No entry point is imported."""
        return sorted({*self.built_in(), *(plugin.name for plugin in self._plugins())})

    def known(self, name: str) -> str:
        """Return the name if there is such a class; otherwise raise `UserError` with the nearest name."""
        names = self.names()
        try:
            return one_of(self.kind, name, names)
        except UserError as error:
            hint = "; if it is a plug-in's, add --plugin FILE.py (in Python: tfstudy.plugins.add)"
            raise UserError(f"{error}{'' if similar(name, names) else hint}") from None

    def plugin(self, name: str) -> Plugin | None:
        """Return the plug-in of this name; None if it is built in. `UserError` if there is no such name, or two."""
        self.known(name)
        self._check_clash(name, plugins := self._plugins())
        return next((plugin for plugin in plugins if plugin.name == name), None)

    def find(self, name: str) -> type:
        """Return the class of this name; `UserError` if there is none, or if its file does not define exactly one."""
        if plugin := self.plugin(name):
            return _complete(plugin.load(), plugin.origin)
        module = importlib.import_module(f"{self.package}.{name}")
        classes = plugins.defined_in(module, self.kind)
        if len(classes) != 1:
            raise UserError(self._wrong_number(name, len(classes)))
        return _complete(classes[0], f"{self.folder}/{name}.py")

    def declared(self, name: str, attribute: str, default: Any) -> Any:
        """Return a class attribute of a class, read from its file without importing it; else the default.

        The attribute must be written as a literal. `UserError` if there is no such class.
        """
        module = f"{self.package}.{name}"
        spec = None if self.plugin(name) else find_spec(module)
        if module in sys.modules or not (spec and spec.origin):
            return getattr(self.find(name), attribute, default)
        tree = ast.parse(Path(spec.origin).read_text(encoding="utf-8"))
        for node in (node for cls in tree.body if isinstance(cls, ast.ClassDef) for node in cls.body):
            targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
            if any(isinstance(target, ast.Name) and target.id == attribute for target in targets):
                return ast.literal_eval(node.value)  # type: ignore[attr-defined]
        return default

    def _wrong_number(self, name: str, count: int) -> str:
        return f"{self.folder}/{name}.py must define one subclass of {BASES[self.kind][1]}, but defines {count}"

    def _plugins(self) -> list[Plugin]:
        files, installed = plugins.from_files(self.kind), plugins.installed(self.kind)
        for plugin in files:
            self._check_clash(plugin.name, [*files, *installed])
        return [*files, *installed]

    def _check_clash(self, name: str, found: list[Plugin]) -> None:
        origins = [f"{self.folder}/{name}.py"] if name in self.built_in() else []
        origins += [plugin.origin for plugin in found if plugin.name == name]
        own = [Path(folder, f"{name}.py").resolve() for folder in sys.modules[self.package].__path__]
        if any(Path(plugin.origin) in own for plugin in found if plugin.name == name):
            raise UserError(f"{self.folder}/{name}.py is already part of this checkout: leave out --plugin")
        if len(origins) > 1:
            raise UserError(f"two plug-ins or files define the {self.kind} '{name}': {' and '.join(origins)}")


@lru_cache(maxsize=32)
def _modules(folder: str, modified: int) -> tuple[str, ...]:
    """Return the names of the modules in a folder, which is listed once per version: tables ask for each condition."""
    return tuple(module.name for module in pkgutil.iter_modules([folder]))


def _complete(cls: type, origin: str) -> type:
    """Return the class if it defines all that its base class asks for; `UserError` with what is missing if not."""
    if missing := sorted(getattr(cls, "__abstractmethods__", ())):
        raise UserError(f"{cls.__name__} in {origin} must define {', '.join(missing)}")
    return cls
