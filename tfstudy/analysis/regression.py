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

from tfstudy.analysis.conditions import Condition
from tfstudy.analysis.significance import ALPHA, Difference, compare, corrected, seeds_needed
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

    @property
    def shared(self) -> set[int]:
        """The seeds that both have."""
        return self.current.keys() & self.baseline.each_seed.keys()


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


def compare_with_baseline(
    baseline: Sequence[BaselineRow], conditions: Sequence[Condition], tolerance: float
) -> list[Outcome]:
    """Return the outcome of each row of the baseline; `tolerance` in points. `UserError` if none could be tested."""
    by_name: dict[tuple[str, ...], list[Condition]] = {}
    for condition in conditions:
        c = condition
        examples = (c.task, c.split, c.corpus, c.test_set, c.tag, c.tag_value)
        by_name.setdefault((*examples, c.arch, c.preset), []).append(condition)
    tests = len(baseline)
    compared = [_compare(row, _find(row, by_name), tests) for row in baseline]
    outcomes = [_count_seeds(_decide(outcome, tests, tolerance)) for outcome in compared]
    if not any(len(outcome.shared) >= MIN_SEEDS for outcome in outcomes):
        raise UserError(f"nothing could be checked: {_reasons(outcomes)}")
    return outcomes


def _reasons(outcomes: Sequence[Outcome]) -> str:
    """Return each reason with the number of conditions and the first of their names."""
    names: dict[str, list[str]] = {}
    for outcome in outcomes:
        names.setdefault(f"{outcome.state}: {outcome.reason}", []).append(outcome.baseline.name)
    shown = {
        reason: ", ".join([*some[:MAX_NAMED], *["..."] * (len(some) > MAX_NAMED)]) for reason, some in names.items()
    }
    counts = {reason: f"{len(some)} of {len(outcomes)} conditions" for reason, some in names.items()}
    return "; ".join(f"{reason} ({counts[reason]}: {shown[reason]})" for reason in names)


def _find(row: BaselineRow, by_name: Mapping[tuple[str, ...], Sequence[Condition]]) -> Condition | str:
    """Return the current condition, or why there is none. Settings may differ: they may be what changed the results."""
    name = (row.task, row.split, row.corpus, row.test, row.tag, row.value, row.arch, row.preset)
    whole = (row.task, row.split, row.corpus, "test", "", "", row.arch, row.preset)
    all_diverged = [condition for condition in by_name.get(whole, []) if not condition.runs]
    known = by_name.get(name) or all_diverged
    same = [condition for condition in known if row.experiment and condition.experiment == row.experiment]
    candidates = same or [condition for condition in known if condition.settings == row.settings] or known
    if len(candidates) != 1:
        return (
            f"{len(candidates)} current conditions have this name"
            if candidates
            else "no current condition has this name"
        )
    counts = {result.n for result in candidates[0].results_by_seed().values()} - {row.examples}
    return f"{row.examples} examples in the baseline, {max(counts)} now" if counts else candidates[0]


def _compare(row: BaselineRow, condition: Condition | str, tests: int) -> Outcome:
    if isinstance(condition, str):
        return Outcome(row, MISSING, {}, reason=condition)
    current = condition.by_seed(row.metric) | {run.result.seed: 0.0 for run in condition.diverged}
    if not current:
        return Outcome(row, MISSING, current, reason=f"{row.metric} was not measured")
    shared = current.keys() & row.each_seed.keys()
    if len(shared) < MIN_SEEDS:
        return Outcome(row, UNTESTED, current, reason=f"a test needs {MIN_SEEDS}")
    if all(current[seed] == row.each_seed[seed] for seed in shared):
        return Outcome(row, UNCHANGED, current)
    difference = compare(current, row.each_seed, True, tests, 100 / max(row.examples, 1))
    return Outcome(row, UNDECIDED, current, difference)


def _decide(outcome: Outcome, tests: int, tolerance: float) -> Outcome:
    difference = outcome.difference
    if not difference:
        return outcome
    p = corrected(difference.p, tests)
    if p < ALPHA and abs(difference.mean) > tolerance:
        return outcome._replace(state=WORSE if difference.mean < 0 else BETTER, p=p)
    if -tolerance <= difference.low and difference.high <= tolerance:
        return outcome._replace(state=UNCHANGED, p=p)
    needed = seeds_needed(difference, ALPHA / tests) if difference.mean < -tolerance else None
    reason = f"about {needed} seeds are needed to find a drop of this size" if needed else ""
    return outcome._replace(p=p, reason=reason)


def _count_seeds(outcome: Outcome) -> Outcome:
    """Return an outcome as missing if seeds of the baseline are, unless a drop was found."""
    total, shared = len(outcome.baseline.each_seed), len(outcome.shared)
    if outcome.state == MISSING or shared == total:
        return outcome
    if outcome.state != WORSE:
        return outcome._replace(state=MISSING, reason=f"{total - shared} of the baseline's {total} seeds")
    return outcome._replace(
        reason="; ".join(filter(None, (f"{shared} of the baseline's {total} seeds", outcome.reason)))
    )
