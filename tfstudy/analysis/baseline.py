"""Whether the results of a study got worse: a saved table compared with the current records, as a check in CI.

The baseline is a table as JSON (`tfstudy table STUDY --format json > baseline.json`). A condition is worse if its
metric dropped by more than the tolerance and the drop is significant over seeds, corrected for the number of conditions
(Bonferroni).
Seeds are paired: a seed gives the same initial weights and order of training in both. A run that diverged counts as 0.
A condition with fewer seeds than in the baseline counts as missing. A test needs two seeds.
"""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, NamedTuple

import msgspec

from tfstudy.analysis import labels
from tfstudy.analysis.labels import Condition
from tfstudy.analysis.stats import ALPHA, Difference, compare, corrected, seeds_needed
from tfstudy.errors import UserError

MAX_BYTES = 64 << 20  # of a saved table
MIN_SEEDS = 2  # of a test
MAX_NAMED = 5  # conditions in an error
WORSE, MISSING, UNTESTED, UNDECIDED, BETTER, UNCHANGED = STATES = (
    "worse",
    "missing",
    "too few seeds",
    "undecided",
    "better",
    "unchanged",  # the whole interval lies within the tolerance
)
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
        return " ".join(word for word in words if word)


class Baseline(msgspec.Struct):
    """The saved table."""

    rows: list[BaselineRow]


class Outcome(NamedTuple):
    """A row of the baseline compared with the current records."""

    baseline: BaselineRow
    state: str
    current: Mapping[int, float]  # results by seed
    difference: Difference | None = None  # current minus baseline, in points
    p: float = math.nan  # corrected
    reason: str = ""


def read_baseline(path: Path) -> list[BaselineRow]:
    """Return the rows of a saved table; `UserError` if the file is not one."""
    try:
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
        if len(content) > MAX_BYTES:
            raise UserError(f"{path} is too large: at most {MAX_BYTES:,} bytes are read")
        saved = msgspec.json.decode(content, type=Baseline, strict=False)
    except OSError as error:
        raise UserError(f"can't read {path}: {error.strerror}") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        expected = "a table as printed by `tfstudy table STUDY --format json`"
        raise UserError(f"{path} is not {expected}: {error}") from None
    if not saved.rows:
        raise UserError(f"{path} has no rows, so no check could ever fail")
    return saved.rows


def check(baseline: Sequence[BaselineRow], rows: Sequence[Condition], tolerance: float) -> list[Outcome]:
    """Return the outcome of each row of the baseline; `tolerance` in points. `UserError` if none could be tested."""
    by_name: dict[tuple[str, ...], list[Condition]] = {}
    for c in rows:
        by_name.setdefault((c.task, c.split, c.corpus, c.arch, c.preset, c.test, c.tag, c.value), []).append(c)
    outcomes = [_compare(row, _find(row, by_name), len(baseline), tolerance) for row in baseline]
    if not any(len(one.current.keys() & one.baseline.each_seed.keys()) >= MIN_SEEDS for one in outcomes):
        names: dict[str, list[str]] = {}
        for one in outcomes:
            names.setdefault(f"{one.state}: {one.reason}", []).append(one.baseline.name)
        reasons = [
            f"{reason} ({len(some)} of {len(outcomes)} conditions: {', '.join(some[:MAX_NAMED])}"
            f"{', ...' * (len(some) > MAX_NAMED)})"
            for reason, some in names.items()
        ]
        raise UserError(f"nothing could be checked: {'; '.join(reasons)}")
    return outcomes


def _find(row: BaselineRow, by_name: Mapping[tuple[str, ...], Sequence[Condition]]) -> Condition | str:
    """Return the current condition, or why there is none. Settings may differ: they may be what changed the results."""
    name = (row.task, row.split, row.corpus, row.arch, row.preset)
    all_diverged = [condition for condition in by_name.get((*name, "test", "", ""), []) if not condition.runs]
    known = by_name.get((*name, row.test, row.tag, row.value)) or all_diverged
    same = [condition for condition in known if row.experiment and condition.experiment == row.experiment]
    named = [condition for condition in known if labels.text(condition.settings, short=False) == row.settings]
    candidates = same or named or known
    if len(candidates) != 1:
        return f"{len(candidates) or 'no'} current condition{'s have' if candidates else ' has'} this name"
    counts = candidates[0].counts - {row.examples}
    return f"{row.examples} examples in the baseline, {max(counts)} now" if counts else candidates[0]


def _compare(row: BaselineRow, condition: Condition | str, tests: int, tolerance: float) -> Outcome:
    if isinstance(condition, str):
        return Outcome(row, MISSING, {}, reason=condition)
    lost = {run.result.seed: 0.0 for run in condition.diverged}
    current: dict[int, float] = condition.values.get(row.metric, {}) | lost
    if not current:
        return Outcome(row, MISSING, current, reason=f"{row.metric} was not measured")
    shared, total = sorted(current.keys() & row.each_seed.keys()), len(row.each_seed)
    ours, theirs = ([own[seed] for seed in shared] for own in (current, row.each_seed))
    if len(shared) < MIN_SEEDS:
        outcome = Outcome(row, UNTESTED, current, reason=f"a test needs {MIN_SEEDS}")
    elif ours == theirs:
        outcome = Outcome(row, UNCHANGED, current)
    else:
        difference = compare(ours, theirs, True, tests, 100 / max(row.examples, 1))
        p = corrected(difference.p, tests)
        state, reason = _decide(difference, p, tests, tolerance)
        outcome = Outcome(row, state, current, difference, p, reason)
    if len(shared) == total:
        return outcome
    if outcome.state == WORSE:  # a drop stays one if seeds are missing
        return outcome._replace(reason=f"{len(shared)} of the baseline's {total} seeds")
    return outcome._replace(state=MISSING, reason=f"{total - len(shared)} of the baseline's {total} seeds")


def _decide(difference: Difference, p: float, tests: int, tolerance: float) -> tuple[str, str]:
    """Return the state of a row whose results changed, and the reason if it needs more seeds."""
    if p < ALPHA and abs(difference.mean) > tolerance:
        return WORSE if difference.mean < 0 else BETTER, ""
    if -tolerance <= difference.low and difference.high <= tolerance:
        return UNCHANGED, ""
    needed = seeds_needed(difference.effect, True, ALPHA / tests) if difference.mean < -tolerance else None
    return UNDECIDED, f"about {needed} seeds are needed to find a drop of this size" if needed else ""
