"""Measure a run with instruments that listen to its training."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tfstudy.config.schema import RunConfig
from tfstudy.errors import UserError
from tfstudy.instruments.during_training import Listener, listener, measurement
from tfstudy.runs.files import command_again
from tfstudy.runs.measurement_record import save_measurement, saved_instruments
from tfstudy.runs.writer import RunFolder


def listeners_of(
    names: Iterable[str], config: RunConfig, checkpoint: Mapping[str, Any] | None, path: Path
) -> list[Listener]:
    """Return the listeners of the run at `path`, with their rows so far: those named, and those of its checkpoint.

    `UserError` if the steps up to the checkpoint were trained without one of them.
    """
    callbacks = checkpoint["callbacks"] if checkpoint else {}
    measured = [key.removeprefix(Listener.state_key) for key in callbacks if key.startswith(Listener.state_key)]
    if checkpoint and (missing := next((name for name in names if name not in measured), "")):
        raise _unmeasured(missing, path, checkpoint["global_step"], config.smoke)
    found = [listener(name, config) for name in dict.fromkeys([*names, *measured])]
    for one in found:
        if state := callbacks.get(one.state_key):
            one.load_state_dict(state)
    return found


def check_measured(names: Sequence[str], folder: RunFolder) -> None:
    """`UserError` if a finished run was not measured with all these instruments."""
    saved = saved_instruments(folder.path)
    if missing := next((name for name in names if name not in saved), ""):
        raise _unmeasured(missing, folder.path, folder.result.step, folder.result.smoke)


def save_rows(listeners: Sequence[Listener], folder: RunFolder) -> None:
    """Write what the listeners measured to the run folder."""
    for one in listeners:
        if one.rows:
            save_measurement(folder.path, measurement(one, folder.run))


def _unmeasured(name: str, path: Path, steps: int, smoke: bool) -> UserError:
    again = command_again(path, smoke, f" --measure {name}")
    return UserError(f"{path} already has {steps} steps without --measure {name}; `{again}` trains it again")
