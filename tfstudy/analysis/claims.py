"""Judge claims by the records: supported, refuted, undecided, or not run.

A statement says between which bounds a mean over seeds lies, or a difference of two means. It is supported if the whole
95 % interval lies within the bounds, and refuted if the whole interval lies outside. For a claimed number this is the
logic of two one-sided tests at .025 each (with the 95 % interval and not the 90 % one, so that both verdicts follow the
interval that is printed). The p value belongs to the two-sided test against the deciding bound: the one that is
violated, or, within the bounds, the one with the larger p. It is corrected over the statements of a claim (Holm 1979)
and must be below .05 as well. With fewer than the minimum number of seeds, or if a run diverged, nothing is decided.

If all seeds have the same result there is no test: the interval is Wilson's within a run, and does not account for
seeds that were not run.
"""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from tasks.scoring import wilson
from tfstudy.analysis.comparisons import mean_interval, resolution
from tfstudy.analysis.condition_selection import select_conditions
from tfstudy.analysis.conditions import Condition, pairing_key
from tfstudy.analysis.intervals import Interval, clipped, interval
from tfstudy.analysis.power import seeds_needed
from tfstudy.analysis.significance import ALPHA, Difference, compare, compare_with_bound, holm
from tfstudy.analysis.statements import DIVERGED, OVER_LENGTHS, Claim, Statement

SUPPORTED, REFUTED, UNDECIDED, NOT_RUN = VERDICTS = ("supported", "refuted", "undecided", "not run")
Bounds = tuple[float, float]
BySeed = Mapping[int, float]  # in percent


class Measurement(NamedTuple):
    """A mean, or a difference of means, tested against the bounds of a statement."""

    interval: Interval
    bound: float  # the deciding one
    p: float  # two-sided, against that bound; nan without a test
    test: str  # its name; empty without a test
    side: str  # of the bounds: "within", "below", "above"; "across" if the interval includes one of them
    seeds_needed: int | None  # to find a true difference of this size from the bound


class StatementVerdict(NamedTuple):
    """The verdict on a statement, and what it is based on."""

    statement: Statement
    conditions: tuple[Condition, ...]  # of, minus
    unused: int  # number of other conditions that the statement selects
    measurement: Measurement | None
    p: float  # corrected over the statements of the claim
    verdict: str
    reason: str


class ClaimVerdict(NamedTuple):
    """The verdict on a claim, and those on its statements."""

    claim: Claim
    verdict: str
    reason: str
    statements: list[StatementVerdict]


def judge_claim(claim: Claim, known: Sequence[Condition]) -> ClaimVerdict:
    """Return the verdict on a claim, given all conditions."""
    if not claim.statements:
        if not claim.tested_by:
            return ClaimVerdict(claim, NOT_RUN, f"needs {claim.needs}", [])
        reason = "; ".join(filter(None, (f"tested by {claim.tested_by}", claim.note)))
        return ClaimVerdict(claim, claim.shown_as, reason, [])
    selected = [(statement, *select_conditions(statement, known)) for statement in claim.statements]
    tests = sum(bool(pair) for _, pair, _ in selected)
    measured = [measure_conditions(statement, pair, tests) if pair else None for statement, pair, _ in selected]
    corrected = holm([one.p if one else math.nan for one in measured])
    verdicts = []
    for one, measurement, p in zip(selected, measured, corrected, strict=True):
        undecided = StatementVerdict(*one, measurement, p, "", "")
        verdict, reason = statement_verdict(undecided, claim.minimum_seeds)
        verdicts.append(undecided._replace(verdict=verdict, reason=reason))
    return ClaimVerdict(claim, *_claim_verdict(verdicts), verdicts)


def _claim_verdict(statements: Sequence[StatementVerdict]) -> tuple[str, str]:
    """Return the verdict on a claim and the reason: supported if all statements are, refuted if one is."""
    numbers = {verdict: [n for n, one in enumerate(statements, 1) if one.verdict == verdict] for verdict in VERDICTS}
    if len(statements) == 1 or len(numbers[NOT_RUN]) == len(statements):
        return statements[0].verdict, statements[0].reason
    if len(numbers[SUPPORTED]) == len(statements):
        return SUPPORTED, "all statements"
    reason = "; ".join(
        f"{verdict}: statement{'s' * (len(which) > 1)} {', '.join(map(str, which))}"
        for verdict, which in numbers.items()
        if which
    )
    return REFUTED if numbers[REFUTED] else UNDECIDED, reason


