"""What a statement of a claim is judged by: a mean over seeds, a difference of two, or a ratio of what was measured.

Means and differences are tested against the bounds of the statement; their values are metrics of test sets, or what an
instrument measured, as one number for each seed. Ratios are of what `tfstudy bench` measured, one setting over another:
speeds are compared round by round, and the median of their ratios is tested by signs. Memory and FLOPs are the
same in every repeat, so that their ratios are exact. Both settings must have been measured by one command.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from tfstudy.analysis import stats
from tfstudy.analysis.claim_files import BENCH_SETTINGS, ROWS, SIZES, TAKE, TAKES, TIME, Selector, Statement
from tfstudy.analysis.labels import Condition
from tfstudy.analysis.stats import Interval, Values
from tfstudy.analysis.summary import DIVERGED, pairing_key, resolution
from tfstudy.errors import UserError
from tfstudy.performance.record import Record
from tfstudy.plugins import command
from tfstudy.runs.display import METRIC_NAMES
from tfstudy.runs.measurement_record import Measurement, read_measurement, saved_instruments
from tfstudy.tasks.scoring import wilson

Bounds = tuple[float, float]
OVER_SEEDS, SCORE = "Wilson over seeds", "score test"


class NotMeasuredError(UserError):
    """No run of a condition was measured with an instrument."""


class Estimate(NamedTuple):
    """A mean, a difference of means or a ratio, with its 95 % interval, tested against the bounds of a statement."""

    mean: float
    low: float
    high: float
    n: int
    interval: str  # how its ends were found
    bound: float  # the deciding one: the one that is violated, or else the one with the larger p
    inside: bool  # whether the mean is strictly above or below a single bound, or between two of them or on one
    p: float  # two-sided, against that bound; nan without a test
    test: str  # its name; empty without a test


def estimate(bounds: Bounds, measured: Interval, p: Mapping[float, float], test: str) -> Estimate:
    """Return the estimate of what was measured, given its p against each bound."""
    (low, high), mean = bounds, measured.mean
    inside = low < mean < high if math.isinf(low) or math.isinf(high) else low <= mean <= high
    violated = low if mean < low else high
    if inside or violated not in p:
        violated = max(p, key=lambda bound: 2.0 if math.isnan(p[bound]) else p[bound])  # nan counts as the largest
    return Estimate(*measured, violated, inside, p[violated], "" if math.isnan(p[violated]) else test)


def estimate_statement(statement: Statement, pair: Sequence[Condition]) -> Estimate:
    """Test one condition, or the difference of two, against a statement."""
    selectors = (statement.of, statement.minus)
    each = [values_by_seed(condition, statement, own) for condition, own in zip(pair, selectors, strict=False)]
    first, percent = list(each[0].values()), not statement.instrument
    step = max(map(resolution, pair)) if percent and statement.metric != DIVERGED else 0.0
    name = statement.instrument
    if name and len({one.digest for own in pair for one in measurements(own, name).values()}) > 1:
        raise UserError(f"runs were measured by {name} with different settings")
    if len(each) > 1:
        paired = pairing_key(pair[0]) == pairing_key(pair[1]) and each[0].keys() == each[1].keys() and len(first) > 1
        return estimate_difference(statement.bounds, first, [*each[1].values()], paired, step, percent)
    known = _equal_values(pair[0], statement.metric) if percent else None
    return estimate_mean(statement.bounds, first, known, step, percent)


def estimate_mean(
    bounds: Bounds, values: Values, known: Interval | None = None, resolution: float = 0.0, percent: bool = True
) -> Estimate:
    """Test a mean against bounds; `known` is Wilson's interval where all seeds have the same result."""
    finite = [bound for bound in bounds if math.isfinite(bound)]
    # no percentage lies beyond 0 or 100, so that a bound there needs no test beside another one
    possible = [bound for bound in finite if 0 < bound < 100 or not percent] or finite
    if known:
        p = {bound: stats.score_test(known.mean / 100, known.n, bound / 100) for bound in possible}
        return estimate(bounds, known._replace(n=len(values)), p, SCORE)
    tests = {bound: stats.against(values, bound, resolution) for bound in possible}
    bound, test = next(iter(tests.items()))
    whole = Interval(bound + test.mean, bound + test.low, bound + test.high, len(values), "t")
    p = {bound: one.p for bound, one in tests.items()}
    return estimate(bounds, stats.clipped(whole) if percent else whole, p, test.method)


def estimate_difference(
    bounds: Bounds, first: Values, second: Values, paired: bool = True, resolution: float = 0.0, percent: bool = True
) -> Estimate:
    """Test a difference of means against bounds. If it is not paired, n is the smaller number of seeds."""
    whole = stats.compare(first, second, paired, resolution)
    whole = stats.clipped(whole, -100.0) if percent else whole
    n = whole.n if paired else min(len(first), len(second))
    finite, x = [bound for bound in bounds if math.isfinite(bound)], stats.finite(first)
    p = {bound: stats.compare(x - bound, second, paired, resolution).p for bound in finite}
    return estimate(bounds, Interval(whole.mean, whole.low, whole.high, n, whole.method), p, whole.method)


