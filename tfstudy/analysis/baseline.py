"""Whether the results of a study got worse: a saved table compared with the current records, as a check in CI.

The baseline is a table as JSON (`tfstudy table STUDY --format json > baseline.json`). A condition is worse if its
metric dropped by more than the tolerance and the drop is significant over seeds, by the q value: p adjusted for the
number of conditions (Benjamini & Hochberg 1995).
Seeds are paired: a seed gives the same initial weights and order of training in both. A run that diverged counts as 0.
A condition with fewer seeds than in the baseline counts as missing. A test needs two seeds.
"""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec

from tfstudy.analysis import labels
from tfstudy.analysis.frame import as_frame
from tfstudy.analysis.stats import ALPHA, compare, q_values
from tfstudy.analysis.summary import NAMES, Condition, rows_of
from tfstudy.errors import UserError
from tfstudy.runs.files import BrokenError, read_plain

if TYPE_CHECKING:
    import pandas as pd

MAX_BYTES = 64 << 20  # of a saved table
# unchanged: the whole interval lies within the tolerance
STATES = WORSE, MISSING, UNTESTED, OPEN, BETTER, UNCHANGED = (
    "worse", "missing", "too few seeds", "open", "better", "unchanged",
)  # fmt: skip
UNTESTED_ROW = {"reason": "", "current": {}} | dict.fromkeys(("difference", "low", "high", "p"), math.nan)
Text = Annotated[str, msgspec.Meta(pattern=r"^[^\x00-\x1f]*$")]  # what a line of a table can hold


class BaselineRow(msgspec.Struct, frozen=True):
    """A row of the saved table."""

    task: Text
    split: Text
    test: Text
    arch: Text
    preset: Text
    metric: Text
    each_seed: dict[int, Annotated[float, msgspec.Meta(ge=0, le=100)]]  # in percent
    examples: Annotated[int, msgspec.Meta(ge=0)]
    experiment: str = ""
    settings: Text = ""
    corpus: Text = ""
    tag: Text = ""
    value: Text = ""

    @property
    def name(self) -> str:
        """The row in words."""
        test = self.test if self.test != "test" else ""
        words = (self.task, self.split, self.corpus, test, self.value, self.arch, self.preset, self.settings)
        return " ".join(filter(None, words))


class Baseline(msgspec.Struct):
    """The saved table."""

    rows: list[BaselineRow]


def read_baseline(path: Path) -> list[BaselineRow]:
    """Return the rows of a saved table; `UserError` if the file is not one."""
    try:
        saved = msgspec.json.decode(read_plain(path, MAX_BYTES), type=Baseline, strict=False)
    except OSError as error:
        raise UserError(f"can't read {path}: {error.strerror}") from None
    except (BrokenError, msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        expected = "a table as printed by `tfstudy table STUDY --format json`"
        raise UserError(f"{path} is not {expected}: {error}") from None
    if not saved.rows:
        raise UserError(f"{path} has no rows, so no check could ever fail")
    return saved.rows


def check(baseline: Sequence[BaselineRow], conditions: Sequence[Condition], tolerance: float) -> "pd.DataFrame":
    """Return what became of each row of the baseline; `tolerance` in points. `UserError` if none could be tested.

    Columns: those of a row, `name`, `state` (one of `STATES`), `reason`, `current` (results by seed), `difference`
    (current minus baseline, in points) with its 95 % interval `low`, `high`, `p`, and `q` (p adjusted for all rows).
    """
    found = as_frame(UNTESTED_ROW | msgspec.structs.asdict(row) | _compare(row, conditions) for row in baseline)
    found["name"], found["q"] = [row.name for row in baseline], q_values(found["p"].to_numpy(float))
    nothing_tested = found["state"].isin([MISSING, UNTESTED]).all()
    sure = (found["q"] < ALPHA) & (found["difference"].abs() > tolerance)
    found.loc[(found["low"] >= -tolerance) & (found["high"] <= tolerance), "state"] = UNCHANGED
    found.loc[sure & (found["difference"] < 0), "state"] = WORSE
    found.loc[sure & (found["difference"] > 0), "state"] = BETTER
    for row in rows_of(found):
        lacking, total = len(row.each_seed.keys() - row.current.keys()), len(row.each_seed)
        if lacking and row.current:  # a drop stays one if seeds are missing
            left = total - lacking if row.state == WORSE else lacking
            found.loc[row.Index, "reason"] = f"{left} of the baseline's {total} seeds"
            found.loc[row.Index, "state"] = WORSE if row.state == WORSE else MISSING
    if nothing_tested:
        counts = (found["state"] + ": " + found["reason"]).value_counts(sort=False)
        listed = "; ".join(f"{reason} ({count} of {len(found)} conditions)" for reason, count in counts.items())
        raise UserError(f"nothing could be checked: {listed}")
    return found


def _compare(row: BaselineRow, conditions: Sequence[Condition]) -> dict[str, Any]:
    """Return the difference of a row that is tested (its state is open), or why it is not.

    Settings may differ from those of the baseline: they may be what changed the results.
    """
    names = (*NAMES, "test", "tag", "value")
    known = [one for one in conditions if all(getattr(one, key) == getattr(row, key) for key in names)]
    same = [one for one in known if row.experiment and one.experiment == row.experiment]
    named = [one for one in known if labels.text(one.settings, short=False) == row.settings]
    candidates = same or named or known
    if len(candidates) != 1:
        have = "conditions have" if candidates else "condition has"
        return {"state": MISSING, "reason": f"{len(candidates) or 'no'} current {have} this name"}
    [condition] = candidates
    if counts := condition.counts - {row.examples}:
        return {"state": MISSING, "reason": f"{row.examples} examples in the baseline, {max(counts)} now"}
    current = condition.values.get(row.metric, {}) | {run.result.seed: 0.0 for run in condition.diverged}
    if not current:
        return {"state": MISSING, "reason": f"{row.metric} was not measured"}
    shared = sorted(current.keys() & row.each_seed.keys())
    ours, theirs = ([own[seed] for seed in shared] for own in (current, row.each_seed))
    if len(shared) < 2:
        return {"state": UNTESTED, "reason": "a test needs 2", "current": current}
    if ours == theirs:
        return {"state": UNCHANGED, "current": current}
    tested = compare(ours, theirs, True, 100 / max(row.examples, 1))
    numbers = dict(zip(("difference", "low", "high", "p"), tested, strict=False))
    return {"state": OPEN, "current": current} | numbers
