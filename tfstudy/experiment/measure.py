"""Measure a run with instruments: once it is finished, or while it is trained."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tfstudy import instruments
from tfstudy.config.resolve import resolve_section
from tfstudy.config.schema import RunConfig
from tfstudy.errors import UserError
from tfstudy.experiment.prepare import Prepared
from tfstudy.instruments.base import Subject
from tfstudy.instruments.during_training import Listener, listener, measurement
from tfstudy.instruments.examples import ExampleSettings, chosen_examples, split_of
from tfstudy.runs.files import command_again
from tfstudy.runs.measurement_record import Measurement, read_measurement, save_measurement, saved_instruments
from tfstudy.runs.reader import read_result
from tfstudy.runs.writer import RunFolder, open_run


def measure_run(prepared: Prepared, path: Path, name: str, settings: Mapping[str, Any]) -> Measurement:
    """Return what an instrument measures on the run in this folder.

    If it reads a test set, this is counted in `test_reads.csv`. `UserError` for an unknown instrument, unknown settings
    or a split that the task does not have, and if the instrument does not apply to this model. What is measured during
    training is read from the run folder.
    """
    cls = instruments.find(name)
    if cls.during_training:
        return recorded(path, name)
    config = resolve_section(cls.Config, dict(settings))
    subject = Subject(prepared.model.eval(), prepared.task, prepared.data, prepared.config)
    if isinstance(config, ExampleSettings):
        config = config.model_copy(update={"split": split_of(subject, config)})
    instrument = cls(config)
    rows, note = instrument.measure(subject), instrument.note(subject)
    if isinstance(config, ExampleSettings) and config.split in prepared.task.splits().tests:
        with open_run(path, prepared.config, prepared.identity) as folder:
            folder.count_read(config.split, f"measure {name}")
    examples = len(chosen_examples(subject, config)) if isinstance(config, ExampleSettings) else 0
    settings = config.model_dump()
    return Measurement.of(prepared.identity.hash, name, cls.version, settings, cls.chart, rows, note, examples)


def recorded(path: Path, name: str) -> Measurement:
    """Return what an instrument measured while the run was trained; `UserError` if the run was trained without it."""
    if name not in saved_instruments(path):
        again = command_again(path, read_result(path).smoke, f" --measure {name}")
        raise UserError(f"{path} was trained without {name}; `{again}` trains it again")
    return read_measurement(path, name)


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
