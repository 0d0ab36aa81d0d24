"""Measure several finished runs with one instrument."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tfstudy import instruments
from tfstudy.config.resolve import resolve_section
from tfstudy.experiment.finished import load
from tfstudy.runs.measurement_record import Measurement
from tfstudy.runs.schema import Result
from tfstudy.tasks.errors import UserError

Measured = tuple[Path, Result, Measurement]


def measure_runs(
    paths: Sequence[Path], instrument: str, settings: Mapping[str, Any], save: bool = False, online: bool = False
) -> tuple[list[Measured], list[str]]:
    """Return the measurement of each run, and a note on each run that is left out, with the reason.

    `UserError` for an unknown instrument or setting, or if no run is measured.
    """
    resolve_section(instruments.find(instrument).Config, dict(settings))
    measured: list[Measured] = []
    notes: list[str] = []
    for number, path in enumerate(paths, 1):
        if len(paths) > 1:
            print(f"{number} of {len(paths)}: {path}", flush=True)
        try:
            run = load(path, online=online)
            measured.append((path, run.result, run.measure(instrument, save, **settings)))
        except UserError as error:
            notes.append(f"{path}: {error}" if len(paths) > 1 else str(error))
    if not measured:
        raise UserError("\n".join(notes))
    return measured, [f"left out: {note}" for note in notes]
