"""What an instrument measured on the runs of a condition, as one number for each seed."""

from collections.abc import Callable, Sequence
from statistics import fmean

from tfstudy.analysis.conditions import Condition
from tfstudy.analysis.statements import ROWS, TAKE, Selector
from tfstudy.runs.measurement_record import read_measurement, saved_instruments
from tfstudy.tasks.errors import UserError

TAKES: dict[str, Callable[[Sequence[float]], float]] = {"mean": fmean, "max": max, "min": min}


def instrument_values(condition: Condition, instrument: str, selector: Selector) -> dict[int, float]:
    """Return the number of each run with a saved measurement, by seed: of the rows that a selector chooses.

    `UserError` if the instrument has no such column, or if runs were measured with different settings.
    """
    wanted = {key.removeprefix(ROWS): value for key, value in selector.items() if key.startswith(ROWS) and key != TAKE}
    take = TAKES[selector.get(TAKE, "mean")]
    values: dict[int, float] = {}
    digests: set[str] = set()
    for run in condition.runs:
        if instrument not in saved_instruments(run.path):
            continue
        measured = read_measurement(run.path, instrument)
        digests.add(measured.digest)
        wanted = {
            key.removeprefix(ROWS): value for key, value in selector.items() if key.startswith(ROWS) and key != TAKE
        }
        for column in wanted.keys() - measured.columns.keys():
            raise UserError(f"{instrument} has no column '{column}'; its columns are {', '.join(measured.columns)}")
        rows = [row for row in measured.rows() if all(row[key] == value for key, value in wanted.items())]
        if rows:
            values[run.result.seed] = take([float(row[measured.chart.value]) for row in rows])
    if len(digests) > 1:
        raise UserError(f"{condition.label}: runs were measured by {instrument} with different settings")
    return values
