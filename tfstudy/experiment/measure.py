"""Measure a finished run with an instrument."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tfstudy import instruments
from tfstudy.config.resolve import resolve_section
from tfstudy.errors import UserError
from tfstudy.experiment.prepare import Prepared
from tfstudy.instruments.base import Subject
from tfstudy.instruments.examples import ExampleSettings, chosen_examples, split_of
from tfstudy.runs.files import command_again
from tfstudy.runs.measurement_record import Measurement, read_measurement, saved_instruments
from tfstudy.runs.reader import read_result
from tfstudy.runs.writer import open_run


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
