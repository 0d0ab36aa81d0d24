"""A published figure beside our runs: whether runs of its own settings agree with it.

    judge_figure(figure: Figure, conditions: Sequence[Condition]) -> FigureVerdict

A figure is compared only with runs of its own settings: of the preset that it names, with nothing changed. The
difference is ours minus theirs, with an interval: Welch's with the published standard error, or Student's with the
published value as it stands where the paper gives none. Its level is 1 - .05/m, where m is the number of this paper's
figures whose settings a preset has, run or not. So all intervals of a paper hold together with 95 %.

agrees: the whole interval lies within the tolerance (5 points). differs: the whole interval lies outside. undecided:
neither, or fewer seeds than the variance of the split scheme needs.
"""

import math
from collections.abc import Iterable, Sequence
from functools import cache
from statistics import variance
from textwrap import shorten
from typing import NamedTuple

from tfstudy.analysis.claim_files import minimum_seeds
from tfstudy.analysis.comparisons import resolution
from tfstudy.analysis.conditions import Condition, closest, differing_settings, preset_text
from tfstudy.analysis.estimates import metric_by_seed, metric_interval
from tfstudy.analysis.intervals import Interval, clipped, t_quantile
from tfstudy.analysis.published import Figure, best_known, figures_of, of_same_kind
from tfstudy.analysis.significance import ALPHA, MAX_SEEDS, welch

TOLERANCE = 5.0  # points
AGREES, DIFFERS, UNDECIDED, NOT_RUN = "agrees", "differs", "undecided", "not run"
KINDS = {"median": "theirs is a median", "single": "theirs is one run", "approximate": "theirs is approximate"}
SHORT = 110  # characters of a paper's settings
OTHER_SETTINGS = "†"  # the sign of a figure that was measured under other settings than the runs beside it
SIGN_NOTE = f"{OTHER_SETTINGS} other settings than these runs"


class FigureVerdict(NamedTuple):
    """A published figure and ours."""

    figure: Figure
    condition: Condition | None  # ours, of the figure's settings; None without runs
    ours: Interval | None  # our mean with its own 95 % interval
    difference: Interval | None  # ours minus theirs
    verdict: str
    reason: str


class Gap(NamedTuple):
    """What decides on the mean of n of our seeds, beside a published value: how far apart, how uncertain."""

    excess: float  # |ours minus theirs|
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


def decide(excess: float, half_width: float, tolerance: float = TOLERANCE) -> str:
    """Return `agrees` if the whole interval lies within the tolerance, `differs` if it lies outside, or `undecided`."""
    if excess + half_width <= tolerance:
        return AGREES
    return DIFFERS if excess - half_width > tolerance else UNDECIDED


def more_seeds(gap: Gap, tolerance: float = TOLERANCE) -> int | None:
    """Return how many more of our seeds decide a gap of this size and variance; None if 1,000 seeds don't.

    The next seeds change the mean, so that about every second study of this size is decided.
    """
    for n in range(gap.n + 1, MAX_SEEDS + 1):
        if decide(gap.excess, gap._replace(n=n).half_width, tolerance) != UNDECIDED:
            return n - gap.n
    return None


@cache
def family_size(paper: str) -> int:
    """Return the number of a paper's figures that are corrected for together: those with a preset, run or not."""
    return max(1, sum(bool(figure.preset) for figure in figures_of(paper)))


def _level(figure: Figure) -> float:
    return 1 - ALPHA / family_size(figure.paper)


def has_settings(figure: Figure, condition: Condition) -> bool:
    """Whether a condition has the preset that a figure names, with nothing changed."""
    return condition.preset == figure.preset and not differing_settings(condition)


def judge_figure(figure: Figure, conditions: Iterable[Condition]) -> FigureVerdict:
    """Return the verdict on a published figure with a preset, by the conditions of its own settings.

    Of several conditions it is a current one with most seeds.
    """
    place = (figure.task, figure.split, figure.test, "", figure.family)
    same_examples = [c for c in conditions if (c.task, c.split, c.test_set, c.tag, c.arch) == place]
    if own := [condition for condition in same_examples if has_settings(figure, condition)]:
        return _judge(figure, closest(own))
    others = any(metric_by_seed(condition, figure.metric) for condition in same_examples)
    reasons = [
        f"no run with the settings of the preset {figure.preset}",
        _cannot_agree(figure),
        "" if others else "no other run on this test set",
    ]
    return FigureVerdict(figure, None, None, None, NOT_RUN, "; ".join(filter(None, reasons)))


