"""Published figures, read from `configs/published.csv`, and ours beside them.

A figure is one line of the file, every column of one type. A column that the source says nothing about is None, or
empty where it holds text. No text is parsed: what a figure is (a mean, the best of several seeds, a bound), what its
spread is and whether it can be compared are columns.

`judge_figure` compares a figure only with runs of its own settings: of the preset that it names, with nothing changed.
The difference is ours minus theirs, and its half width is that of the 95 % prediction interval of a replication: where
the mean of as many seeds as ours would lie around theirs (Welch's, with their standard deviation), or, where the paper
gives none, theirs around ours, taken as the mean of its seeds (of one, if their number is unknown).

agrees: ours lies within 5 points, and the prediction interval is no wider. differs: ours lies outside the prediction
interval and by more than 5 points. open: neither, or fewer seeds than the variance of the split scheme needs.
"""

import csv
import math
import re
from collections.abc import Iterable
from functools import cache
from statistics import variance
from typing import Literal, NamedTuple

import msgspec

from tfstudy.analysis.labels import Condition, differing, distance
from tfstudy.analysis.stats import LEVEL, Interval, clipped, t_quantile, welch
from tfstudy.analysis.summary import mean_interval, resolution
from tfstudy.config.trees import configs
from tfstudy.errors import one_of

TOLERANCE = 5.0  # points
AGREES, DIFFERS, OPEN, NOT_RUN = "agrees", "differs", "open", "not run"
KINDS = {"median": "theirs is a median", "single": "theirs is one run", "approximate": "theirs is approximate"}
OTHER_SETTINGS = "†"  # the sign of a figure that was measured under other settings than the runs beside it
SIGN_NOTE = f"{OTHER_SETTINGS} other settings than these runs"
# split schemes on which published results vary most with the seed
HIGH_VARIANCE = ("addprim_jump", "addprim_turn_left", "template_around_right", "mcd1")

ValueKind = Literal["mean", "median", "best", "max", "single", "lower_bound", "upper_bound", "approximate"]
SpreadKind = Literal["", "sd", "sem", "ci95", "range", "unknown"]
Method = Literal["plain", "augmentation", "meta_learning", "pretraining", "scratchpad", "pruning", "modified"]


