"""What a trained model does inside: one file for each instrument, found by name. To add one, add a file with a subclass
of `Instrument`, or install or name a plug-in (`tfstudy.plugins`).

Importing this package does not import torch; `find` does.
"""

from typing import TYPE_CHECKING, cast

from tfstudy.registry import Registry

if TYPE_CHECKING:
    from tfstudy.instruments.base import Instrument

__all__ = ["find", "names", "summary"]

SHARED = {"base", "examples", "hooks"}  # all other modules of this folder are instruments
REGISTRY = Registry("instrument", __name__, "tfstudy/instruments", SHARED)
names = REGISTRY.names


def find(name: str) -> "type[Instrument]":
    """Return the class of an instrument, from `tfstudy/instruments/<name>.py` or a plug-in; `UserError` without one."""
    return cast("type[Instrument]", REGISTRY.find(name))


def summary(name: str) -> str:
    """Return what an instrument measures, in one line, without importing torch unless it is a plug-in."""
    return str(REGISTRY.declared(name, "summary", ""))
