"""Whether the results of a study got worse: a saved table compared with the current records, as a check in CI.

The baseline is a table as JSON (`tfstudy table STUDY --format json > baseline.json`). A condition is worse if its
metric dropped by more than the tolerance and the drop is significant over seeds, by the q value: p adjusted for the
number of conditions (Benjamini & Hochberg 1995).
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
from tfstudy.analysis.stats import ALPHA, Difference, compare, q_values, seeds_needed
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
    q: float = math.nan  # of its p, adjusted for all rows
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
    found = [_compare(row, _find(row, by_name)) for row in baseline]
    q = q_values([one.difference.p if one.difference else math.nan for one in found])
    outcomes = [_decided(one._replace(q=float(own)), tolerance) for one, own in zip(found, q, strict=True)]
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


def _compare(row: BaselineRow, condition: Condition | str) -> Outcome:
    """Return the difference of a row that is tested (its state is open), or why it is not."""
    if isinstance(condition, str):
        return Outcome(row, MISSING, {}, reason=condition)
    lost = {run.result.seed: 0.0 for run in condition.diverged}
    current: dict[int, float] = condition.values.get(row.metric, {}) | lost
    if not current:
        return Outcome(row, MISSING, current, reason=f"{row.metric} was not measured")
    shared = sorted(current.keys() & row.each_seed.keys())
    ours, theirs = ([own[seed] for seed in shared] for own in (current, row.each_seed))
    if len(shared) < MIN_SEEDS:
        return Outcome(row, UNTESTED, current, reason=f"a test needs {MIN_SEEDS}")
    if ours == theirs:
        return Outcome(row, UNCHANGED, current)
    return Outcome(row, UNDECIDED, current, compare(ours, theirs, True, 100 / max(row.examples, 1)))


def _decided(outcome: Outcome, tolerance: float) -> Outcome:
    """Return the outcome with its state, and the reason if it needs more seeds or lacks some."""
    found, row = outcome.difference, outcome.baseline
    if found and outcome.q < ALPHA and abs(found.mean) > tolerance:
        outcome = outcome._replace(state=WORSE if found.mean < 0 else BETTER)
    elif found and -tolerance <= found.low and found.high <= tolerance:
        outcome = outcome._replace(state=UNCHANGED)
    elif found and found.mean < -tolerance and (needed := seeds_needed(found.effect, True)):
        outcome = outcome._replace(reason=f"about {needed} seeds are needed to find a drop of this size")
    missing = len(row.each_seed.keys() - outcome.current.keys())
    if not missing or not outcome.current:
        return outcome
    total = len(row.each_seed)
    if outcome.state == WORSE:  # a drop stays one if seeds are missing
        return outcome._replace(reason=f"{total - missing} of the baseline's {total} seeds")
    return outcome._replace(state=MISSING, reason=f"{missing} of the baseline's {total} seeds")
