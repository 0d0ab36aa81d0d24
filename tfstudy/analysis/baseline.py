"""Whether the results of a study got worse: a saved table compared with the current records, as a check in CI.

The baseline is a table as JSON (`tfstudy table STUDY --format json > baseline.json`). A condition is worse if its
metric dropped by more than the tolerance and the drop is significant over seeds, by the q value: p adjusted for the
number of conditions (Benjamini & Hochberg 1995).
Seeds are paired: a seed gives the same initial weights and order of training in both. A run that diverged counts as 0.
A condition with fewer seeds than in the baseline counts as missing. A test needs two seeds.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, NamedTuple

import msgspec

from tfstudy.analysis import labels
from tfstudy.analysis.labels import Condition
from tfstudy.analysis.stats import ALPHA, Difference, compare, q_values
from tfstudy.analysis.summary import NAMES
from tfstudy.errors import UserError
from tfstudy.runs.files import BrokenError, read_plain

MAX_BYTES = 64 << 20  # of a saved table
# unchanged: the whole interval lies within the tolerance
STATES = WORSE, MISSING, UNTESTED, OPEN, BETTER, UNCHANGED = (
    "worse", "missing", "too few seeds", "open", "better", "unchanged",
)  # fmt: skip
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


class Outcome(NamedTuple):
    """A row of the baseline compared with the current records."""

    baseline: BaselineRow
    state: str
    current: Mapping[int, float] = {}  # results by seed
    difference: Difference | None = None  # current minus baseline, in points
    q: float = math.nan  # of its p, adjusted for all rows
    reason: str = ""


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


def check(baseline: Sequence[BaselineRow], rows: Sequence[Condition], tolerance: float) -> list[Outcome]:
    """Return the outcome of each row of the baseline; `tolerance` in points. `UserError` if none could be tested."""
    found = [_compare(row, rows) for row in baseline]
    q = q_values([one.difference.p if one.difference else math.nan for one in found])
    outcomes = []
    for one, own_q in zip(found, q, strict=True):
        state, reason, total = one.state, one.reason, len(one.baseline.each_seed)
        if one.difference and own_q < ALPHA and abs(one.difference.mean) > tolerance:
            state = WORSE if one.difference.mean < 0 else BETTER
        elif one.difference and -tolerance <= one.difference.low and one.difference.high <= tolerance:
            state = UNCHANGED
        if one.current and (missing := len(one.baseline.each_seed.keys() - one.current.keys())):
            # a drop stays one if seeds are missing
            count, state = (total - missing, WORSE) if state == WORSE else (missing, MISSING)
            reason = f"{count} of the baseline's {total} seeds"
        outcomes.append(one._replace(state=state, reason=reason, q=float(own_q)))
    if all(one.state in (MISSING, UNTESTED) for one in found):
        reasons = Counter(f"{one.state}: {one.reason}" for one in outcomes)
        listed = "; ".join(f"{reason} ({count} of {len(outcomes)} conditions)" for reason, count in reasons.items())
        raise UserError(f"nothing could be checked: {listed}")
    return outcomes


def _compare(row: BaselineRow, conditions: Sequence[Condition]) -> Outcome:
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
        return Outcome(row, MISSING, reason=f"{len(candidates) or 'no'} current {have} this name")
    [condition] = candidates
    if counts := condition.counts - {row.examples}:
        return Outcome(row, MISSING, reason=f"{row.examples} examples in the baseline, {max(counts)} now")
    current = condition.values.get(row.metric, {}) | {run.result.seed: 0.0 for run in condition.diverged}
    if not current:
        return Outcome(row, MISSING, reason=f"{row.metric} was not measured")
    shared = sorted(current.keys() & row.each_seed.keys())
    ours, theirs = ([own[seed] for seed in shared] for own in (current, row.each_seed))
    if len(shared) < 2:
        return Outcome(row, UNTESTED, current, reason="a test needs 2")
    if ours == theirs:
        return Outcome(row, UNCHANGED, current)
    return Outcome(row, OPEN, current, compare(ours, theirs, True, 100 / max(row.examples, 1)))