def estimate_comparison(bounds: Bounds, pair: Any, first: Condition, second: Condition) -> Estimate:
    """Return what a study's own comparison of two conditions says of a bound at 0."""
    n = pair.n if pair.method == "paired t" else min(len(first.runs), len(second.runs))
    return estimate(bounds, Interval(pair.mean, pair.low, pair.high, n, pair.method), {0.0: pair.p}, pair.method)


def values_by_seed(condition: Condition, statement: Statement, selector: Selector) -> dict[int, float]:
    """Return by seed what a statement is about: a metric in percent, or what an instrument measured."""
    if statement.instrument:
        return instrument_values(condition, statement.instrument, selector)
    values: dict[int, float] = condition.values.get(statement.metric, {})
    return values


def _equal_values(condition: Condition, metric: str) -> Interval | None:
    """Return the interval of a share where all seeds have the same one: Wilson's, over examples or over seeds."""
    values = list(condition.values.get(metric, {}).values())
    if metric == DIVERGED and values:  # a share of the runs
        count, share, method = len(values), sum(value > 0 for value in values) / len(values), OVER_SEEDS
    elif metric == "exact_match" and len(set(values)) == 1:
        count, share, method = condition.count, values[0] / 100, "Wilson"
    else:
        return None
    low, high = wilson(round(share * count), count)
    return Interval(100 * share, 100 * low, 100 * high, count, method)


def instrument_values(condition: Condition, instrument: str, selector: Selector) -> dict[int, float]:
    """Return the number of each run with a saved measurement, by seed: of the rows that a selector chooses.

    Rows of a metric of test sets, such as BLEU, are shares of 1 in the record and in percent here, as everywhere else.
    `NotMeasuredError` if no run has a measurement; `UserError` if none has such a row, or if a file is broken.
    """
    wanted = {key.removeprefix(ROWS): value for key, value in selector.items() if key.startswith(ROWS) and key != TAKE}
    found = measurements(condition, instrument)
    if not found:
        raise NotMeasuredError(f"not measured: `{command('measure', condition.study, instrument, '--save')}`")
    take, factor = TAKES[selector.get(TAKE, "mean")], 100 if wanted.get("metric") in METRIC_NAMES else 1
    chosen = {
        seed: [float(row[one.chart.value]) for row in one.rows() if wanted.items() <= row.items()]
        for seed, one in found.items()
    }
    if not any(chosen.values()):
        raise UserError(f"{instrument} has no row with {', '.join(f'{key} {value}' for key, value in wanted.items())}")
    return {seed: factor * take(numbers) for seed, numbers in chosen.items() if numbers}


def measurements(condition: Condition, instrument: str) -> dict[int, Measurement]:
    """Return the measurements of the runs of a condition that have one, by seed."""
    runs = [run for run in condition.runs if instrument in saved_instruments(run.path)]
    return {run.result.seed: read_measurement(run.path, instrument) for run in runs}


# Ratios of what `tfstudy bench` measured


def find_records(of: Selector, over: Selector, records: Sequence[Record]) -> tuple[Record, Record] | None:
    """Return the records that two selectors choose, of one command, with as many repeats.

    Of several it is the pair with most repeats, and of these the latest.
    """
    first, second = ([one for one in records if _matches(one, selector)] for selector in (of, over))
    pairs = [(a, b) for a in first for b in second if a.machine == b.machine and len(a.seconds) == len(b.seconds)]
    pairs.sort(key=lambda pair: (len(pair[0].seconds), pair[0].machine.started))
    return pairs[-1] if pairs else None


def _matches(record: Record, selector: Selector) -> bool:
    model, train = (
        {key.removeprefix(section): value for key, value in selector.items() if key.startswith(section)}
        for section in BENCH_SETTINGS
    )
    return (
        all(getattr(record, key) == selector[key] for key in ("arch", "work", "variant", *SIZES))
        and record.machine.accelerator == selector["accelerator"]
        and model.items() <= record.model.items()
        and record.train == train
        and bool(values_of(record, selector["quantity"]))
    )


def values_of(record: Record, quantity: str) -> list[float]:
    """Return the values of a quantity: one for each repeat, or a single exact one; none if it was not measured."""
    if quantity == TIME:
        return record.tokens_per_second
    name = quantity.removesuffix("flops").rstrip("_") or "total"
    value = record.flops and getattr(record.flops, name) if quantity.endswith("flops") else getattr(record, quantity)
    return [float(value)] if value else []


def estimate_ratio(statement: Statement, pair: tuple[Record, Record]) -> Estimate:
    """Return the ratio of two records beside the bounds of a statement."""
    sides = zip(pair, (statement.of, statement.over), strict=True)
    each = [a / b for a, b in zip(*(values_of(record, own["quantity"]) for record, own in sides), strict=True)]
    p = {bound: stats.sign_test(each, bound) for bound in statement.bounds if math.isfinite(bound)}
    if statement.timed:
        return estimate(statement.bounds, stats.median_interval(each), p, "signs")
    exact = estimate(statement.bounds, Interval(each[0], each[0], each[0], 1, stats.EXACT), p, "")
    return exact._replace(p=math.nan)
