"""What a trained model does inside: one file for each instrument, found by name. To add one, add a file with a subclass
of `Instrument`, or install or name a plug-in (`tfstudy.plugins`).

Importing this package does not import torch; `find` does.
"""

from typing import TYPE_CHECKING, cast

from tfstudy.errors import UserError, one_of
from tfstudy.plugins import command
from tfstudy.registry import Registry

if TYPE_CHECKING:
    from tfstudy.instruments.base import Instrument

__all__ = ["find", "known_in_training", "names", "parse_in_training", "summary"]

SHARED = {"base", "during_training", "examples", "hooks"}  # all other modules of this folder are instruments
REGISTRY = Registry("instrument", __name__, "tfstudy/instruments", SHARED)
names = REGISTRY.names


def find(name: str) -> "type[Instrument]":
    """Return the class of an instrument, from `tfstudy/instruments/<name>.py` or a plug-in; `UserError` without one."""
    return cast("type[Instrument]", REGISTRY.find(name))


def summary(name: str) -> str:
    """Return what an instrument measures, in one line, without importing torch unless it is a plug-in."""
    return str(REGISTRY.declared(name, "summary", ""))


def known_in_training(name: str) -> str:
    """Return the name of an instrument that measures during training; `UserError` if there is none of this name."""
    every = names()
    listening = [one for one in every if REGISTRY.declared(one, "during_training", False)]
    if name in every and name not in listening:
        raise UserError(
            f"{name} measures finished runs (`{command('measure', 'RUN', name)}`); "
            f"--measure takes {', '.join(listening)}"
        )
    return one_of("instrument for training", name, listening)


def parse_in_training(text: str) -> tuple[str, ...]:
    """Return the instruments of `layer_gradients,other`; `UserError` for one that does not measure during training."""
    return tuple(dict.fromkeys(known_in_training(part.strip()) for part in text.split(",") if part.strip()))
