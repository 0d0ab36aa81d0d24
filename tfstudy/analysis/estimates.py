"""What a statement of a claim is judged by: a mean over seeds, a difference of two, or a ratio of what was measured.

Means and differences are tested against the bounds of the statement; their values are metrics of test sets, or what an
instrument measured, as one number for each seed. Ratios are of what `tfstudy bench` measured, one setting over another:
speeds are compared round by round, and the median of their ratios is tested by signs. Memory and FLOPs are the
same in every repeat, so that their ratios are exact. Both settings must have been measured by one command.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from tfstudy.analysis.claim_files import BENCH_SETTINGS, ROWS, SIZES, TAKE, TAKES, TIME, Selector, Statement
from tfstudy.analysis.labels import Condition
from tfstudy.analysis.stats import (
    EXACT,
    Difference,
    Interval,
    Values,
    against,
    clipped,
    compare,
    finite,
    median_interval,
    ratios,
    score_test,
    sign_test,
)
from tfstudy.analysis.summary import DIVERGED, pairing_key, resolution
from tfstudy.errors import UserError
from tfstudy.performance.record import Record
from tfstudy.runs.display import METRIC_NAMES
from tfstudy.runs.measurement_record import Measurement, Row, read_measurement, saved_instruments
from tfstudy.tasks.scoring import wilson

Bounds = tuple[float, float]
OVER_SEEDS, SCORE = "Wilson over seeds", "score test"
DIFFERENT = "runs were measured by {} with different settings"
SHOWN = 8  # values of a column in a message


class Estimate(NamedTuple):
    """A mean, a difference of means or a ratio, with its 95 % interval, tested against the bounds of a statement."""

    interval: Interval
    bound: float  # the deciding one: the one that is violated, or else the one with the larger p
    inside: bool  # whether the mean is within the bounds
    p: float  # two-sided, against that bound; nan without a test
    test: str = ""  # its name; empty without a test
    effect: float = math.nan  # the distance from the bound in standard deviations


def estimate_statement(statement: Statement, pair: Sequence[Condition]) -> Estimate:
    """Test one condition, or the difference of two, against a statement."""
    selectors = (statement.of, statement.minus)
    each = [values_by_seed(condition, statement, own) for condition, own in zip(pair, selectors, strict=False)]
    first, percent = list(each[0].values()), not statement.instrument
    step = max(map(resolution, pair)) if percent and statement.metric != DIVERGED else 0.0
    if len(each) > 1:
        if statement.instrument:
            check_settings(pair, statement.instrument)
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
        tested = {bound: score_test(known.mean / 100, known.n, bound / 100) for bound in possible}
        bound = _deciding(bounds, known.mean, tested)
        measured = known._replace(n=len(values))
        return Estimate(measured, bound, _inside(bounds, known.mean), tested[bound], SCORE)
    tests = {bound: against(values, bound, resolution) for bound in possible}
    bound, test = next(iter(tests.items()))
    whole = Interval(bound + test.mean, bound + test.low, bound + test.high, len(values), "t")
    return _estimate(bounds, clipped(whole) if percent else whole, tests)


def estimate_difference(
    bounds: Bounds,
    first: Values,
    second: Values,
    paired: bool = True,
    resolution: float = 0.0,
    percent: bool = True,
) -> Estimate:
    """Test a difference of means against bounds. If it is not paired, n is the smaller number of seeds."""
    whole = compare(first, second, paired, resolution)
    whole = clipped(whole, -100.0) if percent else whole
    n = whole.n if paired else min(len(first), len(second))
    tests = {
        bound: compare(finite(first) - bound, second, paired, resolution) for bound in bounds if math.isfinite(bound)
    }
    return _estimate(bounds, Interval(whole.mean, whole.low, whole.high, n, whole.method), tests)


def estimate_comparison(bounds: Bounds, pair: Any, first: Condition, second: Condition) -> Estimate:
    """Return what a study's own comparison of two conditions says of a bound at 0."""
    n = pair.n if pair.method == "paired t" else min(len(first.runs), len(second.runs))
    measured = Interval(pair.mean, pair.low, pair.high, n, pair.method)
    test = pair.method if pair.tested else ""
    return Estimate(measured, 0.0, _inside(bounds, pair.mean), pair.p, test, pair.effect)


