"""Whether a study is worse than it was: the figures of a kept table against those of now, as a check in CI.

The figures of then are a table in JSON (`tfstudy table STUDY --format json > baseline.json`). A row is worse if it fell
by more than the tolerance and the fall is significant over seeds, corrected for as many rows (Holm). Seeds are paired:
one seed gives the same weights at the start and the same order of training, then as now. A run that diverged counts as
0. With one seed nothing can be told, and only a row that is gone fails.
"""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, NamedTuple

import msgspec

from tasks.errors import UserError
from tfstudy.analysis.conditions import Condition
from tfstudy.analysis.statistics import ALPHA, Difference, compare, holm, seeds_needed

WORSE, MISSING, UNKNOWN, OPEN, BETTER, SAME = STATES = (
    "worse",
    "missing",
    "can't be told",  # for want of seeds
    "no change shown",  # by these seeds
    "better",
    "as before",  # the whole interval lies within the tolerance
)
Word = Annotated[str, msgspec.Meta(pattern=r"^[^\x00-\x1f]*$")]  # what XML and a line of a table can hold


class Then(msgspec.Struct, frozen=True):
    """A row of a table as it was kept."""

    task: Word
    split: Word
    test: Word
    arch: Word
    preset: Word
    metric: Word
    each_seed: dict[int, Annotated[float, msgspec.Meta(ge=0, le=100)]]  # in per cent
    examples: Annotated[int, msgspec.Meta(ge=0)]
    experiment: str = ""
    settings: Word = ""
    tag: Word = ""
    value: Word = ""

    @property
    def name(self) -> str:
        """The row in words."""
        test = self.test if self.test != "test" else ""
        words = (self.task, self.split, test, self.value, self.arch, self.preset, self.settings)
        return " ".join(word for word in words if word)


class Kept(msgspec.Struct):
    """A table as it was kept."""

    rows: list[Then]


class Outcome(NamedTuple):
    """What became of a row."""

    then: Then
    state: str
    now: Mapping[int, float]  # seed to figure
    found: Difference | None = None  # now less then, in points
    p: float = math.nan  # corrected
    reason: str = ""


def read_baseline(path: Path) -> list[Then]:
    """The rows of a kept table; `UserError` if it is none."""
    try:
        kept = msgspec.json.decode(path.read_bytes(), type=Kept, strict=False)
    except OSError as error:
        raise UserError(f"can't read {path}: {error.strerror}") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise UserError(f"{path} is no table as `tfstudy table STUDY --format json` prints it: {error}") from None
    if not kept.rows:
        raise UserError(f"{path} has no rows, so that nothing could ever fail")
    return kept.rows


def judge(baseline: Sequence[Then], rows: Sequence[Condition], tolerance: float) -> list[Outcome]:
    """What became of every row of then; `tolerance` in points. `UserError` if none is there now."""
    there: dict[tuple[str, ...], list[Condition]] = {}
    for row in rows:
        there.setdefault((row.task, row.split, row.test, row.tag, row.value, row.arch, row.preset), []).append(row)
    found = [_row(then, there) for then in baseline]
    if not any(isinstance(row, Condition) for row in found):
        raise UserError(f"nothing can be compared: {baseline[0].name}: {found[0]}")
    outcomes = [
        _compared(then, row, len(baseline)) if isinstance(row, Condition) else Outcome(then, MISSING, {}, reason=row)
        for then, row in zip(baseline, found, strict=True)
    ]
    corrected = holm([outcome.found.p if outcome.found else math.nan for outcome in outcomes])
    return [_decided(outcome, p, tolerance) for outcome, p in zip(outcomes, corrected, strict=True)]


def _row(then: Then, there: Mapping[tuple[str, ...], Sequence[Condition]]) -> Condition | str:
    """The row of now, or why there is none. Settings are not part of the name: what is looked for is what changed."""
    place = (then.task, then.split, then.test, then.tag, then.value, then.arch, then.preset)
    whole = (then.task, then.split, "test", "", "", then.arch, then.preset)
    known = there.get(place) or [row for row in there.get(whole, []) if not row.runs]  # all of its runs diverged
    same = [row for row in known if then.experiment and row.experiment == then.experiment]
    alike = same or [row for row in known if row.settings == then.settings] or known
    if len(alike) != 1:
        return f"{len(alike)} rows of this name now, of other settings" if alike else "no such row now"
    counts = {part.n for part in alike[0].measured().values()} - {then.examples}
    return f"{then.examples} examples then, {max(counts)} now" if counts else alike[0]


def _compared(then: Then, row: Condition, tests: int) -> Outcome:
    now = row.by_seed(then.metric) | {run.result.seed: 0.0 for run in row.diverged}
    if not now:
        return Outcome(then, MISSING, now, reason=f"{then.metric} was not measured")
    shared = now.keys() & then.each_seed.keys()
    if len(shared) < 2:
        return Outcome(then, UNKNOWN, now, reason=f"{len(shared)} of the {len(then.each_seed)} seeds are there now")
    if all(now[seed] == then.each_seed[seed] for seed in shared):
        return Outcome(then, SAME, now, reason="" if len(shared) == len(then.each_seed) else f"{len(shared)} seeds")
    return Outcome(then, OPEN, now, compare(now, then.each_seed, True, tests, 100 / max(then.examples, 1)))


def _decided(outcome: Outcome, p: float, tolerance: float) -> Outcome:
    found = outcome.found
    if not found:
        return outcome
    if p < ALPHA and abs(found.mean) > tolerance:
        return outcome._replace(state=WORSE if found.mean < 0 else BETTER, p=p)
    if -tolerance <= found.low and found.high <= tolerance:
        return outcome._replace(state=SAME, p=p)
    needed = seeds_needed(found, ALPHA * found.p / p if p < 1 else ALPHA) if found.mean < -tolerance else None
    reason = f"a fall of this size would show with about {needed} seeds" if needed else ""
    return outcome._replace(p=p, reason=reason)
