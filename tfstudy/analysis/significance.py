"""Tests of differences between means over seeds, each with the interval that agrees with it.

All comparisons of a document are one family of tests. Each is tested at .05 divided by their number m (Bonferroni): its
corrected p is m times p, and its interval has the level 1 - .05/m. So the corrected p is below .05 exactly where the
interval excludes 0, all intervals together hold with 95 %, and no comparison depends on the results of another.

Seeds are paired where the seed decides something that both share, and both have the same seeds, else the test is
Welch's. Below 8 pairs a t test
assumes normally distributed differences. From 8 on, a permutation test assumes only that signs (or labels) could have
been swapped; it is used as long as it could find anything after the correction, and its interval holds the
differences that it does not reject.
"""

import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from tfstudy.analysis.intervals import Values, finite, t_quantile
from tfstudy.analysis.permutation import (
    DRAWS,
    EXACT,
    label_interval,
    label_permutation,
    sign_interval,
    sign_permutation,
)

ALPHA = 0.05
UNKNOWN = (math.nan, math.nan, math.nan)  # low, high, p of what can't be tested
UNPAIRED = ("Welch", "label permutation")  # the tests of seeds that are not paired


class Difference(NamedTuple):
    """The first mean minus the second, with its test and the interval that agrees with it."""

    mean: float
    low: float  # of the interval whose level is corrected for the number of tests
    high: float
    p: float  # two-sided, not corrected; nan if it can't be tested
    n: int  # number of pairs, or of all values
    effect: float  # Hedges' g, in standard deviations (of the differences, if paired); nan if they are 0
    method: str  # "paired t", "sign permutation", "Welch", "label permutation", "t"
    note: str = ""  # a limit of the test, or why there is none

    @property
    def paired(self) -> bool:
        return self.method not in UNPAIRED

    @property
    def assumes_normality(self) -> bool:
        return not self.method.endswith("permutation")


def corrected(p: float, tests: int) -> float:
    """Return a p value corrected for the number of tests (Bonferroni); nan stays nan."""
    return p if math.isnan(p) else min(1.0, tests * p)


def compare(
    first: Mapping[int, float], second: Mapping[int, float], paired: bool, tests: int = 1, resolution: float = 0.0
) -> Difference:
    """Return the difference of two sets of results by seed; if paired, over the seeds that both have.

    `tests` is the number of tests that are corrected for together. `resolution` is what one example is worth: results
    are rounded to it, so that a standard deviation is at least that of rounding (resolution / sqrt 12), and equal
    results have a test too.
    """
    shared = sorted(first.keys() & second.keys())
    x, y = finite(list(first.values())), finite(list(second.values()))
    # pairs of constant values would hide how different they are
    constant = not resolution and min(len(x), len(y)) > 1 and np.ptp(x) == np.ptp(y) == 0
    if paired and len(shared) > 1 and not constant:
        return _paired(finite([first[seed] - second[seed] for seed in shared]), resolution / math.sqrt(6), tests)
    return _unpaired(x, y, resolution / math.sqrt(12), tests)


def not_compared(first: Mapping[int, float], second: Mapping[int, float], reason: str) -> Difference:
    """Return the difference of two sets of results by seed that is not tested, with the reason."""
    x, y = finite(list(first.values())), finite(list(second.values()))
    mean = float(x.mean() - y.mean()) if min(len(x), len(y)) else math.nan
    return Difference(mean, *UNKNOWN, len(x) + len(y), math.nan, "Welch", reason)


def compare_with_bound(values: Values, bound: float, tests: int = 1, resolution: float = 0.0) -> Difference:
    """Return the mean minus a bound, by Student's t test: a permutation would need symmetry about the bound."""
    x = finite(values) - bound
    if len(x) < 2:
        return Difference(float(x.mean()) if len(x) else math.nan, *UNKNOWN, len(x), math.nan, "t", _too_few(len(x)))
    return _t(x, max(float(x.std(ddof=1)), resolution / math.sqrt(12)), tests)._replace(method="t")