class Figure(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A published figure: one line of the file."""

    id: str  # the paper and a number, such as dessi-2019-02; never reused
    paper: str  # the key of its citation in `configs/papers.bib`
    arxiv: str
    source: str  # where it was read
    place: str  # table or section of the source
    task: str
    split: str  # the split scheme of tfstudy, if it has one
    test: str  # the test set of tfstudy; empty: no counterpart
    train_size: int | None  # training pairs
    arch: str  # the network in the paper's words
    family: Literal["transformer", "lstm", "gru", "srn", "cnn", "other"]
    attention: Literal["yes", "no", "unknown"]
    method: Method  # how the training differs from ours; only `plain` can be compared
    metric: str
    unit: Literal["percent", "points", "none"]
    value: float
    value_kind: ValueKind
    best_of: int | None  # seeds of which it is the best
    spread: float | None  # the number after ±
    spread_kind: SpreadKind
    spread_low: float | None  # lowest and highest run
    spread_high: float | None
    ddof: Literal["", "0", "1", "unknown"]  # of a standard deviation: divided by n (0) or by n - 1 (1)
    n: int | None  # seeds
    quoted_from: str  # the paper that quotes it, if it was not read in its own
    settings: str  # for people
    preset: str  # the preset that has exactly these settings; empty: none
    checked: Literal["primary", "secondary", "unverified"]
    note: str
    printed: str  # the value as printed, such as 69.20

    @property
    def text(self) -> str:
        """The value with its kind and spread: `69.2 ± 8.2`, `about 5`, `< 1.5`, `best of 10: 99.3`."""
        prefix = {"approximate": "about ", "upper_bound": "< ", "lower_bound": "> ", "median": "median ", "max": "max "}
        start = f"best of {self.best_of}: " if self.value_kind == "best" else prefix.get(self.value_kind, "")
        spread = f" ± {self.spread:g}" if self.spread is not None else ""
        if not spread and self.spread_low is not None:
            spread = f" ({self.spread_low:g} to {self.spread_high:g})"
        return f"{start}{self.printed}{spread}"

    @property
    def standard_error(self) -> float | None:
        """The standard error of the published mean; None if the paper does not give it.

        A standard deviation divided by n counts as the larger one divided by n - 1.
        """
        if self.spread is None or self.n is None or self.n < 2:
            return None
        if self.spread_kind == "sd":
            return self.spread / math.sqrt(self.n - (self.ddof == "0"))
        if self.spread_kind == "ci95":
            return self.spread / t_quantile(0.975, self.n - 1)
        return self.spread if self.spread_kind == "sem" else None

    @property
    def citation(self) -> str:
        """The authors and year, as in a text."""
        return papers()[self.paper].short


class Paper(NamedTuple):
    """An entry of `configs/papers.bib`."""

    key: str
    authors: tuple[str, ...]  # family names
    year: str
    title: str
    url: str
    entry: str  # as it stands in the file

    @property
    def short(self) -> str:
        """`Dessì & Baroni 2019`, or `Csordás et al. 2021` for three authors and more; without a year, the authors.

        A key that ends with a letter after the year, such as `csordas-2021b`, hands it to the year.
        """
        names = " & ".join(self.authors) if len(self.authors) < 3 else f"{self.authors[0]} et al."
        letter = re.search(r"\d{4}([a-z])$", self.key)
        return f"{names} {self.year}{letter[1] if letter else ''}".strip()


@cache
def all_figures() -> tuple[Figure, ...]:
    """Return all published figures, in the order of the file."""
    optional = ("train_size", "best_of", "spread", "spread_low", "spread_high", "n")
    with (configs() / "published.csv").open(newline="", encoding="utf-8") as file:
        lines = [
            {key: text or None if key in optional else text for key, text in line.items()} | {"printed": line["value"]}
            for line in csv.DictReader(file)
        ]
    return tuple(msgspec.convert(lines, list[Figure], strict=False))


@cache
def papers() -> dict[str, Paper]:
    """Return the papers of `configs/papers.bib` by key."""
    text, out = (configs() / "papers.bib").read_text(encoding="utf-8"), {}
    for entry, key in re.findall(r"(@\w+\{([\w-]+),.*?\n\})", text, re.DOTALL):
        fields = dict(re.findall(r"^\s*(\w+)\s*=\s*\{(.*?)\},?$", entry, re.MULTILINE))
        authors = tuple(author.partition(",")[0].strip() for author in fields.get("author", "").split(" and "))
        title = re.sub("[{}]", "", fields.get("title", ""))
        out[key] = Paper(key, authors, fields.get("year", ""), title, fields.get("url", ""), entry)
    return out


def figure_of(id_: str, where: str = "") -> Figure:
    """Return the figure with this id; `UserError` with the nearest id for an unknown one."""
    known = {figure.id: figure for figure in all_figures()}
    return known[one_of("published figure", id_, known, where)]


@cache
def published(task: str, split: str, metric: str = "", test: str = "") -> list[Figure]:
    """Return the published figures on a split scheme, of one metric or all, on one test set or all."""
    of_split = [figure for figure in all_figures() if (figure.task, figure.split) == (task, split)]
    return [figure for figure in of_split if metric in ("", figure.metric) and test in ("", figure.test)]


def best_known(figures: Iterable[Figure]) -> list[Figure]:
    """Return, of each paper, the figure under its own settings if a preset has them, else its highest mean."""
    chosen: dict[str, Figure] = {}
    for figure in figures:
        current = chosen.get(figure.paper)
        own = (bool(figure.preset), figure.value)
        if figure.value_kind != "max" and (current is None or own > (bool(current.preset), current.value)):
            chosen[figure.paper] = figure
    return list(chosen.values())


# Beside a condition


class Quotation(NamedTuple):
    """A published figure beside a condition."""

    figure: Figure
    same_settings: bool  # the paper's and the condition's

    def __str__(self) -> str:
        """`69.2 ± 8.2 [dessi-2019]†`."""
        return f"{self.figure.text} [{self.figure.paper}]{OTHER_SETTINGS * (not self.same_settings)}"


def beside(condition: Condition, metric: str) -> list[Quotation]:
    """Return one figure of each paper: under the condition's settings if it has one, never a maximum over settings.

    They are of the same kind of network, trained without anything that tfstudy lacks, on this test set. An architecture
    is of the kind that has its name: `lstm` is not beside the figures of a GRU. Files of somebody's own in a folder
    named after a data set, such as `cogs-variable-free`, are beside the figures of that data set, by test set.
    """
    if condition.tag:
        return []
    known = published(condition.task, condition.split, metric, condition.test)
    if condition.task == "pairs":
        known = published(re.split(r"[\W_]", condition.corpus.lower())[0], condition.test, metric)
    known = [figure for figure in known if figure.family == condition.arch and figure.method == "plain"]
    own = [figure for figure in known if figure.preset == condition.preset]
    with_own = {figure.paper for figure in own}
    chosen = best_known([*own, *(figure for figure in known if figure.paper not in with_own)])
    return [Quotation(figure, has_settings(figure, condition)) for figure in chosen]


def has_settings(figure: Figure, condition: Condition) -> bool:
    """Whether a condition has the preset that a figure names, with nothing changed."""
    return bool(condition.preset == figure.preset) and not differing(condition)


# Whether ours agree


class FigureVerdict(NamedTuple):
    """The verdict on a published figure, and ours."""

    verdict: str
    reason: str
    condition: Condition | None = None  # ours, of the figure's settings; None without runs
    ours: Interval | None = None  # our mean with its own 95 % interval
    difference: Interval | None = None  # ours minus theirs, with the 95 % prediction interval of a replication


def half_width(spread: float, n: int, error: float = 0.0, seeds: int = 1) -> float:
    """Return half the width of the 95 % prediction interval; infinite for a single seed.

    `spread` is the variance over our `n` seeds, `error` the standard error of the published mean of `seeds` (0 if it is
    unknown).
    """
    if n < 2:
        return math.inf
    deviation, degrees = math.sqrt(spread * (1 / n + 1 / seeds)), float(n - 1)
    if error:
        deviation, degrees = welch(spread, n, error**2 * seeds, seeds)
    return t_quantile((1 + LEVEL) / 2, degrees) * deviation


def decide(excess: float, half_width: float) -> str:
    """Return `agrees` if the gap and the prediction interval are within the tolerance, `differs` if it exceeds both."""
    if max(excess, half_width) <= TOLERANCE:
        return AGREES
    return DIFFERS if excess > max(half_width, TOLERANCE) else OPEN


def minimum_seeds(split: str) -> int:
    """Return the number of seeds below which nothing is decided on this split scheme."""
    return 5 if split in HIGH_VARIANCE else 3


def judge_figure(figure: Figure, conditions: Iterable[Condition]) -> FigureVerdict:
    """Return the verdict on a published figure with a preset, by the conditions of its own settings.

    Of several conditions it is a current one with most seeds.
    """
    place = (figure.task, figure.split, figure.test, "", figure.family)
    own = [c for c in conditions if (c.task, c.split, c.test, c.tag, c.arch) == place and has_settings(figure, c)]
    if not own:
        return FigureVerdict(NOT_RUN, f"no run with the preset {figure.preset}")
    condition = min(own, key=distance)
    each_seed = condition.values.get(figure.metric, {})
    ours, n = mean_interval(each_seed, figure.metric, condition.wilson), len(each_seed)
    spread = max(variance(each_seed.values()) if n > 1 else 0.0, resolution(condition) ** 2 / 12)  # at least rounding
    half = half_width(spread, n, figure.standard_error or 0.0, figure.n or 1)
    mean, least, lost = ours.mean - figure.value, minimum_seeds(figure.split), len(condition.diverged)
    verdict = OPEN if lost or n < least else decide(abs(mean), half)
    reasons = [f"{lost} diverged, and the mean would only be over the other runs"] * bool(lost)
    if verdict == DIFFERS:
        reasons.append(f"{'higher' if mean > 0 else 'lower'} than a replication")
    elif verdict == AGREES:
        reasons.append(f"within {TOLERANCE:g} points")
        near = [end for end in (0, 100) if max(abs(ours.mean - end), abs(figure.value - end)) <= TOLERANCE]
        reasons += [f"both near {end}: this says little" for end in near]  # networks that share nothing agree there
    elif n < least:
        reasons.append(f"{n} of at least {least} seeds")
    unknown = ["theirs has no standard error"] * (figure.standard_error is None)
    reasons += [KINDS[figure.value_kind]] if figure.value_kind in KINDS else unknown
    ends = (mean - half, mean + half) if n > 1 else (math.nan, math.nan)
    difference = clipped(Interval(mean, *ends, n, "Welch" if figure.standard_error else "t"), -100)
    return FigureVerdict(verdict, "; ".join(reasons), condition, ours, difference)
