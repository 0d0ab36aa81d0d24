"""Published figures, read from `configs/published.csv`, and ours beside them.

A figure is one line of the file. A column that the source says nothing about is None, or empty where it holds text. No
text is parsed: what a figure is (a mean, the best of several seeds, a bound), what its spread is and whether it can be
compared are columns. Other columns, such as where and how it was read, are for people.

`judge_figure` compares a figure only with runs of its own settings: of the preset that it names, with nothing changed.
The difference is ours minus theirs, and its half width is that of the 95 % prediction interval of a replication: where
the mean of as many seeds as ours would lie around theirs (Welch's, with their standard deviation), or, where the paper
gives none, theirs around ours, taken as the mean of its seeds (of one, if their number is unknown).

supported: ours lies within 5 points (2 BLEU), and the prediction interval is no wider. refuted: ours lies outside the
prediction interval and by more than that. open: neither, or fewer seeds than the variance of the split scheme needs.
"""

import csv
import math
import re
from collections.abc import Iterable, Sequence
from functools import cache
from statistics import variance
from typing import Any, Literal, NamedTuple

import msgspec

from tfstudy.analysis.labels import Condition, differing, distance
from tfstudy.analysis.stats import LEVEL, t_quantile, welch
from tfstudy.analysis.summary import mean_interval, resolution
from tfstudy.config.trees import configs
from tfstudy.errors import one_of

TOLERANCES = {"bleu": 2.0}  # points
TOLERANCE = 5.0  # of other metrics
SUPPORTED, REFUTED, OPEN, NOT_RUN = VERDICTS = ("supported", "refuted", "open", "not run")
KINDS = {"median": "theirs is a median", "single": "theirs is one run", "approximate": "theirs is approximate"}
PREFIXES = {"approximate": "about ", "upper_bound": "< ", "lower_bound": "> ", "median": "median ", "max": "max "}
OTHER_SETTINGS = "†"  # the sign of a figure that was measured under other settings than the runs beside it
SIGN_NOTE = f"{OTHER_SETTINGS} other settings than these runs"
# split schemes on which published results vary most with the seed
HIGH_VARIANCE = ("addprim_jump", "addprim_turn_left", "template_around_right", "mcd1")


class Figure(msgspec.Struct, frozen=True):
    """A published figure: one line of the file."""

    id: str  # the paper and a number, such as dessi-2019-02; never reused
    paper: str  # the key of its citation in `configs/papers.bib`
    arxiv: str
    source: str  # where it was read
    place: str  # table or section of the source
    task: str
    split: str  # the split scheme of tfstudy, if it has one
    test: str  # the test set of tfstudy; empty: no counterpart
    arch: str  # the network in the paper's words
    family: Literal["transformer", "lstm", "gru", "srn", "cnn", "other"]
    # how the training differs from ours; only `plain` can be compared
    method: Literal["plain", "augmentation", "meta_learning", "pretraining", "scratchpad", "pruning", "modified"]
    metric: str
    value: float
    printed: str  # the value as printed, such as 69.20
    value_kind: Literal["mean", "median", "best", "max", "single", "lower_bound", "upper_bound", "approximate"]
    best_of: int | None  # seeds of which it is the best
    spread: float | None  # the number after ±
    spread_kind: Literal["", "sd", "sem", "ci95", "range", "unknown"]
    spread_low: float | None  # lowest and highest run
    spread_high: float | None
    ddof: Literal["", "0", "1", "unknown"]  # of a standard deviation: divided by n (0) or by n - 1 (1)
    n: int | None  # seeds
    quoted_from: str  # the paper that quotes it, if it was not read in its own
    settings: str  # for people
    preset: str  # the preset that has exactly these settings; empty: none

    @property
    def text(self) -> str:
        """The value with its kind and spread: `69.2 ± 8.2`, `about 5`, `< 1.5`, `best of 10: 99.3`."""
        start = f"best of {self.best_of}: " if self.value_kind == "best" else PREFIXES.get(self.value_kind, "")
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

    short: str  # `Dessì & Baroni 2019`, `Csordás et al. 2021b`
    entry: str  # as it stands in the file


@cache
def all_figures() -> tuple[Figure, ...]:
    """Return all published figures, in the order of the file."""
    optional = ("best_of", "spread", "spread_low", "spread_high", "n")
    with (configs() / "published.csv").open(newline="", encoding="utf-8") as file:
        lines = [
            {key: text or None if key in optional else text for key, text in line.items()} | {"printed": line["value"]}
            for line in csv.DictReader(file)
        ]
    return tuple(msgspec.convert(lines, list[Figure], strict=False))


@cache
def papers() -> dict[str, Paper]:
    """Return the papers of `configs/papers.bib` by key, such as `csordas-2021b`: a letter belongs to the year."""
    text, out = (configs() / "papers.bib").read_text(encoding="utf-8"), {}
    for entry, key in re.findall(r"(@\w+\{([\w-]+),.*?\n\})", text, re.DOTALL):
        fields = dict(re.findall(r"^\s*(\w+)\s*=\s*\{(.*?)\},?$", entry, re.MULTILINE))
        authors = [author.partition(",")[0].strip() for author in fields.get("author", "").split(" and ")]
        names = " & ".join(authors) if len(authors) < 3 else f"{authors[0]} et al."
        letter = re.search(r"(?<=\d{4})[a-z]$", key)
        out[key] = Paper(f"{names} {fields.get('year', '')}{letter[0] if letter else ''}".strip(), entry)
    return out


