"""A paper's figures beside ours: which agree, which differ, and which can't be compared or are undecided.

    judge_figure(figure: Figure, conditions: Sequence[Condition], tolerance: float = TOLERANCE) -> Reproduction

A figure is compared only with runs of its own settings: `other settings` and `no counterpart` are no comparisons. The
difference is ours minus theirs, with an interval: Welch's with the published standard error, or Student's with the
published value as it stands where the paper gives none. Its level is 1 - .05/m, where m is the number of this paper's
figures whose settings a preset has, run or not. So all intervals of a paper hold together with 95 %.

agrees: the whole interval lies within the tolerance (5 points). differs: the whole interval lies outside. undecided:
neither, or fewer seeds than the variance of the split scheme needs. A bound can only be violated on one side. The best
of k seeds has no interval: it is compared with the best of our first k.
"""

import math
from collections.abc import Sequence
from functools import cache
from statistics import variance
from typing import NamedTuple

from tfstudy.analysis.comparisons import resolution
from tfstudy.analysis.conditions import Condition
from tfstudy.analysis.counterparts import has_preset, missing_counterpart, nearest, same_settings, unlike
from tfstudy.analysis.estimates import metric_by_seed, metric_interval
from tfstudy.analysis.intervals import Interval, clipped, t_quantile
from tfstudy.analysis.power import MAX_SEEDS
from tfstudy.analysis.published import Figure, figures_of
from tfstudy.analysis.significance import ALPHA, welch
from tfstudy.analysis.statements import minimum_seeds

TOLERANCE = 5.0  # points
AGREES, DIFFERS, UNDECIDED, NOT_RUN, OTHER_SETTINGS, NO_COUNTERPART = VERDICTS = (
    "agrees", "differs", "undecided", "not run", "other settings", "no counterpart",
)  # fmt: skip
UNKNOWN = math.nan


class Reproduction(NamedTuple):
    """A published figure and ours."""

    figure: Figure
    conditions: tuple[Condition, ...]  # ours: the one of the figure's settings, or the nearest; empty without runs
    ours: Interval | None  # our mean with its own 95 % interval, or our best
    theirs: Interval  # with the interval of the level of the difference; nan ends without a standard error
    difference: Interval | None  # ours minus theirs, under the figure's own settings only
    verdict: str
    reason: str
    unlike: str  # how our settings differ from theirs; empty if they don't


class Gap(NamedTuple):
    """What decides on the mean of n of our seeds, beside a published value: how far apart, how uncertain."""

    excess: float  # |ours minus theirs|; for a bound the distance on its wrong side, negative on the right side
    variance: float  # over our seeds
    n: int
    error: float = 0.0  # standard error of the published value; 0 if it is taken as it stands
    seeds: int = 0  # behind the published value
    level: float = 1 - ALPHA  # of the interval

    @property
    def half_width(self) -> float:
        """Half the width of the interval of the difference; infinite for a single seed."""
        if self.n < 2:
            return math.inf
        error, degrees = math.sqrt(self.variance / self.n), float(self.n - 1)
        if self.error:
            error, degrees = welch(self.variance, self.n, self.error**2 * self.seeds, self.seeds)
        return t_quantile((1 + self.level) / 2, degrees) * error


def decide(excess: float, half_width: float, tolerance: float) -> str:
    """Return `agrees` if the whole interval lies within the tolerance, `differs` if it lies outside, or `undecided`."""
    if excess + half_width <= tolerance:
        return AGREES
    return DIFFERS if excess - half_width > tolerance else UNDECIDED


def more_seeds(gap: Gap, tolerance: float) -> int | None:
    """Return how many more of our seeds decide a gap of this size and variance; None if 1,000 seeds don't.

    The next seeds change the mean, so that about every second study of this size is decided.
    """
    for n in range(gap.n + 1, MAX_SEEDS + 1):
        if decide(gap.excess, gap._replace(n=n).half_width, tolerance) != UNDECIDED:
            return n - gap.n
    return None


def compare_paper(name: str, conditions: Sequence[Condition], tolerance: float = TOLERANCE) -> list[Reproduction]:
    """Compare every figure of a paper with ours; `tolerance` in points."""
    return [judge_figure(figure, conditions, tolerance) for figure in figures_of(name)]


@cache
def family_size(paper: str) -> int:
    """Return the number of a paper's figures that are corrected for together: those with a preset, run or not."""
    return max(1, sum(has_preset(figure) for figure in figures_of(paper)))


def judge_figure(figure: Figure, conditions: Sequence[Condition], tolerance: float = TOLERANCE) -> Reproduction:
    """Return the verdict on a published figure by the conditions of its own settings; `tolerance` in points."""
    theirs = _theirs(figure)
    if missing := missing_counterpart(figure):
        return Reproduction(figure, (), None, theirs, None, NO_COUNTERPART, missing, "")
    if own := same_settings(figure, conditions):
        return _judge_best(figure, own, tolerance) if figure.best_of else _judge_mean(figure, own, tolerance)
    reason = (
        f"no run with the settings of the preset {figure.preset}" if figure.preset else "no preset has these settings"
    )
    if figure.preset and (warning := _cannot_agree(figure, tolerance)):
        reason = f"{reason}; {warning}"
    if other := nearest(figure, conditions):
        ours = metric_interval(other, figure.metric)
        return Reproduction(figure, (other,), ours, theirs, None, OTHER_SETTINGS, reason, unlike(figure, other))
    reason = f"{reason}; no other run on this test set"
    return Reproduction(figure, (), None, theirs, None, NOT_RUN, reason, "")


