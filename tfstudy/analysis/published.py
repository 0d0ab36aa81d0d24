"""Published figures, read from `configs/published.csv`: one figure a line, every column of one type.

A column that the source says nothing about is None, or empty where it holds text. No text is parsed: what a figure is
(a mean, the best of several seeds, a bound), what its spread is and whether it can be compared are columns.
"""

import csv
import math
import re
from collections.abc import Iterable
from functools import cache
from typing import Any, Literal, NamedTuple

import msgspec

from tfstudy.analysis.conditions import Condition
from tfstudy.config.trees import configs
from tfstudy.errors import one_of

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
        start = f"best of {self.best_of or '?'}: " if self.value_kind == "best" else prefix.get(self.value_kind, "")
        spread = f" ± {self.spread:g}" if self.spread is not None else ""
        ends = (
            f" ({self.spread_low:g} to {self.spread_high:g})"
            if not spread and self.spread_low is not None and self.spread_high is not None
            else ""
        )
        return f"{start}{self.printed}{spread}{ends}"

    @property
    def standard_error(self) -> float | None:
        """The standard error of the published mean; None if the paper does not give it.

        A standard deviation divided by n counts as the larger one divided by n - 1.
        """
        from tfstudy.analysis.intervals import t_quantile

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
    entry: str  # as it stands in the file

    @property
    def short(self) -> str:
        """`Dessì & Baroni 2019`, or `Csordás et al. 2021` for three authors and more; without a year, the authors.

        A key that ends with a letter after the year, such as `csordas-2021b`, hands it to the year.
        """
        names = " & ".join(self.authors) if len(self.authors) < 3 else f"{self.authors[0]} et al."
        letter = re.search(r"\d{4}([a-z])$", self.key)
        return f"{names} {self.year}{letter[1] if letter else ''}".strip()

    @property
    def title(self) -> str:
        """The title, without the braces of BibTeX."""
        return _field(self.entry, "title").replace("{", "").replace("}", "")

    @property
    def url(self) -> str:
        return _field(self.entry, "url")


@cache
def all_figures() -> tuple[Figure, ...]:
    """Return all published figures, in the order of the file."""
    with (configs() / "published.csv").open(newline="", encoding="utf-8") as file:
        return tuple(msgspec.convert(_typed(line), Figure, strict=False) for line in csv.DictReader(file))


def _typed(line: dict[str, str]) -> dict[str, Any]:
    optional = ("train_size", "best_of", "spread", "spread_low", "spread_high", "n")
    return {key: text or None if key in optional else text for key, text in line.items()} | {"printed": line["value"]}


@cache
def papers() -> dict[str, Paper]:
    """Return the papers of `configs/papers.bib` by key."""
    text = (configs() / "papers.bib").read_text(encoding="utf-8")
    entries = re.findall(r"(@\w+\{([\w-]+),.*?\n\})", text, re.DOTALL)
    return {key: Paper(key, _family_names(entry), _field(entry, "year"), entry) for entry, key in entries}


def _field(body: str, name: str) -> str:
    match = re.search(rf"^\s*{name}\s*=\s*\{{(.*?)\}},?$", body, re.MULTILINE)
    return match[1] if match else ""


def _family_names(body: str) -> tuple[str, ...]:
    return tuple(author.partition(",")[0].strip() for author in _field(body, "author").split(" and "))


def figures_of(paper: str) -> list[Figure]:
    """Return a paper's figures; `UserError` with the nearest name for an unknown paper."""
    known = dict.fromkeys(figure.paper for figure in all_figures())
    name = one_of("paper", paper, sorted(known))
    return [figure for figure in all_figures() if figure.paper == name]


def figure_of(id_: str, where: str = "") -> Figure:
    """Return the figure with this id; `UserError` with the nearest id for an unknown one."""
    known = {figure.id: figure for figure in all_figures()}
    return known[one_of("published figure", id_, known, where)]


@cache
def _of_split(task: str, split: str) -> tuple[Figure, ...]:
    return tuple(figure for figure in all_figures() if (figure.task, figure.split) == (task, split))


def published(task: str, split: str, metric: str = "", test: str = "") -> list[Figure]:
    """Return the published figures on a split scheme, of one metric or all, on one test set or all."""
    return [figure for figure in _of_split(task, split) if metric in ("", figure.metric) and test in ("", figure.test)]


def of_same_kind(condition: Condition, metric: str) -> list[Figure]:
    """Return figures of the same kind of network, trained without anything that tfstudy lacks, on this test set.

    An architecture is of the kind that has its name: `lstm` is not beside the figures of a GRU.
    """
    if condition.tag:
        return []
    known = published(condition.task, condition.split, metric, condition.test_set)
    return [figure for figure in known if figure.family == condition.arch and figure.method == "plain"]


def best_known(figures: Iterable[Figure]) -> list[Figure]:
    """Return, of each paper, the figure under its own settings if a preset has them, else its highest mean."""
    chosen: dict[str, Figure] = {}
    for figure in figures:
        if figure.value_kind == "max":
            continue
        current = chosen.get(figure.paper)
        if current is None or (bool(figure.preset), figure.value) > (bool(current.preset), current.value):
            chosen[figure.paper] = figure
    return list(chosen.values())
