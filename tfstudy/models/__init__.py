"""The architectures, each in a file of its own and found by name. To add one, add a file with a subclass of `Model`.

Importing this package does not import torch; `find` does.
"""

import ast
import importlib
import inspect
import pkgutil
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tfstudy.tasks.errors import UserError, one_of

if TYPE_CHECKING:
    from tfstudy.models.base import Model

__all__ = ["declared", "find", "names"]

# Modules that the architectures share. All other modules of this folder are architectures.
SHARED = {"attention", "base", "cache", "chunks", "config", "layers", "positions", "ragged", "source_attention"}


def names() -> list[str]:
    """Return the names of all architectures, sorted."""
    return sorted(module.name for module in pkgutil.iter_modules(__path__) if module.name not in SHARED)


def find(name: str) -> "type[Model]":
    """Return the architecture of `tfstudy/models/<name>.py`; `UserError` if the file does not define exactly one."""
    one_of("architecture", name, names())
    from tfstudy.models.base import Model

    module = importlib.import_module(f"tfstudy.models.{name}")
    classes = [
        value
        for value in vars(module).values()
        if inspect.isclass(value) and issubclass(value, Model) and value.__module__ == module.__name__
    ]
    if len(classes) != 1:
        raise UserError(f"tfstudy/models/{name}.py must define one subclass of Model, but defines {len(classes)}")
    return classes[0]


def declared(name: str, attribute: str, default: Any) -> Any:
    """Return a class attribute of an architecture, read from its file without importing torch; else the default.

    The attribute must be written as a literal. `UserError` if there is no such architecture.
    """
    one_of("architecture", name, names())
    spec = find_spec(f"tfstudy.models.{name}")
    if f"tfstudy.models.{name}" in sys.modules or not (spec and spec.origin):
        return getattr(find(name), attribute)
    tree = ast.parse(Path(spec.origin).read_text(encoding="utf-8"))
    for node in (node for cls in tree.body if isinstance(cls, ast.ClassDef) for node in cls.body):
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        if any(isinstance(target, ast.Name) and target.id == attribute for target in targets):
            return ast.literal_eval(node.value)  # type: ignore[attr-defined]
    return default
