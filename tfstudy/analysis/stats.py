"""Statistics of results over seeds: arrays in, named tuples out. The unit is a run (one seed), its result one number.

Means have their own 95 % intervals. All comparisons of a document are one family of tests: each is tested at .05
divided by their number m (Bonferroni): its corrected p is m times p, and its interval has the level 1 - .05/m. So the
corrected p is below .05 exactly where the interval excludes 0, all intervals together hold with 95 %, and no comparison
depends on the results of another.

Seeds are paired where the seed decides something that both share, and both have the same seeds, else the test is
Welch's. Below 8 pairs a t test assumes normally distributed differences. From 8 on, a permutation test assumes only
that signs (or labels) could have been swapped; it is used as long as it could find anything after the correction, and
its interval holds the differences that it does not reject.
"""

import math
import string
from bisect import bisect_left
from collections.abc import Sequence
from functools import lru_cache
from itertools import combinations
from statistics import median
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

LEVEL = 0.95  # of the intervals of means
ALPHA = 0.05
ENUMERATED = 16  # pairs up to which all 2^n signs are enumerated; above, they are sampled
DRAWS = 20_000  # of signs or labels that are sampled
POWER = 0.8  # with which the proposed number of seeds finds a difference
MAX_SEEDS = 1000  # more are not proposed
UNKNOWN = (math.nan, math.nan, math.nan)  # low, high, p of what can't be tested
ORDER_STATISTICS, EXACT = "order statistics", "exact"  # methods of intervals of medians
UNPAIRED = ("Welch", "label permutation")  # the tests of seeds that are not paired
Values = Sequence[float] | NDArray[np.float64]
Ends = tuple[float, float]


class Interval(NamedTuple):
    """A mean and its confidence interval; both ends are nan for a single value."""

    mean: float
    low: float
    high: float
    n: int
    method: str  # how the ends were found, such as "t", "bootstrap", "Wilson" or the name of a test


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


Measured = TypeVar("Measured", Interval, Difference)


class Fit(NamedTuple):
    """y = intercept + slope log10(x), and the confidence interval of the slope."""

    intercept: float
    slope: float
    low: float
    high: float


# Means and medians


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


def _studentised(x: NDArray[np.float64]) -> Ends:
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


def clipped(measured: Measured, low: float = 0.0, high: float = 100.0) -> Measured:
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
    return next(n for n in range(2, 1000) if 1 - 2 / 2**n >= level)


def ratios(first: Sequence[float], second: Sequence[float]) -> list[float]:
    """Return the ratios of measurements of the same rounds."""
    return [a / b for a, b in zip(first, second, strict=True)]


