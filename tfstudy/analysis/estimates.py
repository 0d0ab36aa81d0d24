"""What a statement of a claim is judged by: a mean over seeds, or a difference of two, tested against its bounds."""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from tfstudy.analysis.comparisons import Comparison, clipped_difference, mean_interval, resolution
from tfstudy.analysis.conditions import Condition, pairing_key
from tfstudy.analysis.instrument_values import check_settings, instrument_values
from tfstudy.analysis.intervals import Interval, clipped, interval, normal_quantile
from tfstudy.analysis.power import MAX_SEEDS, seeds_needed
from tfstudy.analysis.significance import ALPHA, Difference, compare, compare_with_bound, corrected
from tfstudy.analysis.statements import DIVERGED, OVER_LENGTHS, Selector, Statement
from tfstudy.tasks.scoring import wilson

WITHIN, BELOW, ABOVE, ACROSS = "within", "below", "above", "across"
Bounds = tuple[float, float]
OVER_SEEDS = "Wilson over seeds"
BySeed = Mapping[int, float]  # in percent


class Estimate(NamedTuple):
    """A mean, a difference of means or a ratio, tested against the bounds of a statement."""

    interval: Interval  # simultaneous with those of its family: the verdict follows it
    bound: float  # the deciding one: the one that is violated, or else the one with the larger p
    p: float  # two-sided, against that bound, corrected for the family; nan without a test
    test: str  # its name; empty without a test
    side: str  # of the bounds: within, below, above; across if the interval includes one of them
    more_seeds: int | None  # to find a true difference of this size from the bound; None if unknown or decided
    family: int  # number of tests that are corrected for together


def estimate_statement(statement: Statement, pair: Sequence[Condition], tests: int) -> Estimate:
    """Test one condition, or the difference of two, against a statement; `tests` is the size of the family."""
    first, *others = (
        values_by_seed(condition, statement, selector)
        for condition, selector in zip(pair, (statement.of, statement.minus), strict=False)
    )
    if others and statement.instrument:
        check_settings(pair, statement.instrument)
    percent = not statement.instrument
    step = max(map(resolution, pair)) if percent and statement.metric != DIVERGED else 0.0
    if others:
        paired = pairing_key(pair[0]) == pairing_key(pair[1]) and first.keys() == others[0].keys()
        return estimate_difference(statement.bounds, first, others[0], paired, step, tests, percent)
    known = _equal_values(pair[0], statement.metric, tests) if percent else None
    return estimate_mean(statement.bounds, first, known, step, tests, percent)


def estimate_mean(
    bounds: Bounds,
    values: BySeed,
    known: Interval | None = None,
    resolution: float = 0.0,
    tests: int = 1,
    percent: bool = True,
) -> Estimate:
    """Test a mean against bounds; `known` is its interval where all seeds have the same result and no test exists."""
    figures = list(values.values())
    if known or len(figures) < 2:
        measured = known or interval(figures)
        side, more = side_of(measured, bounds), _more_equal(measured, bounds, tests)
        return Estimate(measured, _violated(measured, bounds), math.nan, "", side, more, tests)
    finite = [bound for bound in bounds if math.isfinite(bound)]
    # no percentage lies beyond 0 or 100, so that a bound there needs no test beside another one
    possible = [bound for bound in finite if 0 < bound < 100 or not percent] or finite
    tested = {bound: compare_with_bound(figures, bound, tests, resolution) for bound in possible}
    bound, test = next(iter(tested.items()))
    whole = Interval(bound + test.mean, bound + test.low, bound + test.high, len(figures), "t")
    return _estimate(bounds, clipped(whole) if percent else whole, tested, tests)


def estimate_difference(
    bounds: Bounds,
    first: BySeed,
    second: BySeed,
    paired: bool = True,
    resolution: float = 0.0,
    tests: int = 1,
    percent: bool = True,
) -> Estimate:
    """Test a difference of means against bounds. If it is not paired, n is the smaller number of seeds."""
    whole = compare(first, second, paired, tests, resolution)
    whole = clipped_difference(whole) if percent else whole
    n = whole.n if whole.paired else min(len(first), len(second))
    tested = {
        bound: compare({seed: x - bound for seed, x in first.items()}, second, paired, tests, resolution)
        for bound in bounds
        if math.isfinite(bound)
    }
    return _estimate(bounds, Interval(whole.mean, whole.low, whole.high, n, whole.method), tested, tests)


