"""A paper's figures beside ours: which agree, which differ, and which our seeds can't tell.

Ours are of the same split, metric and kind of network: of the preset that is named after the paper if there are runs of
it, else of the default or what else there is, which is said. What is compared is ours minus theirs, with its 95 %
interval: by Welch from summary statistics where the paper gives a spread, which is taken for a standard deviation over
its seeds unless it says otherwise; else of our seeds alone, with the published figure taken as it stands.

agrees: the whole interval lies within a tolerance (5 points). differs: all of it lies outside. underpowered: neither,
or fewer seeds than splits of that variance need. Of the best of k seeds there is no interval: our best of as
many agrees if it lies within the tolerance.
"""

import math
import re
import unicodedata
from collections.abc import Sequence
from typing import NamedTuple

import tasks
from tasks.errors import one_of
from tfstudy.analysis.claims import figures, mean_of, nearest, rank
from tfstudy.analysis.conditions import Condition
from tfstudy.analysis.published import ARCHITECTURES, all_published
from tfstudy.analysis.statements import METRICS, least_seeds
from tfstudy.analysis.statistics import MOST, Interval, quantile
from tfstudy.config.files import configs

TOLERANCE = 5.0  # points
AGREES, DIFFERS, UNDERPOWERED, NOT_RUN, NONE = ("agrees", "differs", "underpowered", "not run", "no counterpart")
SETTINGS = {  # how the settings of those figures begin that the preset of that name is of
    "lake-2018": "overall-best",
    "dessi-2019": "best config",
}
Published = dict[str, str]


class Compared(NamedTuple):
    """A published figure and ours."""

    published: Published
    rows: tuple[Condition, ...]  # ours: one, or all those that the best seed is taken of
    ours: Interval | None
    difference: Interval | None  # ours minus theirs
    unlike: str  # what sets our network or settings apart from the paper's, as far as is known
    verdict: str
    why: str


def papers() -> dict[str, list[Published]]:
    """The papers of `configs/published.csv` by author and year, such as lake-2018, each with its figures."""
    out: dict[str, list[Published]] = {}
    for figure in all_published():
        out.setdefault(_short(figure["paper"]), []).append(figure)
    return out


def paper(name: str) -> list[Published]:
    """A paper's figures; `UserError` with the nearest name if there is none."""
    known = papers()
    return known[one_of("paper", name, sorted(known))]


def _short(name: str) -> str:
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode().lower()
    found = re.search(r"(\w+).*?(\d{4})", plain)
    return f"{found[1]}-{found[2]}" if found else plain.replace(" ", "-")


def command(name: str) -> str:
    """What makes the runs beside a paper's figures; empty if we have no network or split for any of them."""
    if (configs() / "grids" / f"{name}.yaml").exists():
        return f"tfstudy grid {name}"
    wanted = [(one["task"], one["split"], architecture(one)) for one in paper(name) if not _missing(one)]
    if not wanted:
        return ""
    task, splits, archs = ({one[i]: None for one in wanted} for i in range(3))
    files = " --set data.root=DIR" if any(split.startswith("mcd") for split in splits) else ""  # a copy of SCAN's
    return f"tfstudy grid --task {','.join(task)} --split {','.join(splits)} --arch {','.join(archs)} --seed 0-4{files}"


def architecture(figure: Published) -> str:
    """The one of ours that is of this kind of network; empty if none is."""
    return next((arch for arch, names in ARCHITECTURES.items() if figure["arch"] in names), "")


def compare(name: str, rows: Sequence[Condition], tolerance: float = TOLERANCE) -> list[Compared]:
    """Every figure of a paper beside ours."""
    return [_compared(name, figure, rows, tolerance) for figure in paper(name)]


def _compared(name: str, figure: Published, rows: Sequence[Condition], tolerance: float) -> Compared:
    def empty(verdict: str, why: str) -> Compared:
        return Compared(figure, (), None, None, "", verdict, why)

    if missing := _missing(figure):
        return empty(NONE, missing)
    metric = next(key for key, told in METRICS.items() if told == figure["metric"])
    here = [row for row in rows if _same_place(row, figure) and figures(row, metric)]
    if not here:
        return empty(NOT_RUN, "no finished run on this split")
    if best_of := re.search(r"best of (\d+) seeds", figure["spread"]):
        values = [value for row in here for value in figures(row, metric).values()]
        ours = Interval(max(values), math.nan, math.nan, len(values), "best")
        gap = ours._replace(mean=ours.mean - value_of(figure))
        told = _best(gap.mean, gap.n, int(best_of[1]), tolerance)
        return Compared(figure, tuple(here), ours, gap, "not the paper's settings", *told)
    row = nearest(here, lambda row: _nearness(name, figure, row))
    values, ours = list(figures(row, metric).values()), mean_of(row, metric)
    found = difference(ours, values, value_of(figure), *_spread(figure))
    told = judge(found, values, figure, tolerance)
    return Compared(figure, (row,), ours, found, _unlike(name, figure, row), *told)


