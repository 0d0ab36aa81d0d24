"""Tests of differences between means over seeds, and p values corrected for several tests.

Seeds are paired where the seed decides something that both share, else the test is Welch's. Below 8 pairs a t test
assumes normally distributed differences. From 8 on, a permutation test assumes only that signs (or labels) could have
been swapped; it is used as long as it could find anything after the correction for the number of tests.
"""

import math
from collections.abc import Mapping
from functools import lru_cache
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tfstudy.analysis.intervals import LEVEL, Values, finite, t_quantile

ALPHA = 0.05
EXACT = 16  # pairs up to which all 2^n signs are enumerated; above, they are sampled
DRAWS = 20_000
UNKNOWN = (math.nan, math.nan, math.nan)  # low, high, p of what can't be tested


class Difference(NamedTuple):
    """The first mean minus the second, with its 95 % interval and test."""

    mean: float
    low: float
    high: float
    p: float  # two-sided; nan if it can't be tested
    n: int  # number of pairs, or of all values
    effect: float  # Hedges' g, in standard deviations (of the differences, if paired); nan if they are 0
    method: str  # "paired t", "sign permutation", "Welch", "label permutation"
    note: str = ""  # a limit of the test

    @property
    def paired(self) -> bool:
        return self.method in ("paired t", "sign permutation")


def compare(
    first: Mapping[int, float], second: Mapping[int, float], paired: bool, tests: int = 1, resolution: float = 0.0
) -> Difference:
    """Return the difference of two sets of results by seed; if paired, over the seeds that both have.

    `tests` is the number of tests that are corrected for together: a permutation test is used only where it could still
    find a difference. `resolution` is what one example is worth: results are rounded to it, so that a standard
    deviation is at least that of rounding (resolution / sqrt 12), and equal results have a test too.
    """
    shared = sorted(first.keys() & second.keys())
    x, y = finite(list(first.values())), finite(list(second.values()))
    # pairs of constant values would hide how different they are
    constant = not resolution and min(len(x), len(y)) > 1 and np.ptp(x) == np.ptp(y) == 0
    if paired and len(shared) > 1 and not constant:
        return _paired(finite([first[seed] - second[seed] for seed in shared]), resolution / math.sqrt(6), tests)
    return _unpaired(x, y, resolution / math.sqrt(12), tests)


def compare_with_bound(values: Values, bound: float, resolution: float = 0.0) -> Difference:
    """Return the mean minus a bound, by Student's t test: a permutation would need symmetry about the bound."""
    difference = _paired(finite(values) - bound, resolution / math.sqrt(12), 0)
    return difference._replace(method=difference.method.removeprefix("paired "))


def _paired(x: NDArray[np.float64], rounding: float, tests: int) -> Difference:
    """Test differences of pairs; with `tests` 0, never by permutation."""
    n = len(x)
    if n < 2:
        return Difference(float(x.mean()) if n else math.nan, *UNKNOWN, n, math.nan, "paired t", _too_few(n))
    mean, deviation = float(x.mean()), max(float(x.std(ddof=1)), rounding)
    half = t_quantile((1 + LEVEL) / 2, n - 1) * deviation / math.sqrt(n)
    effect = mean / deviation * _hedges(n - 1) if deviation else math.nan
    smallest_p = 2.0 ** (1 - n)
    if (n >= 8 and tests and smallest_p * tests <= ALPHA) or not deviation:  # t is undefined without deviation
        return Difference(mean, mean - half, mean + half, sign_permutation(x), n, effect, "sign permutation")
    p = two_sided_p(mean / deviation * math.sqrt(n), n - 1)
    note = f"{n} pairs: {_limit(smallest_p, tests)}" if smallest_p * max(tests, 1) > ALPHA else ""
    return Difference(mean, mean - half, mean + half, p, n, effect, "paired t", note)


