"""Intervals, tests and groups over seeds: a seed's run is the unit, and its figure one number.

Differences are paired by seed where what a seed decides is shared, else Welch's. Below 8 pairs a t test takes the
differences for normal; from 8 on a permutation test needs no more than that signs (or labels) could have been swapped,
as long as the number of tests that are corrected for leaves it anything to find.
"""

import math
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

ALPHA = 0.05
LEVEL = 0.95  # of intervals
POWER = 0.8
EXACT = 16  # pairs up to which all 2^n signs are tried; above, drawn ones
DRAWS = 20_000
MOST = 1000  # seeds; more are not proposed
Values = Sequence[float] | NDArray[np.float64]


class Interval(NamedTuple):
    """A mean and its interval; both ends are nan with one value."""

    mean: float
    low: float
    high: float
    n: int
    method: str  # "t" or "bootstrap"


class Difference(NamedTuple):
    """How much more the first has than the second."""

    mean: float
    low: float
    high: float
    p: float  # two-sided; nan if it can't be tested
    n: int  # pairs, or values of both
    effect: float  # Hedges' g: the difference in standard deviations, of the differences if paired; nan if they are 0
    method: str  # "paired t", "sign permutation", "Welch", "label permutation"
    note: str = ""  # what limits the verdict


class Fit(NamedTuple):
    """y = intercept + slope log10(x), and the slope's interval."""

    intercept: float
    slope: float
    low: float
    high: float
    r2: float


def interval(values: Values, level: float = LEVEL) -> Interval:
    """Of the mean over seeds: Student's, and from 10 values on the studentised bootstrap (Hall 1988).

    The latter is right for skewed figures too, which those near 0 or 100 % are: it covers as promised from 10 seeds on,
    where BCa's does some points too seldom (`benchmarks/analysis/error_rates.py`). Equal values have an interval of no
    width: what is not known of them is within the runs (`tasks.scoring.wilson`).
    """
    x = _finite(values)
    n, mean = len(x), float(x.mean()) if len(x) else math.nan
    if n < 2:
        return Interval(mean, math.nan, math.nan, n, "t")
    error = float(x.std(ddof=1)) / math.sqrt(n)
    if n >= 10 and error:
        low, high = _studentised(x, level)
        if math.isfinite(low) and math.isfinite(high):  # else too many are equal to draw from
            return Interval(mean, mean - high * error, mean - low * error, n, "bootstrap")
    half = quantile((1 + level) / 2, n - 1) * error
    return Interval(mean, mean - half, mean + half, n, "t")


def _studentised(x: NDArray[np.float64], level: float) -> tuple[float, float]:
    """The quantiles of drawn means' distance from the mean, each in its own standard errors."""
    drawn = x[_draws(len(x))]
    distance, error = drawn.mean(1) - x.mean(), drawn.std(1, ddof=1) / math.sqrt(len(x))
    with np.errstate(divide="ignore", invalid="ignore"):
        t = np.nan_to_num(distance / error, nan=0.0, posinf=np.inf, neginf=-np.inf)
    low, high = np.quantile(t, [(1 - level) / 2, (1 + level) / 2], method="nearest")
    return float(low), float(high)


@lru_cache(maxsize=4)
def _draws(n: int) -> NDArray[np.int64]:
    """Which of n values each of 9,999 samples has."""
    return np.random.default_rng(0).integers(0, n, (9999, n))


def compare(
    first: Mapping[int, float], second: Mapping[int, float], paired: bool, tests: int = 1, step: float = 0.0
) -> Difference:
    """The difference of two sets of figures by seed, with a 95 % interval; paired, it is over the seeds that both have.

    `tests` is how many are corrected for together: a permutation is used only where it could still find something then.
    `step` is what one example is worth: figures are rounded to it, so no spread counts as less than rounding makes
    (step / sqrt 12 for a figure), and figures that are all equal have a test too.
    """
    shared = sorted(first.keys() & second.keys())
    x, y = _finite(list(first.values())), _finite(list(second.values()))
    alike = not step and min(len(x), len(y)) > 1 and np.ptp(x) == np.ptp(y) == 0  # pairs would hide how far apart
    if paired and len(shared) > 1 and not alike:
        return _paired(_finite([first[seed] - second[seed] for seed in shared]), step / math.sqrt(6), tests)
    return _unpaired(x, y, step / math.sqrt(12), tests)


def against(values: Values, bound: float, step: float = 0.0) -> Difference:
    """How far the mean of figures is from a bound, by Student's t: signs would have to be symmetric about the bound."""
    found = _paired(_finite(values) - bound, step / math.sqrt(12), 0)
    return found._replace(method=found.method.removeprefix("paired "))


