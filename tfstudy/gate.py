"""Whether a study is worse than it was: the figures of a kept table against those of now, as a check in CI.

The figures of then are a table in JSON (`tfstudy table STUDY --format json > baseline.json`). A row fails if it fell by
more than the tolerance and the fall is significant over seeds, corrected for as many rows (Holm). Seeds are paired: one
seed gives the same weights at the start and the same order of training, then as now. A run that diverged counts as 0.
With one seed nothing can be told, and nothing fails.
"""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from tasks.base import UserError
from tfstudy.rows import Row
from tfstudy.stats import ALPHA, Difference, compare, holm

WORSE, SAME, BETTER, UNKNOWN, MISSING = "worse", "as before", "better", "can't be told", "not compared"


class Then(msgspec.Struct, frozen=True):
    """A row of a table as it was kept."""

    task: str
    split: str
    test: str
    arch: str
    preset: str
    metric: str
    each_seed: dict[int, float]  # in per cent
    examples: int
    settings: str = ""
    tag: str = ""
    value: str = ""

    @property
    def key(self) -> tuple[str, ...]:
        return self.task, self.split, self.test, self.tag, self.value, self.arch, self.preset, self.settings

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


def key(row: Row) -> tuple[str, ...]:
    """What a row of now and one of then have in common."""
    return row.task, row.split, row.test, row.tag, row.value, row.arch, row.preset, row.settings


def judge(baseline: Sequence[Then], rows: Sequence[Row], tolerance: float) -> list[Outcome]:
    """What became of every row of then; `tolerance` in points. `UserError` if none is there now."""
    there = {key(row): row for row in rows}
    outcomes = [_compared(then, there.get(then.key)) for then in baseline]
    if all(outcome.state == MISSING for outcome in outcomes):
        raise UserError(f"nothing can be compared: {outcomes[0].then.name}: {outcomes[0].reason}")
    corrected = holm([outcome.found.p if outcome.found else math.nan for outcome in outcomes])
    return [_decided(outcome, p, tolerance) for outcome, p in zip(outcomes, corrected, strict=True)]


def _compared(then: Then, row: Row | None) -> Outcome:
    if row is None:
        return Outcome(then, MISSING, {}, reason="no such row now")
    now = row.by_seed(then.metric) | {run.result.seed: 0.0 for run in row.diverged}
    examples = {part.n for part in row.measured().values()} or {then.examples}
    if examples != {then.examples}:
        return Outcome(then, MISSING, now, reason=f"{then.examples} examples then, {max(examples)} now")
    if not now:
        return Outcome(then, MISSING, now, reason=f"{then.metric} was not measured")
    if len(now.keys() & then.each_seed.keys()) < 2:
        reason = f"{len(now.keys() & then.each_seed.keys())} seeds in common: 2 are needed, and 5 to find much"
        return Outcome(then, UNKNOWN, now, reason=reason)
    return Outcome(then, SAME, now, compare(now, then.each_seed, paired=True))


def _decided(outcome: Outcome, p: float, tolerance: float) -> Outcome:
    if not outcome.found:
        return outcome
    change = outcome.found.mean
    state = SAME if p >= ALPHA or abs(change) <= tolerance else WORSE if change < 0 else BETTER
    return outcome._replace(state=state, p=p)
