"""The architectures: one file each, found by its name. To add one, add a file that defines a subclass of `Model`."""

import importlib
import inspect
import pkgutil

from tasks.errors import UserError, one_of
from tfstudy.models.base import Model

__all__ = ["Model", "find", "names"]

PARTS = {"attention", "base", "config", "positions", "ragged"}  # files of this folder that are no architecture


def names() -> list[str]:
    """The names of all architectures, sorted."""
    return sorted(m.name for m in pkgutil.iter_modules(__path__) if m.name not in PARTS)


def find(name: str) -> type[Model]:
    """The model class of `tfstudy/models/<name>.py`; `UserError` if there is no such file."""
    one_of("arch", name, names())
    module = importlib.import_module(f"tfstudy.models.{name}")
    found = [
        value
        for value in vars(module).values()
        if inspect.isclass(value) and issubclass(value, Model) and value.__module__ == module.__name__
    ]
    if len(found) != 1:
        raise UserError(f"tfstudy/models/{name}.py must define one subclass of Model, but defines {len(found)}")
    return found[0]
