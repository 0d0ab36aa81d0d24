"""Measure several finished runs with one instrument."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tfstudy import instruments
from tfstudy.config.resolve import resolve_section
from tfstudy.errors import UserError, one_of
from tfstudy.experiment.finished import load
from tfstudy.instruments.base import Instrument
from tfstudy.runs.measurement_record import KINDS, Measurement, read_measurement, settings_digest
from tfstudy.runs.reader import read_result
from tfstudy.runs.schema import Result

Measured = tuple[Path, Result, Measurement]
HASH = re.compile(r"\b[0-9a-f]{8}\b")


def measure_runs(
    paths: Sequence[Path], instrument: str, settings: Mapping[str, Any], save: bool = False, online: bool = False
) -> tuple[list[Measured], list[str]]:
    """Return the measurement of each run, and notes: which runs are left out, and which measurements are replaced.

    A measurement with these settings that is in the run folder is read from there, unless it is to be saved: then the
    run is measured again. `UserError` for an unknown instrument or setting, or if no run is measured.
    """
    cls = instruments.find(instrument)
    digest = _digest(instrument, cls, settings)
    one_of("kind of chart", cls.chart.kind, KINDS, f"the instrument {instrument}")
    measured: list[Measured] = []
    failures: list[tuple[Path, str]] = []
    replaced: Counter[str] = Counter()
    read = 0
    for number, path in enumerate(paths, 1):
        if len(paths) > 1:
            print(f"{number} of {len(paths)}: {path}", flush=True)
        try:
            before = None if cls.during_training else _saved(path, instrument)
            if before and not save and before.digest == digest:
                measured.append((path, read_result(path), before))
                read += 1
                continue
            run = load(path, online=online)
            record = run.measure(instrument, save, **settings)
            measured.append((path, run.result, record))
            if save and before and before.digest != record.digest:
                replaced[f"{instrument} with {before.shown_settings or 'no settings'}"] += 1
        except UserError as error:
            failures.append((path, str(error)))
    if not measured:
        if len(failures) == 1:
            raise UserError(failures[0][1])
        raise UserError("\n".join(_grouped(failures)) or "there is no finished run to measure")
    notes = [f"left out: {text}" for text in _grouped(failures)]
    if read:
        notes.append(f"measured before: {_count(read, 'run')}; --save measures again")
    return measured, [*notes, *(f"replaced: {text}, in {_count(n, 'run')}" for text, n in replaced.items())]


def _digest(name: str, cls: type[Instrument], settings: Mapping[str, Any]) -> str:
    """Return the digest of the instrument with these settings; `UserError` for an unknown one."""
    values = resolve_section(cls.Config, dict(settings)).model_dump()
    if values.get("split") == "":
        values["split"] = "validation"  # what the instrument takes, if the task has it
    return settings_digest(name, cls.version, values)


def _saved(path: Path, instrument: str) -> Measurement | None:
    try:
        return read_measurement(path, instrument)
    except UserError:
        return None


def _grouped(failures: Sequence[tuple[Path, str]]) -> list[str]:
    """Return a line for each reason, with the first run and the number of the others."""
    groups: dict[str, list[str]] = {}
    for path, reason in failures:
        alike = HASH.sub("", reason.replace(str(path), ""))
        groups.setdefault(alike, []).append(reason if reason.startswith(str(path)) else f"{path}: {reason}")
    return [
        first if not others else f"{first} (and {_count(len(others), 'more run')} for the same reason)"
        for first, *others in groups.values()
    ]


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'s' if number > 1 else ''}"
