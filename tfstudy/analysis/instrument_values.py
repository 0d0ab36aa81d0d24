"""What an instrument measured on the runs of a condition, as one number for each seed."""

from collections.abc import Mapping, Sequence
from typing import Any

from tfstudy.analysis.conditions import Condition
from tfstudy.analysis.statements import ROWS, TAKE, TAKES, Selector
from tfstudy.errors import UserError
from tfstudy.runs.measurement_record import Measurement, Row, read_measurement, saved_instruments
from tfstudy.runs.metrics import METRIC_NAMES

DIFFERENT = "runs were measured by {} with different settings"
SHOWN = 8  # values of a column in a message


class NotMeasuredError(UserError):
    """No run of a condition was measured with an instrument."""


def instrument_values(condition: Condition, instrument: str, selector: Selector) -> dict[int, float]:
    """Return the number of each run with a saved measurement, by seed: of the rows that a selector chooses.

    Rows of a metric of test sets, such as BLEU, are shares of 1 in the record and in percent here, as everywhere else.
    `NotMeasuredError` if no run has a measurement; `UserError` if none has such a row, if a file is broken, or if runs
    were measured with different settings.
    """
    wanted = {key.removeprefix(ROWS): value for key, value in selector.items() if key.startswith(ROWS) and key != TAKE}
    found = _saved(condition, instrument)
    if not found:
        raise NotMeasuredError(f"not measured: `tfstudy measure {condition.study} {instrument} --save`")
    if len({measured.digest for _, measured in found}) > 1:
        raise UserError(DIFFERENT.format(instrument))
    numbers = {seed: [float(row[measured.chart.value]) for row in _rows(measured, wanted)] for seed, measured in found}
    if not any(numbers.values()):
        raise UserError(_no_row([measured for _, measured in found], wanted))
    take, factor = TAKES[selector.get(TAKE, "mean")], 100 if wanted.get("metric") in METRIC_NAMES else 1
    return {seed: factor * take(chosen) for seed, chosen in numbers.items() if chosen}


def check_settings(conditions: Sequence[Condition], instrument: str) -> None:
    """Raise `UserError` if runs of these conditions were measured with different settings."""
    if len({measured.digest for one in conditions for _, measured in _saved(one, instrument)}) > 1:
        raise UserError(DIFFERENT.format(instrument))


def _saved(condition: Condition, instrument: str) -> list[tuple[int, Measurement]]:
    """Return the measurements of the runs of a condition that have one, with their seeds."""
    runs = [run for run in condition.runs if instrument in saved_instruments(run.path)]
    return [(run.result.seed, read_measurement(run.path, instrument)) for run in runs]


def _rows(measured: Measurement, wanted: Mapping[str, Any]) -> list[Row]:
    for column in sorted(wanted.keys() - measured.columns.keys()):
        known = ", ".join(measured.columns)
        raise UserError(f"{measured.instrument} has no column '{column}'; its columns are {known}")
    return [row for row in measured.rows() if all(row[key] == value for key, value in wanted.items())]


def _no_row(measured: Sequence[Measurement], wanted: Mapping[str, Any]) -> str:
    """Return what is wrong with a choice of rows that no run has."""
    name = measured[0].instrument
    for column, value in wanted.items():
        known = dict.fromkeys(cell for one in measured for cell in one.columns[column])
        if value not in known:
            more = ", ..." * (len(known) > SHOWN)
            return f"{name} has no {column} '{value}', only {', '.join(map(str, [*known][:SHOWN]))}{more}"
    return f"{name} has no row with {', '.join(f'{column} {value}' for column, value in wanted.items())}"
