"""Statistical power: how many seeds a study needs to find a difference of a given size."""

import math
from bisect import bisect_left

from tfstudy.analysis.intervals import t_quantile
from tfstudy.analysis.significance import ALPHA, Difference

POWER = 0.8
MAX_SEEDS = 1000  # more are not proposed


def seeds_needed(difference: Difference, alpha: float = ALPHA) -> int | None:
    """Return the seeds per condition, in total, which find a true difference of this size with a power of 80 %.

    None if the difference is 0, its standard deviation is 0, or more than 1,000 seeds would be needed. The measured
    difference is taken for the true one, so that with few seeds the result is a guess within a factor of a few.
    """
    effect, paired = abs(difference.effect), difference.paired
    if math.isnan(effect) or not effect:
        return None
    needed = 2 + bisect_left(range(2, MAX_SEEDS + 1), POWER, key=lambda n: power_of_t(effect, n, paired, alpha))
    return needed if needed <= MAX_SEEDS else None


def power_of_t(effect: float, n: int, paired: bool, alpha: float = ALPHA) -> float:
    """Return the power of a two-sided t test with n pairs, or n values per group (Cohen 1988, chapter 2)."""
    from scipy.special import nctdtr

    degrees = n - 1 if paired else 2 * n - 2
    centre = min(30.0, effect * math.sqrt(n if paired else n / 2))  # scipy fails beyond 30, where the power is 1 anyway
    critical = t_quantile(1 - alpha / 2, degrees)
    below = float(nctdtr(degrees, centre, -critical))  # nan where it is almost 0
    return 1 - float(nctdtr(degrees, centre, critical)) + (0.0 if math.isnan(below) else below)