def _unpaired(x: NDArray[np.float64], y: NDArray[np.float64], rounding: float, tests: int) -> Difference:
    n, fewer = len(x) + len(y), min(len(x), len(y))
    mean = float(x.mean() - y.mean()) if fewer else math.nan
    if fewer < 2:
        return Difference(mean, *UNKNOWN, n, math.nan, "Welch", _too_few(fewer))
    first, second = (max(float(z.var(ddof=1)), rounding**2) for z in (x, y))
    pooled = math.sqrt((first * (len(x) - 1) + second * (len(y) - 1)) / (n - 2))
    effect = mean / pooled * _hedges(n - 2) if pooled else math.nan
    smallest_p = (1 + (len(x) == len(y))) / math.comb(n, len(x))
    low = high = mean
    if pooled:
        a, b = first / len(x), second / len(y)
        degrees = (a + b) ** 2 / (a**2 / (len(x) - 1) + b**2 / (len(y) - 1))  # Welch 1947
        half = t_quantile((1 + LEVEL) / 2, degrees) * math.sqrt(a + b)
        low, high = mean - half, mean + half
    if (fewer >= 8 and smallest_p * tests <= ALPHA) or not pooled:
        return Difference(mean, low, high, label_permutation(x, y), n, effect, "label permutation")
    p = two_sided_p(mean / math.sqrt(a + b), degrees)
    note = f"{len(x)} and {len(y)} values: {_limit(smallest_p, tests)}" if smallest_p * tests > ALPHA else ""
    return Difference(mean, low, high, p, n, effect, "Welch", note)


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


def holm(p: Values) -> list[float]:
    """Return the p values corrected for their number (Holm 1979); a nan stays nan and does not count as a test."""
    tested = sorted((value, index) for index, value in enumerate(p) if not math.isnan(value))
    out = [math.nan] * len(p)
    highest = 0.0
    for rank, (value, index) in enumerate(tested):
        highest = max(highest, min(1.0, (len(tested) - rank) * value))
        out[index] = highest
    return out


# Permutation tests


def sign_permutation(differences: Values) -> float:
    """Return how often random signs give as large a sum, two-sided (Fisher 1935, Design of Experiments, sec. 21)."""
    x = finite(differences)
    exact = len(x) <= EXACT
    return _share(_as_large(_signs(len(x), exact) @ x, x.sum(), x), exact)


def label_permutation(first: Values, second: Values) -> float:
    """Return how often random labels give as large a difference of means, two-sided (Pitman 1937)."""
    x, y = finite(first), finite(second)
    both, k, n = np.concatenate([x, y]), len(x), len(x) + len(y)
    exact = math.comb(n, k) <= DRAWS
    # the sum of the first group determines the difference of means; at the centre, that difference is 0
    centre = both.sum() * k / n
    return _share(_as_large(_labels(n, k, exact) @ both - centre, x.sum() - centre, both), exact)


@lru_cache(maxsize=4)
def _signs(n: int, exact: bool) -> NDArray[np.float64]:
    """Return all 2^n ways to give n numbers signs, or a sample of them, one in each row."""
    if exact:
        return np.where(np.arange(2**n)[:, None] >> np.arange(n) & 1, -1.0, 1.0)
    return np.random.default_rng(0).choice(np.array([1.0, -1.0]), (DRAWS, n))


@lru_cache(maxsize=4)
def _labels(n: int, k: int, exact: bool) -> NDArray[np.float64]:
    """Return all ways to choose k of n, or a sample of them, one in each row, with 1 for the chosen ones."""
    if exact:
        chosen = np.array(list(combinations(range(n), k)))
    else:
        chosen = np.random.default_rng(0).random((DRAWS, n)).argsort(1)[:, :k]
    out = np.zeros((len(chosen), n))
    np.put_along_axis(out, chosen, 1.0, 1)
    return out


def _share(as_large: NDArray[np.bool_], exact: bool) -> float:
    """Return the p value: for samples, the observation counts as one more (Phipson & Smyth 2010)."""
    return float(as_large.mean()) if exact else float((1 + as_large.sum()) / (1 + len(as_large)))


def _as_large(sums: NDArray[np.float64], observed: float, x: NDArray[np.float64]) -> NDArray[np.bool_]:
    tolerance = 1e-9 * max(1.0, float(np.abs(x).sum()))  # sums in a different order round differently
    return np.abs(sums) >= abs(observed) - tolerance