def _paired(x: Values, rounding: float, tests: int) -> Difference:
    """Test differences of pairs."""
    x = finite(x)
    n = len(x)
    if n < 2:
        return Difference(float(x.mean()) if n else math.nan, *UNKNOWN, n, math.nan, "paired t", _too_few(n))
    mean, deviation = float(x.mean()), max(float(x.std(ddof=1)), rounding)
    smallest_p = max(2.0 ** (1 - n), 1 / DRAWS if n > EXACT else 0.0)
    if (n >= 8 and smallest_p * tests < ALPHA) or not deviation:  # t is undefined without deviation
        ends = sign_interval(x, ALPHA / tests)
        effect = mean / deviation * _hedges(n - 1) if deviation else math.nan
        return Difference(mean, *ends, sign_permutation(x), n, effect, "sign permutation")
    note = f"{n} pairs: {_limit(smallest_p, tests)}" if smallest_p * tests > ALPHA else ""
    return _t(x, deviation, tests)._replace(note=note)


def _t(x: Values, deviation: float, tests: int) -> Difference:
    x = finite(x)
    n, mean = len(x), float(np.mean(x))
    if not deviation:
        return Difference(mean, mean, mean, math.nan, n, math.nan, "paired t")
    half = t_quantile(1 - ALPHA / tests / 2, n - 1) * deviation / math.sqrt(n)
    p = two_sided_p(mean / deviation * math.sqrt(n), n - 1)
    return Difference(mean, mean - half, mean + half, p, n, mean / deviation * _hedges(n - 1), "paired t")


def _unpaired(x: Values, y: Values, rounding: float, tests: int) -> Difference:
    x, y = finite(x), finite(y)
    n, fewer = len(x) + len(y), min(len(x), len(y))
    mean = float(x.mean() - y.mean()) if fewer else math.nan
    if fewer < 2:
        return Difference(mean, *UNKNOWN, n, math.nan, "Welch", _too_few(fewer))
    first, second = (max(float(z.var(ddof=1)), rounding**2) for z in (x, y))
    pooled = math.sqrt((first * (len(x) - 1) + second * (len(y) - 1)) / (n - 2))
    effect = mean / pooled * _hedges(n - 2) if pooled else math.nan
    labels = math.comb(n, len(x))
    smallest_p = (1 + (len(x) == len(y))) / min(labels, DRAWS)
    if (fewer >= 8 and smallest_p * tests < ALPHA) or not pooled:
        ends = label_interval(x, y, ALPHA / tests)
        return Difference(mean, *ends, label_permutation(x, y), n, effect, "label permutation")
    error, degrees = welch(first, len(x), second, len(y))
    half = t_quantile(1 - ALPHA / tests / 2, degrees) * error
    p = two_sided_p(mean / error, degrees)
    note = f"{len(x)} and {len(y)} values: {_limit(smallest_p, tests)}" if smallest_p * tests > ALPHA else ""
    return Difference(mean, mean - half, mean + half, p, n, effect, "Welch", note)


def welch(first: float, n: int, second: float, m: int) -> tuple[float, float]:
    """Return the standard error of a difference of means and its degrees of freedom (Welch 1947), given variances."""
    a, b = first / n, second / m
    return math.sqrt(a + b), (a + b) ** 2 / (a**2 / (n - 1) + b**2 / (m - 1))


def _too_few(n: int) -> str:
    return f"{n} seed{'s' * (n != 1)}: a test needs at least 2"


def _limit(smallest_p: float, tests: int) -> str:
    family = f", before a correction for {tests} tests" if tests > 1 else ""
    return f"a test without distributional assumptions can't go below p = {smallest_p:.2g}{family}"


def _hedges(degrees: int) -> float:
    """Return Hedges' (1981) bias correction of an effect size; nan for one degree of freedom."""
    return 1 - 3 / (4 * degrees - 1) if degrees > 1 else math.nan


def two_sided_p(t: float, degrees: float) -> float:
    """Return the probability that Student's t is at least as far from 0."""
    from scipy.special import stdtr

    return float(2 * stdtr(degrees, -abs(t)))
