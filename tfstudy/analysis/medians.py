"""Medians of repeated measurements and of their ratios, with intervals that assume no distribution."""

from collections.abc import Sequence
from math import comb, nan
from statistics import median

from tfstudy.analysis.intervals import LEVEL, Interval

METHOD, EXACT = "order statistics", "exact"


def median_interval(values: Sequence[float], level: float = LEVEL) -> Interval:
    """Return the median, and as its interval the nearest two order statistics of at least this coverage.

    The coverage of the k-th smallest and the k-th largest of n values is 1 - 2 P(Binomial(n, 1/2) < k). The ends are
    nan if even the smallest and the largest value do not reach the level: with 5 values and 95 %, for example.
    """
    ordered, n = sorted(values), len(values)
    if not n:
        return Interval(nan, nan, nan, 0, METHOD)
    left_out, k = 0.0, 0
    while k < (n + 1) // 2 and 1 - 2 * (left_out + comb(n, k) / 2**n) >= level:
        left_out, k = left_out + comb(n, k) / 2**n, k + 1
    low, high = (ordered[k - 1], ordered[n - k]) if k else (nan, nan)
    return Interval(median(ordered), low, high, n, METHOD)


def fewest_values(level: float = LEVEL) -> int:
    """Return the smallest number of values whose median has an interval of this level."""
    n = 2
    while 1 - 2 / 2**n < level:
        n += 1
    return n


def ratios(first: Sequence[float], second: Sequence[float]) -> list[float]:
    """Return the ratios of measurements of the same rounds."""
    return [a / b for a, b in zip(first, second, strict=True)]