def _estimate(bounds: Bounds, measured: Interval, tests: Mapping[float, Difference]) -> Estimate:
    bound = _deciding(bounds, measured.mean, {bound: test.p for bound, test in tests.items()})
    test = tests[bound]
    name = "" if math.isnan(test.p) else test.method
    return Estimate(measured, bound, _inside(bounds, measured.mean), test.p, name, test.effect)


def _inside(bounds: Bounds, mean: float) -> bool:
    """Whether a mean is strictly above or below a single bound, or between two of them or on one."""
    low, high = bounds
    return low < mean < high if math.isinf(low) or math.isinf(high) else low <= mean <= high


def _deciding(bounds: Bounds, mean: float, p: Mapping[float, float]) -> float:
    """Return the bound on the wrong side of which the mean lies, or else the one with the larger p."""
    violated = bounds[0] if mean < bounds[0] else bounds[1]
    if violated in p and not _inside(bounds, mean):
        return violated
    return max(p, key=lambda bound: 2.0 if math.isnan(p[bound]) else p[bound])  # nan counts as the largest


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


# Ratios of what `tfstudy bench` measured


class Pair(NamedTuple):
    """Two records of one command that a statement compares."""

    of: Record
    over: Record


def find_pair(of: Selector, over: Selector, records: Sequence[Record]) -> tuple[Pair | None, int]:
    """Return the records that two selectors choose, and the number of other such pairs.

    Both are of one command, with as many repeats: the one with most of them, and of these the latest.
    """
    first, second = ([one for one in records if _matches(one, selector)] for selector in (of, over))
    pairs = [Pair(a, b) for a in first for b in second if a.machine == b.machine and len(a.seconds) == len(b.seconds)]
    pairs.sort(key=lambda pair: (len(pair.of.seconds), pair.of.machine.started))
    return (pairs[-1], len(pairs) - 1) if pairs else (None, 0)


def _matches(record: Record, selector: Selector) -> bool:
    model, train = (
        {key.removeprefix(section): value for key, value in selector.items() if key.startswith(section)}
        for section in BENCH_SETTINGS
    )
    return (
        all(getattr(record, key) == selector[key] for key in ("arch", "work", "variant", *SIZES))
        and record.machine.accelerator == selector["accelerator"]
        and all(record.model.get(key) == value for key, value in model.items())
        and record.train == train
        and bool(values_of(record, selector["quantity"]))
    )


def values_of(record: Record, quantity: str) -> list[float]:
    """Return the values of a quantity: one for each repeat, or a single exact one; none if it was not measured."""
    flops = record.flops
    exact = {
        "memory": record.memory,
        "step_memory": record.step_memory,
        "flops": flops and flops.total,
        "attention_flops": flops and flops.attention,
        "feedforward_flops": flops and flops.feedforward,
    }
    if quantity == TIME:
        return record.tokens_per_second
    value = exact[quantity]
    return [float(value)] if value else []


def estimate_ratio(statement: Statement, pair: Pair) -> Estimate:
    """Return the ratio of a pair beside the bounds of a statement."""
    first, second = values_of(pair.of, statement.of["quantity"]), values_of(pair.over, statement.over["quantity"])
    each = ratios(first, second)
    measured = median_interval(each) if statement.timed else Interval(each[0], each[0], each[0], 1, EXACT)
    p = {bound: sign_test(each, bound) for bound in statement.bounds if math.isfinite(bound)}
    bound, inside = _deciding(statement.bounds, measured.mean, p), _inside(statement.bounds, measured.mean)
    return Estimate(measured, bound, inside, *((p[bound], "signs") if statement.timed else (math.nan, "")))


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