def estimate_comparison(bounds: Bounds, comparison: Comparison) -> Estimate:
    """Return what a study's own comparison of two conditions says of a bound at 0, with the p value of its table."""
    d = comparison.difference
    n = d.n if d.paired else min(len(comparison.first.runs), len(comparison.second.runs))
    measured = Interval(d.mean, d.low, d.high, n, d.method)
    test = d.method if comparison.tested else ""
    side, more = side_of(measured, bounds), comparison.more_seeds
    return Estimate(measured, 0.0, comparison.p, test, side, more, comparison.tests)


def _estimate(bounds: Bounds, measured: Interval, tested: Mapping[float, Difference], tests: int) -> Estimate:
    violated = _violated(measured, bounds)
    if violated in tested and not bounds[0] <= measured.mean <= bounds[1]:
        bound = violated
    else:  # nan counts as the largest p
        bound = max(tested, key=lambda b: 2.0 if math.isnan(tested[b].p) else tested[b].p)
    test, side = tested[bound], side_of(measured, bounds)
    needed = seeds_needed(test, ALPHA / tests) if side == ACROSS else None
    more = max(1, needed - measured.n) if needed else None
    name = "" if math.isnan(test.p) else test.method
    return Estimate(measured, bound, corrected(test.p, tests), name, side, more, tests)


def _violated(measured: Interval, bounds: Bounds) -> float:
    """Return the bound on the wrong side of which the mean lies, else the nearer one."""
    low, high = bounds
    if measured.mean < low:
        return low
    if measured.mean > high:
        return high
    return low if measured.mean - low <= high - measured.mean else high


def side_of(measured: Interval, bounds: Bounds) -> str:
    """Return on which side of the bounds the whole interval lies; across if it includes one of them, or is unknown."""
    low, high = bounds
    if measured.high < low:
        return BELOW
    if measured.low > high:
        return ABOVE
    # strictly above or below a single bound, but up to and including the two bounds of a claimed number
    within = (measured.low > low if math.isinf(high) else measured.low >= low) and (
        measured.high < high if math.isinf(low) else measured.high <= high
    )
    return WITHIN if within else ACROSS


def values_by_seed(condition: Condition, statement: Statement, selector: Selector) -> dict[int, float]:
    """Return by seed what a statement is about: a metric in percent, or what an instrument measured."""
    if statement.instrument:
        return instrument_values(condition, statement.instrument, selector)
    return metric_by_seed(condition, statement.metric)


def metric_by_seed(condition: Condition, metric: str) -> dict[int, float]:
    """Return the metric in percent by seed; for `diverged`, 100 for a run that diverged and 0 for one that did not."""
    if metric == DIVERGED:
        return {run.result.seed: 100.0 * (not run.finished) for run in (*condition.runs, *condition.diverged)}
    if metric == OVER_LENGTHS:
        return condition.means_over_lengths("token_accuracy")
    return condition.by_seed(metric)


def metric_interval(condition: Condition, metric: str) -> Interval:
    """Return the condition's mean and its own 95 % interval over seeds, within what the metric can be."""
    values = list(metric_by_seed(condition, metric).values())
    if metric in (DIVERGED, OVER_LENGTHS):
        return clipped(interval(values))
    return mean_interval(condition, metric)


def _equal_values(condition: Condition, metric: str, tests: int) -> Interval | None:
    """Return the interval of a share where all seeds have the same one: Wilson's, over examples or over seeds."""
    values = list(metric_by_seed(condition, metric).values())
    z = normal_quantile(1 - ALPHA / tests / 2)
    if metric == DIVERGED and values:  # a share of the runs
        ends = wilson(sum(value > 0 for value in values), len(values), z)
        return _percent(values, ends, OVER_SEEDS)
    if metric != "exact_match" or len(set(values)) != 1:
        return None
    count = condition.example_count()
    return _percent(values, wilson(round(values[0] / 100 * count), count, z), "Wilson")


def _more_equal(measured: Interval, bounds: Bounds, tests: int) -> int | None:
    """Return how many more runs decide a share of runs, if all of them go on to be equal."""
    if measured.method != OVER_SEEDS or side_of(measured, bounds) != ACROSS or measured.mean not in (0, 100):
        return None
    z = normal_quantile(1 - ALPHA / tests / 2)
    for n in range(measured.n + 1, MAX_SEEDS + 1):
        low, high = wilson(round(measured.mean / 100 * n), n, z)
        if side_of(measured._replace(low=100 * low, high=100 * high), bounds) != ACROSS:
            return n - measured.n
    return None


def _percent(values: Sequence[float], ends: tuple[float, float], method: str) -> Interval:
    return Interval(math.fsum(values) / len(values), 100 * ends[0], 100 * ends[1], len(values), method)
