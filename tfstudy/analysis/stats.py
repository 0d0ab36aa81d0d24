"""Statistics of results over seeds: arrays in, named tuples out. The unit is a run (one seed), its result one number.

Every interval is a plain 95 % interval: Student's of a mean, of a difference Student's if seeds are paired, else
Welch's. Whether a difference is decided goes by its q value: all comparisons of a document are one family, and q is p
adjusted for it (Benjamini & Hochberg 1995), so that of the differences called significant 5 % are expected to be none.
"""

import math
import string
from bisect import bisect_left
from collections.abc import Hashable, Sequence
from statistics import median
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import nctdtr, ndtr, stdtr, stdtrit

LEVEL = 0.95  # of intervals
ALPHA = 0.05  # expected share of false findings among all of a document
POWER = 0.8  # with which the proposed number of seeds finds a difference
MAX_SEEDS = 1000  # more are not proposed
FEWEST_VALUES = 6  # whose median has a 95 % interval: even that of all five has only 1 - 2 / 2**5 = 94 %
ORDER_STATISTICS, EXACT = "order statistics", "exact"  # methods of intervals of medians
Values = Sequence[float] | NDArray[np.float64]


class Interval(NamedTuple):
    """A mean and its confidence interval; both ends are nan for a single value."""

    mean: float
    low: float
    high: float
    n: int
    method: str  # how the ends were found, "t", "Welch", "paired t", "Wilson", or as a median's


class Difference(NamedTuple):
    """The first mean minus the second, with its 95 % interval and its test."""

    mean: float
    low: float
    high: float
    p: float  # two-sided; nan if it can't be tested
    n: int  # number of pairs, or of all values
    effect: float  # Hedges' g, in standard deviations (of the differences, if paired); nan if they are 0
    method: str  # "paired t", "Welch", "t"


Measured = TypeVar("Measured", Interval, Difference)
Name = TypeVar("Name", bound=Hashable)


# Means and medians


def interval(values: Values) -> Interval:
    """Return the mean and Student's 95 % interval; its ends are nan for a single value.

    The interval of equal values has no width: their uncertainty lies within the runs (`tfstudy.tasks.scoring.wilson`).
    """
    return Interval(*against(values, 0.0)[:3], len(values), "t")


def clipped(measured: Measured, low: float = 0.0, high: float = 100.0) -> Measured:
    """Return the interval within what the metric can be; that of a single value as it is."""
    return measured._replace(low=max(measured.low, low), high=min(measured.high, high)) if measured.n > 1 else measured


