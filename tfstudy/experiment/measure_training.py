"""Measure a run with instruments that listen to its training."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tfstudy.config.schema import RunConfig
from tfstudy.instruments.during_training import Listener, listener, measurement
from tfstudy.runs.measurement_record import save_measurement, saved_instruments
from tfstudy.runs.writer import RunFolder
from tfstudy.tasks.errors import UserError


def listeners_of(names: Iterable[str], config: RunConfig, checkpoint: Mapping[str, Any] | None) -> list[Listener]:
    """Return the listeners of a run, with their rows so far: those of these names, and those of its checkpoint.

    `UserError` if the steps up to the checkpoint were trained without one of them.
    """
    callbacks = checkpoint["callbacks"] if checkpoint else {}
    measured = [key.removeprefix(Listener.state_key) for key in callbacks if key.startswith(Listener.state_key)]
    if checkpoint and (missing := next((name for name in names if name not in measured), "")):
        raise UserError(f"--measure {missing}: {_trained(checkpoint['global_step'])}")
    found = [listener(name, config) for name in dict.fromkeys([*names, *measured])]
    for one in found:
        if state := callbacks.get(one.state_key):
            one.load_state_dict(state)
    return found


def check_measured(names: Sequence[str], folder: RunFolder) -> None:
    """`UserError` if a finished run was not measured with all these instruments."""
    saved = saved_instruments(folder.path)
    if missing := next((name for name in names if name not in saved), ""):
        raise UserError(f"--measure {missing}: {_trained(folder.result.step)}")


def save_rows(listeners: Sequence[Listener], folder: RunFolder) -> None:
    """Write what the listeners measured to the run folder."""
    for one in listeners:
        if one.rows:
            save_measurement(folder.path, measurement(one, folder.run))


def _trained(steps: int) -> str:
    return f"the run already has {steps} steps that were not measured; --restart runs it again"