def figure_of(id_: str) -> Figure:
    """Return the figure with this id; `UserError` with the nearest id for an unknown one."""
    known = {figure.id: figure for figure in all_figures()}
    return known[one_of("published figure", id_, known)]


def place(condition: Condition) -> tuple[str, str, str]:
    """Return the task, split scheme and test set of the figures that a condition can be beside.

    Files of somebody's own are a data set by the name of their folder and of the test set: in `pairs` those in
    `cogs-variable-free` are (`cogs`, `gen`), in translation those in `multi30k-de-en` are `multi30k_de_en_test2016`.
    """
    if condition.task == "pairs":
        return re.split(r"[\W_]", condition.corpus.lower())[0], condition.test, ""
    if condition.corpus:
        return condition.task, re.sub(r"\W", "_", f"{condition.corpus.lower()}_{condition.test}"), ""
    return condition.task, condition.split, condition.test


# Beside a condition


class Quotation(NamedTuple):
    """A published figure beside a condition."""

    figure: Figure
    same_settings: bool  # the paper's and the condition's

    def __str__(self) -> str:
        """`69.2 ± 8.2 [dessi-2019]†`."""
        return f"{self.figure.text} [{self.figure.paper}]{OTHER_SETTINGS * (not self.same_settings)}"


def quotations(conditions: Sequence[Condition], metric: str = "") -> list[list[Quotation]]:
    """Return the figures beside each condition, on a metric or else on its main one.

    If some of the conditions has the settings of a figure, the figure is beside this condition only.
    """
    quoted = [beside(condition, metric or condition.metric) for condition in conditions]
    same = {one.figure.id for own in quoted for one in own if one.same_settings}
    return [[one for one in own if one.same_settings or one.figure.id not in same] for own in quoted]


def beside(condition: Condition, metric: str) -> list[Quotation]:
    """Return one figure of each paper: that of the condition's preset, or of any preset, or else its highest.

    They are of the same kind of network, trained without anything that tfstudy lacks, on this test set; none is a
    maximum over settings. An architecture is of the kind that has its name: `lstm` is not beside the figures of a GRU.
    """
    wanted = (*place(condition), condition.arch, "plain", metric)
    known = [f for f in all_figures() if (f.task, f.split, f.test, f.family, f.method, f.metric) == wanted]
    of_paper: dict[str, list[Figure]] = {}
    for figure in sorted(known, key=lambda figure: figure.preset != condition.preset):
        if figure.value_kind != "max" and not condition.tag:
            of_paper.setdefault(figure.paper, []).append(figure)
    chosen = (
        max(own, key=lambda f: (f.preset == condition.preset, bool(f.preset), f.value)) for own in of_paper.values()
    )
    return [Quotation(figure, has_settings(figure, condition)) for figure in chosen]


def has_settings(figure: Figure, condition: Condition) -> bool:
    """Whether a condition has the preset that a figure names, with nothing changed."""
    return bool(condition.preset == figure.preset) and not differing(condition)


# Whether ours agree


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


def minimum_seeds(split: str) -> int:
    """Return the number of seeds below which nothing is decided on this split scheme."""
    return 5 if split in HIGH_VARIANCE else 3


def judge_figure(figure: Figure, conditions: Iterable[Condition]) -> dict[str, Any]:
    """Return the verdict on a published figure with a preset, by the conditions of its own settings.

    Of several conditions it is a current one with most seeds. Keys: `verdict`, `reason`, and if there are runs
    `conditions` (the one), and our `mean` with its own 95 % interval `low`, `high` over `n` seeds by the method
    `interval`.
    """
    wanted = (figure.task, figure.split, figure.test, figure.family, "")
    own = [c for c in conditions if (*place(c), c.arch, c.tag) == wanted and has_settings(figure, c)]
    if not own:
        return {"verdict": NOT_RUN, "reason": f"no run with the preset {figure.preset}"}
    condition = min(own, key=distance)
    each_seed, error = condition.values.get(figure.metric, {}), figure.standard_error
    ours, n = mean_interval(each_seed, figure.metric, condition.wilson), len(each_seed)
    spread = max(variance(each_seed.values()) if n > 1 else 0.0, resolution(condition) ** 2 / 12)  # at least rounding
    half, excess = half_width(spread, n, error or 0.0, figure.n or 1), abs(ours.mean - figure.value)
    theirs = KINDS.get(figure.value_kind, "theirs has no standard error" if error is None else "")
    verdict, reason, tolerance = OPEN, "", TOLERANCES.get(figure.metric, TOLERANCE)
    if lost := len(condition.diverged):
        reason = f"{lost} diverged, and the mean would only be over the other runs"
    elif n < (least := minimum_seeds(figure.split)):
        reason = f"{n} of at least {least} seeds"
    elif max(excess, half) <= tolerance:
        verdict, reason = SUPPORTED, f"within {tolerance:g} points"
    elif excess > max(half, tolerance):
        verdict, reason = REFUTED, f"{'higher' if ours.mean > figure.value else 'lower'} than a replication"
    found = dict(zip(("mean", "low", "high", "n", "interval"), ours, strict=True))
    reason = "; ".join(filter(None, [reason, theirs]))
    return found | {"conditions": (condition,), "verdict": verdict, "reason": reason}