def _paired(x: NDArray[np.float64], rounding: float, tests: int) -> Difference:
    """`tests` 0 asks for no permutation."""
    n = len(x)
    if n < 2:
        return Difference(float(x.mean()) if n else math.nan, *3 * (math.nan,), n, math.nan, "paired t", _few(n))
    mean, spread = float(x.mean()), max(float(x.std(ddof=1)), rounding)
    half = quantile((1 + LEVEL) / 2, n - 1) * spread / math.sqrt(n)
    effect = mean / spread * _correction(n - 1) if spread else math.nan
    least = 2.0 ** (1 - n)
    if (n >= 8 and tests and least * tests <= ALPHA) or not spread:  # differences without spread would have any t
        return Difference(mean, mean - half, mean + half, sign_permutation(x), n, effect, "sign permutation")
    p = two_sided(mean / spread * math.sqrt(n), n - 1)
    note = f"{n} pairs: {_floor(least, tests)}" if least * max(tests, 1) > ALPHA else ""
    return Difference(mean, mean - half, mean + half, p, n, effect, "paired t", note)


def _unpaired(x: NDArray[np.float64], y: NDArray[np.float64], rounding: float, tests: int) -> Difference:
    n, fewer = len(x) + len(y), min(len(x), len(y))
    mean = float(x.mean() - y.mean()) if fewer else math.nan
    if fewer < 2:
        return Difference(mean, *3 * (math.nan,), n, math.nan, "Welch", _few(fewer))
    first, second = (max(float(z.var(ddof=1)), rounding**2) for z in (x, y))
    pooled = math.sqrt((first * (len(x) - 1) + second * (len(y) - 1)) / (n - 2))
    effect = mean / pooled * _correction(n - 2) if pooled else math.nan
    least = (1 + (len(x) == len(y))) / math.comb(n, len(x))
    low = high = mean
    if pooled:
        a, b = first / len(x), second / len(y)
        degrees = (a + b) ** 2 / (a**2 / (len(x) - 1) + b**2 / (len(y) - 1))  # Welch 1947
        half = quantile((1 + LEVEL) / 2, degrees) * math.sqrt(a + b)
        low, high = mean - half, mean + half
    if (fewer >= 8 and least * tests <= ALPHA) or not pooled:
        return Difference(mean, low, high, label_permutation(x, y), n, effect, "label permutation")
    p = two_sided(mean / math.sqrt(a + b), degrees)
    note = f"{len(x)} and {len(y)} values: {_floor(least, tests)}" if least * tests > ALPHA else ""
    return Difference(mean, low, high, p, n, effect, "Welch", note)


def _floor(least: float, tests: int) -> str:
    """What a test without assumptions could do."""
    family = f", before a correction for {tests} tests" if tests > 1 else ""
    return f"a test without assumptions can't go below p = {least:.2g}{family}"


def sign_permutation(differences: Values) -> float:
    """How often random signs give as large a sum, two-sided (Fisher 1935, The Design of Experiments, section 21)."""
    x = _finite(differences)
    exact = len(x) <= EXACT
    return _share(_as_large(_signs(len(x), exact) @ x, x.sum(), x), exact)


def label_permutation(first: Values, second: Values) -> float:
    """How often random labels give as large a difference of means, two-sided (Pitman 1937)."""
    x, y = _finite(first), _finite(second)
    both, k, n = np.concatenate([x, y]), len(x), len(x) + len(y)
    exact = math.comb(n, k) <= DRAWS
    # a sum decides a difference of means; signs are taken from the mean of all labellings, where the difference is 0
    centre = both.sum() * k / n
    return _share(_as_large(_labels(n, k, exact) @ both - centre, x.sum() - centre, both), exact)


@lru_cache(maxsize=4)
def _signs(n: int, exact: bool) -> NDArray[np.float64]:
    """A row for each way to give n numbers signs, all or some drawn ones; many pairs are tested with the same."""
    if exact:
        return np.where(np.arange(2**n)[:, None] >> np.arange(n) & 1, -1.0, 1.0)
    return np.random.default_rng(0).choice(np.array([1.0, -1.0]), (DRAWS, n))


@lru_cache(maxsize=4)
def _labels(n: int, k: int, exact: bool) -> NDArray[np.float64]:
    """A row for each way to choose k of n, with a 1 for those that are chosen."""
    if exact:
        chosen = np.array(list(combinations(range(n), k)))
    else:
        chosen = np.random.default_rng(0).random((DRAWS, n)).argsort(1)[:, :k]
    out = np.zeros((len(chosen), n))
    np.put_along_axis(out, chosen, 1.0, 1)
    return out


def _share(as_large: NDArray[np.bool_], exact: bool) -> float:
    """As p: of drawn ways, what is seen is one more (Phipson & Smyth 2010)."""
    return float(as_large.mean()) if exact else float((1 + as_large.sum()) / (1 + len(as_large)))


