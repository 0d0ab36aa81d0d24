"""What a trained model does inside: one file for each instrument, found by name. To add one, add a file with a subclass
of `Instrument`, or install or name a plug-in (`tfstudy.tasks.plugins`).

Importing this package does not import torch; `find` does.
"""

from typing import TYPE_CHECKING, cast

from tfstudy.tasks.registry import Registry

if TYPE_CHECKING:
    from tfstudy.instruments.base import Instrument

__all__ = ["find", "names", "summary"]

# Modules that the instruments share, and attention maps, which have a record of their own. All other modules of this
# folder are instruments.
SHARED = {"attention", "base", "examples", "recorded", "untrained"}

REGISTRY = Registry("instrument", __name__, "tfstudy/instruments", SHARED)


def names() -> list[str]:
    """Return the names of all instruments, sorted."""
    return REGISTRY.names()


def find(name: str) -> "type[Instrument]":
    """Return the class of an instrument, from `tfstudy/instruments/<name>.py` or a plug-in; `UserError` without one."""
    return cast("type[Instrument]", REGISTRY.find(name))


def summary(name: str) -> str:
    """Return what an instrument measures, in one line, without importing torch unless it is a plug-in."""
    return str(REGISTRY.declared(name, "summary", ""))
