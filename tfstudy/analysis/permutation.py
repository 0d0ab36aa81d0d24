"""Permutation tests of differences between means, and the intervals of the differences that they do not reject."""

import math
from functools import lru_cache
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from tfstudy.analysis.intervals import Values, finite

EXACT = 16  # pairs up to which all 2^n signs are enumerated; above, they are sampled
DRAWS = 20_000
Ends = tuple[float, float]


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


def sign_interval(differences: Values, alpha: float) -> Ends:
    """Return the ends of all shifts whose subtraction leaves a p of at least alpha by `sign_permutation`.

    Subtracting d is not rejected by signs s while |sum s (x - d)| >= |sum (x - d)|. Above the mean that holds up to the
    larger of two means, that of the positive and that of the negative signs; below it, down to the smaller one.
    """
    x = finite(differences)
    exact = len(x) <= EXACT
    signs = _signs(len(x), exact)
    plus = (signs + 1) / 2
    count, total = plus.sum(1), plus @ x
    with np.errstate(divide="ignore", invalid="ignore"):
        means = np.stack([total / count, (x.sum() - total) / (len(x) - count)])
    means[:, (count == 0) | (count == len(x))] = np.nan
    return _ends(means, alpha, exact)


def label_interval(first: Values, second: Values, alpha: float) -> Ends:
    """Return the ends of all shifts of the first group that leave a p of at least alpha by `label_permutation`."""
    x, y = finite(first), finite(second)
    k, n = len(x), len(x) + len(y)
    exact = math.comb(n, k) <= DRAWS
    labels, both = _labels(n, k, exact), np.concatenate([x, y])
    centre = both.sum() * k / n
    # with a shift d, the sum of a labelling minus its centre is sums - d slopes; that of the data is sum - d slope
    sums, slopes = labels @ both - centre, labels[:, :k].sum(1) - k * k / n
    total, slope = x.sum() - centre, k - k * k / n
    with np.errstate(divide="ignore", invalid="ignore"):
        above, below = slope + slopes, slope - slopes
        shifts = np.stack([(total + sums) / above, (total - sums) / below])
        shifts[:, (above < 1e-9) | (below < 1e-9)] = np.nan
    return _ends(shifts, alpha, exact)


def _ends(shifts: NDArray[np.float64], alpha: float, exact: bool) -> Ends:
    """Return the ends of the interval, given the two shifts at which each permutation stops to be as far as the data.

    A permutation without such a shift (nan) is as far at any shift: it is the data or their mirror image.
    """
    draws = shifts.shape[1]
    needed = math.ceil(alpha * draws - 1e-9) if exact else math.ceil(alpha * (draws + 1) - 1 - 1e-9)
    unlimited = np.isnan(shifts).any(0)
    highest = np.sort(np.where(unlimited, np.inf, shifts.max(0)))[::-1]
    lowest = np.sort(np.where(unlimited, -np.inf, shifts.min(0)))
    index = min(max(needed, 1), draws) - 1
    low, high = float(lowest[index]), float(highest[index])
    width = 1e-9 * max(1.0, abs(low) if math.isfinite(low) else 1.0)  # sums in a different order round differently
    return low - width, high + width


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
