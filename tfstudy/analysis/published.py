"""Published results of papers, read from `configs/published.csv`."""

import csv
from fnmatch import fnmatch
from functools import cache

from tfstudy.analysis.conditions import Condition
from tfstudy.config.files import configs

ARCHITECTURES = {  # the names in papers of the kinds of network that ours are
    "transformer": ("Transformer", "Rel. Universal Transformer"),
    "lstm": ("LSTM", "LSTM+attention", "GRU", "GRU+attention"),
    "cnn": ("CNN",),
}
Published = dict[str, str]  # a row of the file


@cache
def all_published() -> tuple[Published, ...]:
    """Return all rows: published results, each with its source and how it was checked."""
    with (configs() / "published.csv").open(newline="", encoding="utf-8") as file:
        return tuple(csv.DictReader(file))


@cache
def _of_split(task: str, split: str) -> tuple[Published, ...]:
    return tuple(row for row in all_published() if (row["task"], row["split"]) == (task, split))


def published(task: str, split: str, metric: str = "", test: str = "") -> list[Published]:
    """Return the published results on a split scheme, of one metric or all, on one test set or all."""
    return [
        row
        for row in _of_split(task, split)
        if metric in ("", row["metric"]) and (not test or fnmatch(test, row["test"]))
    ]


def of_same_kind(condition: Condition, metric: str) -> list[Published]:
    """Return published results of the same kind of network on this condition's test set."""
    if condition.tag:
        return []
    names = ARCHITECTURES.get(condition.arch, (condition.arch,))
    known = published(condition.task, condition.split, metric, condition.test_set)
    return [figure for figure in known if figure["arch"] in names]


def has_deviation(figure: Published) -> bool:
    """Return whether the published ± is a number, and not a description."""
    return is_number(figure["spread"])


def is_number(text: str) -> bool:
    """Return whether a cell is a plain number, such as `69.2`; not `~100`."""
    return text.replace(".", "", 1).isdecimal()
