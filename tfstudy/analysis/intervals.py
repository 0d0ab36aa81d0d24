"""Means over seeds with 95 % confidence intervals; a line fitted on a logarithmic axis.

The unit is a run (one seed), and its result is one number.
"""

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

LEVEL = 0.95  # of intervals
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
