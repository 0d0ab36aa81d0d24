"""A paper's results beside ours: which agree, which differ, and which our seeds can't decide.

Ours are on the same split scheme, metric and kind of network: with the preset named after the paper if it was run, else
with the default preset or any other, which is reported. The difference is ours minus theirs, with its 95 % interval:
Welch's from summary statistics where the paper gives a ±, which is taken for a standard deviation over its seeds unless
it says otherwise; else the interval of our seeds, with the published value taken as exact.

agrees: the whole interval lies within the tolerance (5 points). differs: the whole interval lies outside. underpowered:
neither, or fewer seeds than the variance of the split scheme needs. The best of k seeds has no interval: our best of as
many seeds agrees if it lies within the tolerance.
"""

import math
import re
import unicodedata
from collections.abc import Sequence
from statistics import variance
from typing import NamedTuple

import tasks
from tasks.errors import one_of
from tfstudy.analysis.claims import metric_by_seed, metric_interval
from tfstudy.analysis.condition_selection import closest, preset_distance
from tfstudy.analysis.conditions import Condition
from tfstudy.analysis.intervals import Interval, t_quantile
from tfstudy.analysis.power import MAX_SEEDS
from tfstudy.analysis.published import ARCHITECTURES, Published, all_published
from tfstudy.analysis.statements import METRICS, minimum_seeds
from tfstudy.config.files import configs

TOLERANCE = 5.0  # points
AGREES, DIFFERS, UNDERPOWERED, NOT_RUN, NO_COUNTERPART = (
    "agrees",
    "differs",
    "underpowered",
    "not run",
    "no counterpart",
)
SETTINGS = {"lake-2018": "overall-best", "dessi-2019": "best config"}  # how the settings begin that a preset reproduces


class Reproduction(NamedTuple):
    """A published result and ours."""

    published: Published
    conditions: tuple[Condition, ...]  # ours: one, or all from which the best seed is taken
    ours: Interval | None
    difference: Interval | None  # ours minus theirs
    unlike: str  # how our network or settings differ from the paper's, as far as known
    verdict: str
    reason: str


def papers() -> dict[str, list[Published]]:
    """Return the results of each paper in `configs/published.csv`, by author and year, such as lake-2018."""
    out: dict[str, list[Published]] = {}
    for figure in all_published():
        out.setdefault(_short_name(figure["paper"]), []).append(figure)
    return out


def paper(name: str) -> list[Published]:
    """Return a paper's results; `UserError` with the nearest name for an unknown one."""
    known = papers()
    return known[one_of("paper", name, sorted(known))]


def _short_name(citation: str) -> str:
    plain = unicodedata.normalize("NFKD", citation).encode("ascii", "ignore").decode().lower()
    match = re.search(r"(\w+).*?(\d{4})", plain)
    return f"{match[1]}-{match[2]}" if match else plain.replace(" ", "-")


def command(name: str) -> str:
    """Return the command that runs the counterparts of a paper's results; empty if there are none."""
    if (configs() / "grids" / f"{name}.yaml").exists():
        return f"tfstudy grid {name}"
    wanted = [(figure["task"], figure["split"], architecture(figure)) for figure in paper(name) if not _missing(figure)]
    if not wanted:
        return ""
    task, splits, archs = ({figure[i]: None for figure in wanted} for i in range(3))
    files = " --set data.root=DIR" if any(split.startswith("mcd") for split in splits) else ""  # a copy of SCAN
    return f"tfstudy grid --task {','.join(task)} --split {','.join(splits)} --arch {','.join(archs)} --seed 0-4{files}"


def architecture(figure: Published) -> str:
    """Return the name of our architecture of this kind of network; empty if there is none."""
    return next((arch for arch, names in ARCHITECTURES.items() if figure["arch"] in names), "")


def compare_paper(name: str, conditions: Sequence[Condition], tolerance: float = TOLERANCE) -> list[Reproduction]:
    """Compare every result of a paper with ours; `tolerance` in points."""
    return [_compare_figure(name, figure, conditions, tolerance) for figure in paper(name)]


def _compare_figure(name: str, figure: Published, conditions: Sequence[Condition], tolerance: float) -> Reproduction:
    def empty(verdict: str, reason: str) -> Reproduction:
        return Reproduction(figure, (), None, None, "", verdict, reason)

    if missing := _missing(figure):
        return empty(NO_COUNTERPART, missing)
    metric = next(key for key, text in METRICS.items() if text == figure["metric"])
    known = [one for one in conditions if _same_examples(one, figure) and metric_by_seed(one, metric)]
    if not known:
        return empty(NOT_RUN, "no finished run on this split scheme")
    if best_of := re.search(r"best of (\d+) seeds", figure["spread"]):
        values = [value for one in known for value in metric_by_seed(one, metric).values()]
        ours = Interval(max(values), math.nan, math.nan, len(values), "best")
        gap = ours._replace(mean=ours.mean - published_value(figure))
        verdict = _judge_best(gap.mean, gap.n, int(best_of[1]), tolerance)
        return Reproduction(figure, tuple(known), ours, gap, "not the paper's settings", *verdict)
    one = closest(known, lambda condition: _distance(name, figure, condition))
    values, ours = list(metric_by_seed(one, metric).values()), metric_interval(one, metric)
    gap = difference(ours, values, published_value(figure), *_deviation_and_seeds(figure))
    verdict = judge_figure(gap, values, figure, tolerance)
    return Reproduction(figure, (one,), ours, gap, _unlike(name, figure, one), *verdict)