def judge(found: Interval, values: Sequence[float], figure: Published, tolerance: float) -> tuple[str, str]:
    """The verdict on a difference to a published mean, and why; `values` are our seeds'."""
    n, least = len(values), least_seeds(figure["split"])
    if n < least:
        return UNDERPOWERED, f"{n} of at least {least} seeds"
    if -tolerance <= found.low and found.high <= tolerance:
        return AGREES, f"within {tolerance:g} points"
    if found.low > tolerance or found.high < -tolerance:
        return DIFFERS, f"ours is {'higher' if found.mean > 0 else 'lower'}, by more than {tolerance:g} points"
    more = _more(values, found.mean, _spread(figure), tolerance)
    return UNDERPOWERED, f"about {more} more seed{'s' * (more != 1)}" if more else "seeds of ours alone would not tell"


def difference(ours: Interval, values: Sequence[float], value: float, spread: float, seeds: int) -> Interval:
    """Ours minus theirs: Welch's interval with a published standard deviation, else that of our mean, shifted."""
    mean = ours.mean - value
    error = spread**2 / seeds if seeds else 0.0
    if len(values) < 2:  # what is known of one run is no spread over seeds
        return Interval(mean, math.nan, math.nan, ours.n, "")
    if not error:
        return Interval(mean, ours.low - value, ours.high - value, ours.n, ours.method)
    half = _half(_variance(values), len(values), error, seeds)
    # our own interval may be the wider one, where our seeds are all alike
    return Interval(mean, min(mean - half, ours.low - value), max(mean + half, ours.high - value), ours.n, "Welch")


def _half(variance: float, n: int, error: float, seeds: int) -> float:
    own = variance / n
    degrees = (own + error) ** 2 / (own**2 / (n - 1) + (error**2 / (seeds - 1) if seeds > 1 else 0.0))
    return quantile(0.975, degrees) * math.sqrt(own + error)


def _more(values: Sequence[float], gap: float, theirs: tuple[float, int], tolerance: float) -> int | None:
    """Seeds of ours with which a difference like this one would be told; None if none are enough."""
    spread, seeds = theirs
    error, variance = spread**2 / seeds if seeds else 0.0, _variance(values)
    if not variance:
        return None
    for n in range(len(values) + 1, MOST + 1):
        half = _half(variance, n, error, seeds)
        if abs(gap) + half <= tolerance or abs(gap) > half:
            return n - len(values)
    return None


def _variance(values: Sequence[float]) -> float:
    mean = math.fsum(values) / len(values)
    return math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1)


def _best(gap: float, n: int, of: int, tolerance: float) -> tuple[str, str]:
    if gap > tolerance or (n >= of and gap < -tolerance):
        return DIFFERS, f"our best of {n} is {'higher' if gap > 0 else 'lower'}"
    return (
        (AGREES, f"our best of {n} is within {tolerance:g} points") if n >= of else (UNDERPOWERED, f"{n} of {of} seeds")
    )


def value_of(figure: Published) -> float:
    """The published value, in per cent; `~100` is 100."""
    return float(figure["value"].lstrip("~"))


def _spread(figure: Published) -> tuple[float, int]:
    """A published standard deviation and its seeds; zeros if there is none."""
    plain = re.fullmatch(r"\d+(\.\d+)?", figure["spread"]) and figure["seeds"].isdigit()
    return (float(figure["spread"]), int(figure["seeds"])) if plain else (0.0, 0)


def _missing(figure: Published) -> str:
    if not architecture(figure):
        return "no network of this kind here"
    if figure["split"] not in tasks.find(figure["task"]).experiments():
        return "no such split here"
    if figure["metric"] not in METRICS.values():
        return "no such metric here"
    return "not a mean over seeds" if figure["setting"].startswith("max over") else ""


def _same_place(row: Condition, figure: Published) -> bool:
    lengths = re.search(r"tested on (\d+)-(\d+)", figure["setting"])
    test = "_".join(("test", *lengths.groups())) if lengths else figure["test"]
    return (row.task, row.split, row.test, row.arch) == (figure["task"], figure["split"], test, architecture(figure))


def _nearness(name: str, figure: Published, row: Condition) -> tuple[object, ...]:
    return _attention(figure, row) != "", row.preset != name, row.preset != "default", *rank(row, {})


def _attention(figure: Published, row: Condition) -> str:
    """How our recurrent network's attention differs from theirs; empty if it does not."""
    if row.arch != "lstm" or "quoting" in figure["paper"]:  # of what is quoted it is not known
        return ""
    theirs, ours = "attention" in figure["arch"], row.config.get("model.attention", "none") != "none"
    return "" if theirs == ours else "with attention, theirs without" if ours else "without attention, theirs with"


def _unlike(name: str, figure: Published, row: Condition) -> str:
    told = [_attention(figure, row)]
    if figure["arch"].startswith("GRU"):
        told.append("an LSTM, theirs a GRU")
    if row.preset != name:
        told.append("not the paper's settings")
    elif not figure["setting"].startswith(SETTINGS.get(name, "")):
        told.append("the paper's settings, but not those of this figure")
    if "median" in figure["seeds"]:
        told.append("a mean, theirs a median")
    return "; ".join(filter(None, told))