def _as_large(sums: NDArray[np.float64], seen: float, x: NDArray[np.float64]) -> NDArray[np.bool_]:
    tolerance = 1e-9 * max(1.0, float(np.abs(x).sum()))  # sums in another order are rounded otherwise
    return np.abs(sums) >= abs(seen) - tolerance


def holm(p: Values) -> list[float]:
    """P values corrected for as many tests (Holm 1979); a nan stays one and is not counted."""
    tested = sorted((value, index) for index, value in enumerate(p) if not math.isnan(value))
    out = [math.nan] * len(p)
    highest = 0.0
    for rank, (value, index) in enumerate(tested):
        highest = max(highest, min(1.0, (len(tested) - rank) * value))
        out[index] = highest
    return out


def letters(names: Sequence[str], differ: Sequence[tuple[str, str]]) -> dict[str, str]:
    """Groups as letters: two names share one exactly if they do not differ significantly (Piepho 2004, insert-absorb).

    Names are taken in their order, best first, so that `a` is the top group.
    """
    columns: list[set[str]] = [set(names)]
    for one, other in differ:
        split = []
        for column in columns:
            both = {one, other} <= column
            split += [column - {one}, column - {other}] if both else [column]
        columns = [c for i, c in enumerate(split) if not any(c < d or (c == d and j < i) for j, d in enumerate(split))]
    columns.sort(key=lambda column: [names.index(name) for name in sorted(column, key=names.index)])
    return {name: "".join(chr(97 + i) for i, column in enumerate(columns) if name in column) for name in names}


def seeds_needed(found: Difference, alpha: float = ALPHA, power: float = POWER) -> int | None:
    """Seeds of each, in all, with which a true difference of this size would be found with that probability.

    None if the difference is none or has no spread, or if more than 1,000 would be needed. What is measured now is
    taken for the truth, so with few seeds this is a guess within a factor of some.
    """
    if math.isnan(found.effect) or not found.effect:
        return None
    paired = found.method in ("paired t", "sign permutation")
    needed = 2 + bisect_left(range(2, MOST + 1), power, key=lambda n: power_of_t(abs(found.effect), n, paired, alpha))
    return needed if needed <= MOST else None


def power_of_t(effect: float, n: int, paired: bool, alpha: float = ALPHA) -> float:
    """Of a two-sided t test with n pairs, or n values each: how often it finds this effect (Cohen 1988, chapter 2)."""
    from scipy.special import nctdtr

    degrees = n - 1 if paired else 2 * n - 2
    centre = min(30.0, effect * math.sqrt(n if paired else n / 2))  # beyond it scipy has no answer, nor is it needed
    critical = quantile(1 - alpha / 2, degrees)
    below = float(nctdtr(degrees, centre, -critical))  # nan where it is next to nothing
    return 1 - float(nctdtr(degrees, centre, critical)) + (0.0 if math.isnan(below) else below)


def quantile(share: float, degrees: float) -> float:
    """Of Student's distribution. `scipy.special` has it at a tenth of what importing `scipy.stats` takes."""
    from scipy.special import stdtrit

    return float(stdtrit(degrees, share))


def two_sided(t: float, degrees: float) -> float:
    """How often Student's t is as far from 0."""
    from scipy.special import stdtr

    return float(2 * stdtr(degrees, -abs(t)))


def reach(lengths: Sequence[tuple[int, bool]]) -> tuple[int, bool]:
    """The median of L90 or L50 over seeds, and whether it is only known to be at least that.

    A length is censored if accuracy held up to the longest one tested. The lower median is taken, so that it is known
    unless a half of the seeds are censored below it.
    """
    ordered = sorted(lengths)
    return ordered[(len(ordered) - 1) // 2]


def log_fit(x: Values, y: Values, level: float = LEVEL) -> Fit:
    """Least squares of y on log10(x), with Student's interval of the slope; nan ends with fewer than 3 points."""
    from scipy import stats

    found = stats.linregress(np.log10(np.asarray(x, float)), np.asarray(y, float))
    half = quantile((1 + level) / 2, len(x) - 2) * float(found.stderr) if len(x) > 2 else math.nan
    slope = float(found.slope)
    return Fit(float(found.intercept), slope, slope - half, slope + half, float(found.rvalue) ** 2)


def _correction(degrees: int) -> float:
    """Hedges' (1981) correction of an effect for its bias; nan for a single degree of freedom, which says nothing."""
    return 1 - 3 / (4 * degrees - 1) if degrees > 1 else math.nan


def _few(n: int) -> str:
    return f"{n} seed{'s' * (n != 1)}: no test without 2"


def _finite(values: Values) -> NDArray[np.float64]:
    x = np.asarray(values, dtype=float)
    if not np.isfinite(x).all():
        raise ValueError(f"figures must be finite, but are {list(values)}")
    return x