def judge_figure(gap: Interval, values: Sequence[float], figure: Published, tolerance: float) -> tuple[str, str]:
    """Return the verdict on a difference from a published mean, and the reason; `values` are our seeds'."""
    n, minimum = len(values), minimum_seeds(figure["split"])
    if n < minimum:
        return UNDERPOWERED, f"{n} of at least {minimum} seeds"
    if -tolerance <= gap.low and gap.high <= tolerance:
        return AGREES, f"within {tolerance:g} points"
    if gap.low > tolerance or gap.high < -tolerance:
        return DIFFERS, f"ours is {'higher' if gap.mean > 0 else 'lower'} by more than {tolerance:g} points"
    more = _more_seeds(values, gap.mean, _deviation_and_seeds(figure), tolerance)
    return UNDERPOWERED, f"about {more} more seed{'s' * (more != 1)}" if more else "no number of our seeds decides it"


def difference(ours: Interval, values: Sequence[float], value: float, deviation: float, seeds: int) -> Interval:
    """Return ours minus theirs: Welch's interval for a published standard deviation, else that of our mean, shifted."""
    mean = ours.mean - value
    error = deviation**2 / seeds if seeds else 0.0
    if len(values) < 2:  # the interval within one run is not one over seeds
        return Interval(mean, math.nan, math.nan, ours.n, "")
    if not error:
        return Interval(mean, ours.low - value, ours.high - value, ours.n, ours.method)
    half = _half_width(variance(values), len(values), error, seeds)
    # our own interval may be wider, if our seeds all have the same result
    return Interval(mean, min(mean - half, ours.low - value), max(mean + half, ours.high - value), ours.n, "Welch")


def _half_width(our_variance: float, n: int, error: float, seeds: int) -> float:
    own = our_variance / n
    degrees = (own + error) ** 2 / (own**2 / (n - 1) + (error**2 / (seeds - 1) if seeds > 1 else 0.0))
    return t_quantile(0.975, degrees) * math.sqrt(own + error)


def _more_seeds(values: Sequence[float], gap: float, theirs: tuple[float, int], tolerance: float) -> int | None:
    """Return how many more of our seeds would decide a difference of this size; None if no number would."""
    deviation, seeds = theirs
    error, own = deviation**2 / seeds if seeds else 0.0, variance(values)
    if not own:
        return None
    for n in range(len(values) + 1, MAX_SEEDS + 1):
        half = _half_width(own, n, error, seeds)
        if abs(gap) + half <= tolerance or abs(gap) > half:
            return n - len(values)
    return None


def _judge_best(gap: float, n: int, best_of: int, tolerance: float) -> tuple[str, str]:
    if gap > tolerance or (n >= best_of and gap < -tolerance):
        return DIFFERS, f"our best of {n} is {'higher' if gap > 0 else 'lower'}"
    if n < best_of:
        return UNDERPOWERED, f"{n} of {best_of} seeds"
    return AGREES, f"our best of {n} is within {tolerance:g} points"


def published_value(figure: Published) -> float:
    """Return the published value in percent; `~100` is 100."""
    return float(figure["value"].lstrip("~"))


def _deviation_and_seeds(figure: Published) -> tuple[float, int]:
    """Return the published standard deviation and number of seeds; zeros if there is none."""
    plain = re.fullmatch(r"\d+(\.\d+)?", figure["spread"]) and figure["seeds"].isdigit()
    return (float(figure["spread"]), int(figure["seeds"])) if plain else (0.0, 0)


def _missing(figure: Published) -> str:
    if not architecture(figure):
        return "no network of this kind in tfstudy"
    if figure["split"] not in tasks.find(figure["task"]).split_schemes():
        return "no such split scheme in tfstudy"
    if figure["metric"] not in METRICS.values():
        return "no such metric in tfstudy"
    return "not a mean over seeds" if figure["setting"].startswith("max over") else ""


def _same_examples(condition: Condition, figure: Published) -> bool:
    lengths = re.search(r"tested on (\d+)-(\d+)", figure["setting"])
    test_set = "_".join(("test", *lengths.groups())) if lengths else figure["test"]
    ours = (condition.task, condition.split, condition.test_set, condition.arch)
    return ours == (figure["task"], figure["split"], test_set, architecture(figure))


def _distance(name: str, figure: Published, condition: Condition) -> tuple[object, ...]:
    c = condition
    other_attention = _attention_difference(figure, c) != ""
    return other_attention, c.preset != name, c.preset != "default", *preset_distance(c, {})


def _attention_difference(figure: Published, condition: Condition) -> str:
    """Return how our recurrent network's attention differs from theirs; empty if it does not."""
    if condition.arch != "lstm" or "quoting" in figure["paper"]:  # unknown for quoted results
        return ""
    theirs = "attention" in figure["arch"]
    ours = condition.config.get("model.attention", "none") != "none"
    return "" if theirs == ours else "with attention, theirs without" if ours else "without attention, theirs with"


def _unlike(name: str, figure: Published, condition: Condition) -> str:
    reasons = [_attention_difference(figure, condition)]
    if figure["arch"].startswith("GRU"):
        reasons.append("an LSTM, theirs a GRU")
    if condition.preset != name:
        reasons.append("not the paper's settings")
    elif not figure["setting"].startswith(SETTINGS.get(name, "")):
        reasons.append("the paper's settings, but not those of this result")
    if "median" in figure["seeds"]:
        reasons.append("a mean, theirs a median")
    return "; ".join(filter(None, reasons))
