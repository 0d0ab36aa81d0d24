"""The architectures: one file each, found by its name. To add one, add a file that defines a subclass of `Model`.

Importing this package does not import torch; `find` does.
"""

import ast
import importlib
import inspect
import pkgutil
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from tasks.errors import UserError, one_of

if TYPE_CHECKING:
    from tfstudy.models.base import Model

__all__ = ["declared_version", "find", "names"]

PARTS = {"attention", "base", "config", "positions", "ragged"}  # files of this folder that are no architecture


def names() -> list[str]:
    """The names of all architectures, sorted."""
    return sorted(m.name for m in pkgutil.iter_modules(__path__) if m.name not in PARTS)


def find(name: str) -> "type[Model]":
    """The model class of `tfstudy/models/<name>.py`; `UserError` if there is no such file."""
    one_of("architecture", name, names())
    from tfstudy.models.base import Model

    module = importlib.import_module(f"tfstudy.models.{name}")
    found = [
        value
        for value in vars(module).values()
        if inspect.isclass(value) and issubclass(value, Model) and value.__module__ == module.__name__
    ]
    if len(found) != 1:
        raise UserError(f"tfstudy/models/{name}.py must define one subclass of Model, but defines {len(found)}")
    return found[0]


def declared_version(name: str) -> int:
    """Return the `version` of an architecture. If its file is not imported yet, read it there without importing torch.

    `UserError` if there is no such architecture.
    """
    one_of("architecture", name, names())
    spec = find_spec(f"tfstudy.models.{name}")
    if f"tfstudy.models.{name}" in sys.modules or not (spec and spec.origin):
        return find(name).version
    tree = ast.parse(Path(spec.origin).read_text(encoding="utf-8"))
    for node in (node for cls in tree.body if isinstance(cls, ast.ClassDef) for node in cls.body):
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        if any(isinstance(target, ast.Name) and target.id == "version" for target in targets):
            return int(ast.literal_eval(node.value))  # type: ignore[attr-defined]
    return 1
