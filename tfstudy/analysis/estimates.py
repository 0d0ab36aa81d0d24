"""What a statement of a claim is judged by: a mean over seeds, a difference of two, or a ratio of what was measured.

Means and differences are tested against the bounds of the statement; their values are metrics of test sets, or what an
instrument measured, as one number for each seed. Ratios are of what `tfstudy bench` measured, one setting over another:
speeds are compared round by round, and their ratio is judged by the interval of its median. Memory and FLOPs are the
same in every repeat, so that their ratios are exact. Both settings must have been measured by one command.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from tfstudy.analysis.benchmarks import Pair, values_of
from tfstudy.analysis.claim_files import DIVERGED, OVER_LENGTHS, ROWS, TAKE, TAKES, Selector, Statement
from tfstudy.analysis.comparisons import Comparison, clipped_difference, mean_interval, resolution
from tfstudy.analysis.conditions import Condition, pairing_key
from tfstudy.analysis.intervals import (
    EXACT,
    Interval,
    clipped,
    fewest_values,
    interval,
    median_interval,
    normal_quantile,
    ratios,
)
from tfstudy.analysis.significance import (
    ALPHA,
    MAX_SEEDS,
    Difference,
    compare,
    compare_with_bound,
    corrected,
    seeds_needed,
)
from tfstudy.errors import UserError
from tfstudy.runs.display import METRIC_NAMES
from tfstudy.runs.measurement_record import Measurement, Row, read_measurement, saved_instruments
from tfstudy.tasks.scoring import wilson

WITHIN, BELOW, ABOVE, ACROSS = "within", "below", "above", "across"
Bounds = tuple[float, float]
OVER_SEEDS = "Wilson over seeds"
BySeed = Mapping[int, float]  # in percent
DIFFERENT = "runs were measured by {} with different settings"
SHOWN = 8  # values of a column in a message


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


def estimate_ratio(statement: Statement, pair: Pair, tests: int) -> Estimate:
    """Return the ratio of a pair beside the bounds of a statement; `tests` is the size of the family."""
    first, second = values_of(pair.of, statement.of["quantity"]), values_of(pair.over, statement.over["quantity"])
    each, level = ratios(first, second), 1 - ALPHA / tests
    if statement.timed:
        measured = median_interval(each, level)
        more = max(0, fewest_values(level) - measured.n) or None
    else:
        measured, more, tests = Interval(each[0], each[0], each[0], 1, EXACT), None, 1
    bounds = [bound for bound in statement.bounds if math.isfinite(bound)]
    violated = [b for b in bounds if (measured.mean < b) is (b == statement.bounds[0])]
    bound = min(violated or bounds, key=lambda b: abs(b - measured.mean))
    return Estimate(measured, bound, math.nan, "", side_of(measured, statement.bounds), more, tests)


# What an instrument measured


class NotMeasuredError(UserError):
    """No run of a condition was measured with an instrument."""


def instrument_values(condition: Condition, instrument: str, selector: Selector) -> dict[int, float]:
    """Return the number of each run with a saved measurement, by seed: of the rows that a selector chooses.

    Rows of a metric of test sets, such as BLEU, are shares of 1 in the record and in percent here, as everywhere else.
    `NotMeasuredError` if no run has a measurement; `UserError` if none has such a row, if a file is broken, or if runs
    were measured with different settings.
    """
    wanted = {key.removeprefix(ROWS): value for key, value in selector.items() if key.startswith(ROWS) and key != TAKE}
    found = _saved(condition, instrument)
    if not found:
        raise NotMeasuredError(f"not measured: `tfstudy measure {condition.study} {instrument} --save`")
    if len({measured.digest for _, measured in found}) > 1:
        raise UserError(DIFFERENT.format(instrument))
    numbers = {seed: [float(row[measured.chart.value]) for row in _rows(measured, wanted)] for seed, measured in found}
    if not any(numbers.values()):
        raise UserError(_no_row([measured for _, measured in found], wanted))
    take, factor = TAKES[selector.get(TAKE, "mean")], 100 if wanted.get("metric") in METRIC_NAMES else 1
    return {seed: factor * take(chosen) for seed, chosen in numbers.items() if chosen}


def check_settings(conditions: Sequence[Condition], instrument: str) -> None:
    """Raise `UserError` if runs of these conditions were measured with different settings."""
    if len({measured.digest for one in conditions for _, measured in _saved(one, instrument)}) > 1:
        raise UserError(DIFFERENT.format(instrument))


def _saved(condition: Condition, instrument: str) -> list[tuple[int, Measurement]]:
    """Return the measurements of the runs of a condition that have one, with their seeds."""
    runs = [run for run in condition.runs if instrument in saved_instruments(run.path)]
    return [(run.result.seed, read_measurement(run.path, instrument)) for run in runs]


def _rows(measured: Measurement, wanted: Mapping[str, Any]) -> list[Row]:
    for column in sorted(wanted.keys() - measured.columns.keys()):
        known = ", ".join(measured.columns)
        raise UserError(f"{measured.instrument} has no column '{column}'; its columns are {known}")
    return [row for row in measured.rows() if all(row[key] == value for key, value in wanted.items())]


def _no_row(measured: Sequence[Measurement], wanted: Mapping[str, Any]) -> str:
    """Return what is wrong with a choice of rows that no run has."""
    name = measured[0].instrument
    for column, value in wanted.items():
        known = dict.fromkeys(cell for one in measured for cell in one.columns[column])
        if value not in known:
            more = ", ..." * (len(known) > SHOWN)
            return f"{name} has no {column} '{value}', only {', '.join(map(str, [*known][:SHOWN]))}{more}"
    return f"{name} has no row with {', '.join(f'{column} {value}' for column, value in wanted.items())}"