def median_interval(values: Sequence[float]) -> Interval:
    """Return the median, and as its interval the nearest two order statistics with a coverage of at least 95 %.

    The coverage of the k-th smallest and the k-th largest of n values is 1 - 2 P(Binomial(n, 1/2) < k). The ends are
    nan below `FEWEST_VALUES`.
    """
    ordered, n = sorted(values), len(values)
    coverage = (1 - 2 * sum(math.comb(n, i) for i in range(k)) / 2**n for k in range(1, (n + 1) // 2 + 1))
    k = sum(one >= LEVEL for one in coverage)
    low, high = (ordered[k - 1], ordered[n - k]) if k else (math.nan, math.nan)
    return Interval(median(ordered) if n else math.nan, low, high, n, ORDER_STATISTICS)


def log_slope(x: Values, y: Values) -> Interval:
    """Return the slope of y on log10(x) by least squares, with Student's interval; nan ends below 3 points."""
    from scipy import stats  # imports ten times as slowly as scipy.special

    fit = stats.linregress(np.log10(np.asarray(x, float)), np.asarray(y, float))
    half = t_quantile((1 + LEVEL) / 2, len(x) - 2) * float(fit.stderr) if len(x) > 2 else math.nan
    return Interval(float(fit.slope), float(fit.slope) - half, float(fit.slope) + half, len(x), "t")


def t_quantile(share: float, degrees: float) -> float:
    """Return a quantile of Student's t distribution."""
    return float(stdtrit(degrees, share))


# Differences


def compare(first: Values, second: Values, paired: bool, resolution: float = 0.0, tested: bool = True) -> Difference:
    """Return the difference of two means; if paired, the results of the same seeds stand at the same place.

    It is not tested unless `tested`, with only one result of either, or without any spread.
    `resolution` is what one example is worth: results are rounded to it, so that a standard deviation is at least that
    of rounding (resolution / sqrt 12), and equal results have a test too.
    """
    x, y = np.asarray(first, float), np.asarray(second, float)
    if paired and tested:
        return _student(x - y, resolution / math.sqrt(6))._replace(method="paired t")
    n, fewer = len(x) + len(y), min(len(x), len(y))
    mean = float(x.mean() - y.mean()) if fewer else math.nan
    if not tested or fewer < 2:
        return Difference(mean, math.nan, math.nan, math.nan, n, math.nan, "Welch")
    a, b = (max(float(z.var(ddof=1)), resolution**2 / 12) for z in (x, y))
    if not a + b:
        return Difference(mean, mean, mean, math.nan, n, math.nan, "Welch")
    pooled = math.sqrt((a * (len(x) - 1) + b * (len(y) - 1)) / (n - 2))
    error, degrees = welch(a, len(x), b, len(y))
    half, p = t_quantile((1 + LEVEL) / 2, degrees) * error, float(2 * stdtr(degrees, -abs(mean / error)))
    return Difference(mean, mean - half, mean + half, p, n, mean / pooled * _hedges(n - 2), "Welch")


def against(values: Values, bound: float, resolution: float = 0.0) -> Difference:
    """Return the mean minus a bound, by Student's t test; see `compare` for `resolution`."""
    return _student(np.asarray(values, float) - bound, resolution / math.sqrt(12))


def _student(x: NDArray[np.float64], rounding: float) -> Difference:
    n, mean = len(x), float(x.mean()) if len(x) else math.nan
    if n < 2:
        return Difference(mean, math.nan, math.nan, math.nan, n, math.nan, "t")
    deviation = max(float(x.std(ddof=1)), rounding)
    if not deviation:
        return Difference(mean, mean, mean, math.nan, n, math.nan, "t")
    half = t_quantile((1 + LEVEL) / 2, n - 1) * deviation / math.sqrt(n)
    p = float(2 * stdtr(n - 1, -abs(mean / deviation * math.sqrt(n))))
    return Difference(mean, mean - half, mean + half, p, n, mean / deviation * _hedges(n - 1), "t")


def welch(first: float, n: int, second: float, m: int) -> tuple[float, float]:
    """Return the standard error of a difference of means and its degrees of freedom (Welch 1947), given variances."""
    a, b = first / n, second / m
    return math.sqrt(a + b), (a + b) ** 2 / (a**2 / (n - 1) + b**2 / (m - 1))


def q_values(p: Values) -> NDArray[np.float64]:
    """Return p values adjusted for their number (Benjamini & Hochberg 1995); nan stays nan and does not count."""
    p = np.asarray(p, dtype=float)
    order = np.argsort(p)[: int(np.isfinite(p).sum())]  # nan is last
    scaled = p[order] * len(order) / np.arange(1, len(order) + 1)
    q = np.full(len(p), math.nan)
    q[order] = np.minimum(np.minimum.accumulate(scaled[::-1])[::-1], 1.0)
    return q


def sign_test(values: Values, bound: float) -> float:
    """Return how surprising so many values on one side of a bound are if it is their median, two-sided."""
    x = np.asarray(values, dtype=float)
    n, fewer = len(x), min(int((x < bound).sum()), int((x > bound).sum()))
    return min(1.0, float(2 * sum(math.comb(n, k) for k in range(fewer + 1)) / 2**n))


def score_test(share: float, n: int, bound: float) -> float:
    """Return the p value of a share of n against a bound, below .05 where Wilson's 95 % interval excludes it."""
    if not 0 < bound < 1:  # one success, or one failure, excludes such a bound
        return 1.0 if share == bound else 0.0
    return float(2 * ndtr(-abs(share - bound) / math.sqrt(bound * (1 - bound) / n)))


def _hedges(degrees: int) -> float:
    """Return Hedges' (1981) bias correction of an effect size; nan for one degree of freedom."""
    return 1 - 3 / (4 * degrees - 1) if degrees > 1 else math.nan


# Power, and letters


def seeds_needed(effect: float, paired: bool, alpha: float = ALPHA) -> int | None:
    """Return the seeds per condition, in total, which find a true difference of this size with a power of 80 %.

    None if the difference is 0, its standard deviation is 0, or more than 1,000 seeds would be needed. The measured
    effect is taken for the true one, so that with few seeds the result is a guess within a factor of a few.
    """
    if math.isnan(effect) or not effect:
        return None
    needed = 2 + bisect_left(range(2, MAX_SEEDS + 1), POWER, key=lambda n: power_of_t(abs(effect), n, paired, alpha))
    return needed if needed <= MAX_SEEDS else None


def power_of_t(effect: float, n: int, paired: bool, alpha: float = ALPHA) -> float:
    """Return the power of a two-sided t test with n pairs, or n values per group (Cohen 1988, chapter 2)."""
    degrees = n - 1 if paired else 2 * n - 2
    centre = min(30.0, effect * math.sqrt(n if paired else n / 2))  # scipy fails beyond 30, where the power is 1 anyway
    critical = t_quantile(1 - alpha / 2, degrees)
    below = float(nctdtr(degrees, centre, -critical))  # nan where it is almost 0
    return 1 - float(nctdtr(degrees, centre, critical)) + (0.0 if math.isnan(below) else below)


def letter_groups(names: Sequence[Name], differ: Sequence[tuple[Name, Name]]) -> dict[Name, str]:
    """Return a compact letter display: two names share a letter if and only if they do not differ significantly.

    Names are taken in their order, best first, so that `a` is the best group (Piepho 2004, insert-absorb).
    """
    columns: list[set[Name]] = [set(names)]
    for first, second in differ:
        whole = [column for column in columns if not {first, second} <= column]
        split = [column - {one} for column in columns if {first, second} <= column for one in (first, second)]
        for number, column in enumerate(split):  # no whole column is within another one
            if not any(column <= other for other in (*whole, *split[number + 1 :])):
                whole.append(column)
        columns = whole
    columns.sort(key=lambda column: [names.index(name) for name in sorted(column, key=names.index)])
    letters = string.ascii_letters
    symbols = [*letters, *(f"({number})" for number in range(len(letters) + 1, len(columns) + 1))]
    return {name: "".join(symbols[i] for i, column in enumerate(columns) if name in column) for name in names}