def _theirs(figure: Figure) -> Interval:
    error, n = figure.standard_error, figure.n or 1
    if error is None:
        return Interval(figure.value, UNKNOWN, UNKNOWN, n, "")
    half = t_quantile((1 + _level(figure)) / 2, n - 1) * error
    return clipped(Interval(figure.value, figure.value - half, figure.value + half, n, "t"))


def _level(figure: Figure) -> float:
    return 1 - ALPHA / family_size(figure.paper)


def _judge_mean(figure: Figure, condition: Condition, tolerance: float) -> Reproduction:
    values = list(metric_by_seed(condition, figure.metric).values())
    ours, theirs = metric_interval(condition, figure.metric), _theirs(figure)
    gap = gap_between(figure, values, resolution(condition))
    mean, half = ours.mean - figure.value, gap.half_width if gap.n > 1 else UNKNOWN
    method = "Welch" if gap.error else "t"
    difference = clipped(Interval(mean, mean - half, mean + half, gap.n, method), -100)
    verdict, reason = _verdict(figure, condition, gap, mean, tolerance)
    notes = [
        reason,
        _floor_or_ceiling(ours.mean, figure, tolerance) if verdict == AGREES else "",
        _as_it_stands(figure),
        _cannot_agree(figure, tolerance) if verdict != AGREES else "",
    ]
    text = "; ".join(filter(None, notes))
    return Reproduction(figure, (condition,), ours, theirs, difference, verdict, text, "")


def gap_between(figure: Figure, values: Sequence[float], resolution: float = 0.0) -> Gap:
    """Return the gap between our seeds and a published value; `resolution` is what one example is worth, in percent."""
    n, error = len(values), figure.standard_error or 0.0
    mean = sum(values) / n - figure.value if n else UNKNOWN
    own = max(variance(values) if n > 1 else 0.0, resolution**2 / 12)  # at least that of rounding
    return Gap(_excess(figure, mean), own, n, error, figure.n or 0, _level(figure))


def _excess(figure: Figure, difference: float) -> float:
    signs = {"upper_bound": difference, "lower_bound": -difference}
    return signs.get(figure.value_kind, abs(difference))


def _verdict(figure: Figure, condition: Condition, gap: Gap, mean: float, tolerance: float) -> tuple[str, str]:
    """Return the verdict on the mean of our seeds, and the reason."""
    minimum = minimum_seeds(figure.split)
    if condition.diverged:
        return UNDECIDED, f"{len(condition.diverged)} diverged, and the mean would only be over the other runs"
    if gap.n < minimum:
        return UNDECIDED, f"{gap.n} of at least {minimum} seeds"
    verdict = decide(gap.excess, gap.half_width, tolerance)
    if verdict != UNDECIDED:
        return verdict, _decided(figure, verdict, mean, tolerance)
    more = more_seeds(gap, tolerance)
    if more is None:
        return UNDECIDED, "no number of our seeds decides it"
    return UNDECIDED, f"about {more} more seed{'s' * (more != 1)}, if mean and variance stay"


def _decided(figure: Figure, verdict: str, difference: float, tolerance: float) -> str:
    if verdict == AGREES and _excess(figure, difference) < 0:
        return "ours is on the published side of the bound"
    if verdict == AGREES:
        return f"within {tolerance:g} points"
    return f"ours is {'higher' if difference > 0 else 'lower'} by more than {tolerance:g} points"


def _floor_or_ceiling(ours: float, figure: Figure, tolerance: float) -> str:
    """Return a warning if ours and theirs are both near 0 or near 100, where networks agree that share nothing."""
    for end in (0, 100) if figure.unit == "percent" else ():
        if abs(ours - end) <= tolerance and abs(figure.value - end) <= tolerance:
            return f"both near {end}: this says little"
    return ""


def _as_it_stands(figure: Figure) -> str:
    """Return what the published value lacks to be compared as a mean with a standard error."""
    kinds = {"median": "theirs is a median", "single": "theirs is one run", "approximate": "theirs is approximate"}
    kind = kinds.get(figure.value_kind, "")
    if figure.standard_error is not None or figure.value_kind in ("upper_bound", "lower_bound"):
        return kind
    return f"{kind or 'theirs has no standard error'}, compared as if exact"


def _cannot_agree(figure: Figure, tolerance: float) -> str:
    """Return a warning if the published mean is too uncertain for any number of our seeds to agree with it."""
    theirs = _theirs(figure)
    half = theirs.high - figure.value if theirs.method and theirs.high < 100 else figure.value - theirs.low
    if figure.standard_error is None or not half > tolerance:
        return ""
    return f"it can differ but not agree: the published mean is uncertain by {half:.1f} points"


def _judge_best(figure: Figure, condition: Condition, tolerance: float) -> Reproduction:
    """Judge the best of k seeds by the best of our first k, of which one that diverged has 0: there is no interval."""
    k = figure.best_of or 1
    by_seed = metric_by_seed(condition, figure.metric) | {run.result.seed: 0.0 for run in condition.diverged}
    values = [by_seed[seed] for seed in sorted(by_seed)[:k]]
    best = max(values, default=UNKNOWN)
    ours = Interval(best, UNKNOWN, UNKNOWN, len(values), "best")
    gap = ours._replace(mean=best - figure.value)
    verdict, reason = UNDECIDED, f"{len(values)} of {k} seeds"
    if len(values) == k:
        verdict = decide(_excess(figure, gap.mean), 0.0, tolerance)
        warning = _floor_or_ceiling(best, figure, tolerance) if verdict == AGREES else ""
        reason = "; ".join(
            filter(None, (f"our best of {k}: {_decided(figure, verdict, gap.mean, tolerance)}", warning))
        )
    return Reproduction(figure, (condition,), ours, _theirs(figure), gap, verdict, reason, "")
