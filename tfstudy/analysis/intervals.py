"""Means over seeds and medians of repeated measurements, with confidence intervals; a line on a logarithmic axis.

The unit of a mean is a run (one seed), and its result is one number.
"""

import math
from collections.abc import Sequence
from functools import lru_cache
from statistics import median
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

LEVEL = 0.95  # of intervals
ORDER_STATISTICS, EXACT = "order statistics", "exact"  # methods of intervals of medians
Values = Sequence[float] | NDArray[np.float64]


class Interval(NamedTuple):
    """A mean and its confidence interval; both ends are nan for a single value."""

    mean: float
    low: float
    high: float
    n: int
    method: str  # how the ends were found, such as "t", "bootstrap", "Wilson" or the name of a test


class Fit(NamedTuple):
    """y = intercept + slope log10(x), and the confidence interval of the slope."""

    intercept: float
    slope: float
    low: float
    high: float


def interval(values: Values) -> Interval:
    """Return the mean and its interval: Student's t below 10 values, else the studentised bootstrap (Hall 1988).

    The bootstrap also holds for skewed values, such as accuracies near 0 or 100 %: from 10 seeds on its coverage is as
    promised, while that of BCa is some points too low (`benchmarks/error_rates.py`). The interval of equal
    values has no width: their uncertainty lies within the runs (`tfstudy.tasks.scoring.wilson`).
    """
    x = finite(values)
    n, mean = len(x), float(x.mean()) if len(x) else math.nan
    if n < 2:
        return Interval(mean, math.nan, math.nan, n, "t")
    error = float(x.std(ddof=1)) / math.sqrt(n)
    if n >= 10 and error:
        low, high = _studentised(x)
        if math.isfinite(low) and math.isfinite(high):  # else too many values are equal to resample
            return Interval(mean, mean - high * error, mean - low * error, n, "bootstrap")
    half = t_quantile((1 + LEVEL) / 2, n - 1) * error
    return Interval(mean, mean - half, mean + half, n, "t")


def _studentised(x: NDArray[np.float64]) -> tuple[float, float]:
    """Return quantiles of the distance of resampled means from the mean, each in its own standard errors."""
    samples = x[_resampled_indices(len(x))]
    distance, error = samples.mean(1) - x.mean(), samples.std(1, ddof=1) / math.sqrt(len(x))
    with np.errstate(divide="ignore", invalid="ignore"):
        t = np.nan_to_num(distance / error, nan=0.0, posinf=np.inf, neginf=-np.inf)
    low, high = np.quantile(t, [(1 - LEVEL) / 2, (1 + LEVEL) / 2], method="nearest")
    return float(low), float(high)


@lru_cache(maxsize=4)
def _resampled_indices(n: int) -> NDArray[np.int64]:
    """Return the indices of 9,999 samples of n values, with replacement."""
    return np.random.default_rng(0).integers(0, n, (9999, n))


def clipped(measured: Interval, low: float = 0.0, high: float = 100.0) -> Interval:
    """Return the interval within what the metric can be; that of a single value as it is."""
    return measured._replace(low=max(measured.low, low), high=min(measured.high, high)) if measured.n > 1 else measured


def median_interval(values: Sequence[float], level: float = LEVEL) -> Interval:
    """Return the median, and as its interval the nearest two order statistics of at least this coverage.

    The coverage of the k-th smallest and the k-th largest of n values is 1 - 2 P(Binomial(n, 1/2) < k). The ends are
    nan if even the smallest and the largest value do not reach the level: with 5 values and 95 %, for example.
    """
    ordered, n = sorted(values), len(values)
    if not n:
        return Interval(math.nan, math.nan, math.nan, 0, ORDER_STATISTICS)
    left_out, k = 0.0, 0
    while k < (n + 1) // 2 and 1 - 2 * (left_out + math.comb(n, k) / 2**n) >= level:
        left_out, k = left_out + math.comb(n, k) / 2**n, k + 1
    low, high = (ordered[k - 1], ordered[n - k]) if k else (math.nan, math.nan)
    return Interval(median(ordered), low, high, n, ORDER_STATISTICS)


def fewest_values(level: float = LEVEL) -> int:
    """Return the smallest number of values whose median has an interval of this level."""
    n = 2
    while 1 - 2 / 2**n < level:
        n += 1
    return n


def ratios(first: Sequence[float], second: Sequence[float]) -> list[float]:
    """Return the ratios of measurements of the same rounds."""
    return [a / b for a, b in zip(first, second, strict=True)]


def t_quantile(share: float, degrees: float) -> float:
    """Return a quantile of Student's t distribution (`scipy.special` imports ten times as fast as `scipy.stats`)."""
    from scipy.special import stdtrit

    return float(stdtrit(degrees, share))


def normal_quantile(share: float) -> float:
    """Return a quantile of the standard normal distribution."""
    from scipy.special import ndtri

    return float(ndtri(share))


def median_length(lengths: Sequence[tuple[int, bool]]) -> tuple[int, bool]:
    """Return the median of L90 or L50 over seeds, and whether it is only a lower bound.

    A length is censored if accuracy held up to the longest one tested. The lower median is taken, so that it is known
    unless half of the seeds are censored below it.
    """
    ordered = sorted(lengths)
    return ordered[(len(ordered) - 1) // 2]


def log_fit(x: Values, y: Values) -> Fit:
    """Fit y on log10(x) by least squares, with Student's interval of the slope; nan ends with fewer than 3 points."""
    from scipy import stats

    fit = stats.linregress(np.log10(np.asarray(x, float)), np.asarray(y, float))
    half = t_quantile((1 + LEVEL) / 2, len(x) - 2) * float(fit.stderr) if len(x) > 2 else math.nan
    slope = float(fit.slope)
    return Fit(float(fit.intercept), slope, slope - half, slope + half)


def finite(values: Values) -> NDArray[np.float64]:
    """Return the values as an array; `ValueError` if one is not finite."""
    x = np.asarray(values, dtype=float)
    if not np.isfinite(x).all():
        raise ValueError(f"values must be finite, got {list(values)}")
    return x