def _judge(figure: Figure, condition: Condition) -> FigureVerdict:
    values = list(metric_by_seed(condition, figure.metric).values())
    ours, gap = metric_interval(condition, figure.metric), gap_between(figure, values, resolution(condition))
    mean, half = ours.mean - figure.value, gap.half_width if gap.n > 1 else math.nan
    difference = clipped(Interval(mean, mean - half, mean + half, gap.n, "Welch" if gap.error else "t"), -100)
    verdict, reason = _verdict(figure, condition, gap, mean)
    kind = KINDS.get(figure.value_kind, "theirs has no standard error")
    notes = [
        reason,
        _floor_or_ceiling(ours.mean, figure) if verdict == AGREES else "",
        f"{kind}, compared as if exact" if figure.standard_error is None else KINDS.get(figure.value_kind, ""),
        _cannot_agree(figure) if verdict != AGREES else "",
    ]
    return FigureVerdict(figure, condition, ours, difference, verdict, "; ".join(filter(None, notes)))


def gap_between(figure: Figure, values: Sequence[float], resolution: float = 0.0) -> Gap:
    """Return the gap between our seeds and a published value; `resolution` is what one example is worth, in percent."""
    n = len(values)
    excess = abs(sum(values) / n - figure.value) if n else math.nan
    own = max(variance(values) if n > 1 else 0.0, resolution**2 / 12)  # at least that of rounding
    return Gap(excess, own, n, figure.standard_error or 0.0, figure.n or 0, _level(figure))


def _verdict(figure: Figure, condition: Condition, gap: Gap, mean: float) -> tuple[str, str]:
    """Return the verdict on the mean of our seeds, and the reason."""
    minimum = minimum_seeds(figure.split)
    if condition.diverged:
        return UNDECIDED, f"{len(condition.diverged)} diverged, and the mean would only be over the other runs"
    if gap.n < minimum:
        return UNDECIDED, f"{gap.n} of at least {minimum} seeds"
    verdict = decide(gap.excess, gap.half_width)
    if verdict == AGREES:
        return verdict, f"within {TOLERANCE:g} points"
    if verdict == DIFFERS:
        return verdict, f"ours is {'higher' if mean > 0 else 'lower'} by more than {TOLERANCE:g} points"
    more = more_seeds(gap)
    if more is None:
        return UNDECIDED, "no number of our seeds decides it"
    return UNDECIDED, f"about {more} more seed{'s' * (more != 1)}, if mean and variance stay"


def _floor_or_ceiling(ours: float, figure: Figure) -> str:
    """Return a warning if ours and theirs are both near 0 or near 100, where networks agree that share nothing."""
    for end in (0, 100):
        if abs(ours - end) <= TOLERANCE and abs(figure.value - end) <= TOLERANCE:
            return f"both near {end}: this says little"
    return ""


def _cannot_agree(figure: Figure) -> str:
    """Return a warning if the published mean is too uncertain for any number of our seeds to agree with it."""
    error, n = figure.standard_error, figure.n or 1
    if error is None:
        return ""
    half = t_quantile((1 + _level(figure)) / 2, n - 1) * error
    if figure.value + half >= 100:  # no percentage lies beyond 0 or 100
        half = min(half, figure.value)
    if half <= TOLERANCE:
        return ""
    return f"it can differ but not agree: the published mean is uncertain by {half:.1f} points"


def unlike(figure: Figure, condition: Condition) -> str:
    """Return how the settings of a condition differ from those of a figure for the same architecture."""
    theirs = shorten(figure.settings, SHORT, placeholder=" ...")
    parts = (_attention(figure, condition), f"ours: {preset_text(condition)}; theirs: {theirs}")
    return "; ".join(filter(None, parts))


def _attention(figure: Figure, condition: Condition) -> str:
    """Return how the attention of a recurrent network differs from theirs; empty if it does not."""
    ours = condition.config.get("model.attention")
    if condition.arch != "lstm" or ours is None:
        return ""
    if figure.attention == "unknown":
        return "whether theirs has attention is unknown"
    if (ours == "none") == (figure.attention == "no"):
        return ""
    return "without attention, theirs with" if ours == "none" else "with attention, theirs without"


# Beside a condition


class Quotation(NamedTuple):
    """A published figure beside a condition."""

    figure: Figure
    same_settings: bool  # the paper's and the condition's

    @property
    def text(self) -> str:
        """`69.2 ± 8.2 [dessi-2019]†`."""
        return f"{self.figure.text} [{self.figure.paper}]{OTHER_SETTINGS * (not self.same_settings)}"


def quotations(condition: Condition, metric: str) -> list[Quotation]:
    """Return one figure of each paper: under the condition's settings if it has one, never a maximum over settings."""
    figures = of_same_kind(condition, metric)
    own = [figure for figure in figures if figure.preset == condition.preset]
    with_own = {figure.paper for figure in own}
    chosen = best_known([*own, *(figure for figure in figures if figure.paper not in with_own)])
    return [Quotation(figure, has_settings(figure, condition)) for figure in chosen]