def statement_verdict(judged: StatementVerdict, minimum_seeds: int) -> tuple[str, str]:
    """Return the verdict on a statement and the reason, given the minimum number of seeds."""
    measured = judged.measurement
    if measured is None:
        return NOT_RUN, "no two runs share data and settings" if judged.unused else "no finished run of this kind"
    n = measured.interval.n
    if judged.statement.metric != DIVERGED and (lost := sum(len(one.diverged) for one in judged.conditions)):
        return UNDECIDED, f"{lost} diverged, and the mean would only be over the other runs"
    if n < minimum_seeds:
        more = max(minimum_seeds, measured.seeds_needed or 0) - n
        return UNDECIDED, f"{n} of at least {minimum_seeds} seeds; about {more} more needed"
    more = max(1, measured.seeds_needed - n) if measured.seeds_needed else 0
    needed = f"; about {more} more seed{'s' * (more != 1)} needed" if more else ""
    if measured.side == "across":
        return UNDECIDED, f"the 95 % interval includes {measured.bound:g}{needed}"
    if judged.p >= ALPHA:  # nan without a test, where only the interval decides
        return UNDECIDED, f"the difference from {measured.bound:g} is not significant after correction{needed}"
    if measured.side == "within":
        return SUPPORTED, "the whole interval lies within the bounds"
    return REFUTED, f"the whole interval lies {measured.side} {measured.bound:g}"


def measure_conditions(statement: Statement, pair: Sequence[Condition], tests: int = 1) -> Measurement:
    """Test one condition, or two, against a statement; `tests` is the number of tests corrected for together."""
    first, *others = (metric_by_seed(condition, statement.metric) for condition in pair)
    step = max(resolution(condition) for condition in pair) if statement.metric != DIVERGED else 0.0
    if others:
        paired = pairing_key(pair[0]) == pairing_key(pair[1])
        return measure_difference(statement.bounds, first, others[0], paired, step, tests)
    return measure_mean(statement.bounds, first, metric_interval(pair[0], statement.metric), step, tests)


def measure_mean(
    bounds: Bounds, values: BySeed, known: Interval | None = None, resolution: float = 0.0, tests: int = 1
) -> Measurement:
    """Test a mean against bounds; `known` is its interval, if it is not Student's. For the rest see `compare`."""
    figures = list(values.values())
    tested = {bound: compare_with_bound(figures, bound, resolution) for bound in bounds if math.isfinite(bound)}
    return _measurement(bounds, known or interval(figures), tested, len(set(figures)) < 2, tests)


def measure_difference(
    bounds: Bounds, first: BySeed, second: BySeed, paired: bool = True, resolution: float = 0.0, tests: int = 1
) -> Measurement:
    """Test a difference of means against bounds. If it is not paired, n is the smaller number of seeds."""
    whole = compare(first, second, paired, tests, resolution)
    n = whole.n if whole.paired else min(len(first), len(second))
    tested = {
        bound: compare({seed: x - bound for seed, x in first.items()}, second, paired, tests, resolution)
        for bound in bounds
        if math.isfinite(bound)
    }
    return _measurement(bounds, Interval(whole.mean, whole.low, whole.high, n, whole.method), tested, False, tests)


def _measurement(
    bounds: Bounds, measured: Interval, tested: Mapping[float, Difference], constant: bool, tests: int
) -> Measurement:
    low, high = bounds
    violated = low if measured.mean < low else high if measured.mean > high else None
    # nan counts as the largest p
    bound = max(tested, key=lambda b: 2.0 if math.isnan(tested[b].p) else tested[b].p) if violated is None else violated
    test, side = tested[bound], _side(measured, bounds)
    if constant:
        return Measurement(measured, bound, math.nan, "", side, None)
    needed = seeds_needed(test, ALPHA / tests)
    return Measurement(measured, bound, test.p, "" if math.isnan(test.p) else test.method, side, needed)


def _side(measured: Interval, bounds: Bounds) -> str:
    low, high = bounds
    if measured.high < low:
        return "below"
    if measured.low > high:
        return "above"
    # strictly above or below a single bound, but up to and including the two bounds of a claimed number
    within = (measured.low > low if math.isinf(high) else measured.low >= low) and (
        measured.high < high if math.isinf(low) else measured.high <= high
    )
    return "within" if within else "across"


def metric_by_seed(condition: Condition, metric: str) -> dict[int, float]:
    """Return the metric in percent by seed; for `diverged`, 100 for a run that diverged and 0 for one that did not."""
    if metric == DIVERGED:
        return {run.result.seed: 100.0 * (not run.finished) for run in (*condition.runs, *condition.diverged)}
    if metric == OVER_LENGTHS:
        return condition.means_over_lengths("token_accuracy")
    return condition.by_seed(metric)


def metric_interval(condition: Condition, metric: str) -> Interval:
    """Return the condition's mean and its interval over seeds, within what the metric can be."""
    values = list(metric_by_seed(condition, metric).values())
    if metric == DIVERGED and values:
        low, high = wilson(sum(value > 0 for value in values), len(values))
        return interval(values)._replace(low=100 * low, high=100 * high, method="Wilson over seeds")
    if metric in (DIVERGED, OVER_LENGTHS):
        return clipped(interval(values))
    return mean_interval(condition, metric)
