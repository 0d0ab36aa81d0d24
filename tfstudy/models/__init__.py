"""The architectures, each in a file of its own and found by name. To add one, add a file with a subclass of `Model`,
or install or name a plug-in (`tfstudy.plugins`).

Importing this package does not import torch; `find` does.
"""

from typing import TYPE_CHECKING, Any, cast

from tfstudy.plugins import Plugin
from tfstudy.registry import Registry

if TYPE_CHECKING:
    from tfstudy.models.base import Model

__all__ = ["built_in", "declared", "find", "known", "names", "plugin"]

SHARED = {"base", "config", "parts"}  # all other modules of this folder are architectures
REGISTRY = Registry("architecture", __name__, "tfstudy/models", SHARED)


def names() -> list[str]:
    """Return the names of all architectures, sorted."""
    return REGISTRY.names()


def built_in() -> list[str]:
    """Return the names of the architectures of this package, without plug-ins, sorted."""
    return REGISTRY.built_in()


def known(name: str) -> str:
    """Return the name if there is such an architecture; otherwise raise `UserError` with the nearest name."""
    return REGISTRY.known(name)


def plugin(name: str) -> Plugin | None:
    """Return the plug-in that defines the architecture; None if it is built in."""
    return REGISTRY.plugin(name)


def find(name: str) -> "type[Model]":
    """Return the class of an architecture, from `tfstudy/models/<name>.py` or a plug-in; `UserError` without one."""
    return cast("type[Model]", REGISTRY.find(name))


def declared(name: str, attribute: str, default: Any) -> Any:
    """Return a class attribute of an architecture, read from its file without importing torch; else the default.

    The attribute must be written as a literal. `UserError` if there is no such architecture.
    """
    return REGISTRY.declared(name, attribute, default)