def median_length(lengths: Sequence[tuple[int, bool]]) -> tuple[int, bool]:
    """Return the median of L90 or L50 over seeds, and whether it is only a lower bound.

    A length is censored if accuracy held up to the longest one tested. The lower median is taken, so that it is known
    unless half of the seeds are censored below it.
    """
    return sorted(lengths)[(len(lengths) - 1) // 2]


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


def t_quantile(share: float, degrees: float) -> float:
    """Return a quantile of Student's t distribution (`scipy.special` imports ten times as fast as `scipy.stats`)."""
    from scipy.special import stdtrit

    return float(stdtrit(degrees, share))


def normal_quantile(share: float) -> float:
    """Return a quantile of the standard normal distribution."""
    from scipy.special import ndtri

    return float(ndtri(share))


def two_sided_p(t: float, degrees: float) -> float:
    """Return the probability that Student's t is at least as far from 0."""
    from scipy.special import stdtr

    return float(2 * stdtr(degrees, -abs(t)))


def corrected(p: float, tests: int) -> float:
    """Return a p value corrected for the number of tests (Bonferroni); nan stays nan."""
    return p if math.isnan(p) else min(1.0, tests * p)


# Differences


def compare(first: Values, second: Values, paired: bool, tests: int = 1, resolution: float = 0.0) -> Difference:
    """Return the difference of two means; if paired, the results of the same seeds stand at the same place.

    `tests` is the number of tests that are corrected for together. `resolution` is what one example is worth: results
    are rounded to it, so that a standard deviation is at least that of rounding (resolution / sqrt 12), and equal
    results have a test too.
    """
    x, y = finite(first), finite(second)
    # pairs of constant values would hide how different they are
    constant = not resolution and min(len(x), len(y)) > 1 and np.ptp(x) == np.ptp(y) == 0
    if paired and len(x) > 1 and not constant:
        return _paired(x - y, resolution / math.sqrt(6), tests)
    return _unpaired(x, y, resolution / math.sqrt(12), tests)


def not_compared(first: Values, second: Values, reason: str) -> Difference:
    """Return the difference of two means that is not tested, with the reason."""
    x, y = finite(first), finite(second)
    mean = float(x.mean() - y.mean()) if min(len(x), len(y)) else math.nan
    return Difference(mean, *UNKNOWN, len(x) + len(y), math.nan, "Welch", reason)


def against(values: Values, bound: float, tests: int = 1, resolution: float = 0.0) -> Difference:
    """Return the mean minus a bound, by Student's t test: a permutation would need symmetry about the bound."""
    x = finite(values) - bound
    if len(x) < 2:
        return Difference(float(x.mean()) if len(x) else math.nan, *UNKNOWN, len(x), math.nan, "t", _too_few(len(x)))
    return _t(x, max(float(x.std(ddof=1)), resolution / math.sqrt(12)), tests)._replace(method="t")


def _paired(x: NDArray[np.float64], rounding: float, tests: int) -> Difference:
    """Test differences of pairs."""
    n, mean, deviation = len(x), float(x.mean()), max(float(x.std(ddof=1)), rounding)
    smallest_p = max(2.0 ** (1 - n), 1 / DRAWS if n > ENUMERATED else 0.0)
    if (n >= 8 and smallest_p * tests < ALPHA) or not deviation:  # t is undefined without deviation
        ends = sign_interval(x, ALPHA / tests)
        effect = mean / deviation * _hedges(n - 1) if deviation else math.nan
        return Difference(mean, *ends, sign_permutation(x), n, effect, "sign permutation")
    note = f"{n} pairs: {_limit(smallest_p, tests)}" if smallest_p * tests > ALPHA else ""
    return _t(x, deviation, tests)._replace(note=note)


def _t(x: NDArray[np.float64], deviation: float, tests: int) -> Difference:
    n, mean = len(x), float(np.mean(x))
    if not deviation:
        return Difference(mean, mean, mean, math.nan, n, math.nan, "paired t")
    half = t_quantile(1 - ALPHA / tests / 2, n - 1) * deviation / math.sqrt(n)
    p = two_sided_p(mean / deviation * math.sqrt(n), n - 1)
    return Difference(mean, mean - half, mean + half, p, n, mean / deviation * _hedges(n - 1), "paired t")


def _unpaired(x: NDArray[np.float64], y: NDArray[np.float64], rounding: float, tests: int) -> Difference:
    n, fewer = len(x) + len(y), min(len(x), len(y))
    mean = float(x.mean() - y.mean()) if fewer else math.nan
    if fewer < 2:
        return Difference(mean, *UNKNOWN, n, math.nan, "Welch", _too_few(fewer))
    first, second = (max(float(z.var(ddof=1)), rounding**2) for z in (x, y))
    pooled = math.sqrt((first * (len(x) - 1) + second * (len(y) - 1)) / (n - 2))
    effect = mean / pooled * _hedges(n - 2) if pooled else math.nan
    smallest_p = (1 + (len(x) == len(y))) / min(math.comb(n, len(x)), DRAWS)
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


# Permutations


def sign_permutation(differences: Values) -> float:
    """Return how often random signs give as large a sum, two-sided (Fisher 1935, Design of Experiments, sec. 21)."""
    x = finite(differences)
    exact = len(x) <= ENUMERATED
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
    exact = len(x) <= ENUMERATED
    plus = (_signs(len(x), exact) + 1) / 2
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
    from scipy.special import nctdtr

    degrees = n - 1 if paired else 2 * n - 2
    centre = min(30.0, effect * math.sqrt(n if paired else n / 2))  # scipy fails beyond 30, where the power is 1 anyway
    critical = t_quantile(1 - alpha / 2, degrees)
    below = float(nctdtr(degrees, centre, -critical))  # nan where it is almost 0
    return 1 - float(nctdtr(degrees, centre, critical)) + (0.0 if math.isnan(below) else below)


def letter_groups(names: Sequence[str], differ: Sequence[tuple[str, str]]) -> dict[str, str]:
    """Return a compact letter display: two names share a letter if and only if they do not differ significantly.

    Names are taken in their order, best first, so that `a` is the best group (Piepho 2004, insert-absorb).
    """
    columns: list[set[str]] = [set(names)]
    for first, second in differ:
        split = []
        for column in columns:
            both = {first, second} <= column
            split += [column - {first}, column - {second}] if both else [column]
        columns = [c for i, c in enumerate(split) if not any(c < d or (c == d and j < i) for j, d in enumerate(split))]
    columns.sort(key=lambda column: [names.index(name) for name in sorted(column, key=names.index)])
    letters = string.ascii_letters
    symbols = [*letters, *(f"({number})" for number in range(len(letters) + 1, len(columns) + 1))]
    return {name: "".join(symbols[i] for i, column in enumerate(columns) if name in column) for name in names}
