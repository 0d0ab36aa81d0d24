"""Published figures, from `configs/published.csv`."""

import csv
from fnmatch import fnmatch
from functools import cache

from tfstudy.analysis.conditions import Condition
from tfstudy.config.files import configs

ARCHITECTURES = {  # names in papers of the kinds of network that ours are
    "transformer": ("Transformer", "Rel. Universal Transformer"),
    "lstm": ("LSTM", "LSTM+attention", "GRU", "GRU+attention"),
    "cnn": ("CNN",),
}


@cache
def all_published() -> tuple[dict[str, str], ...]:
    """The rows of `configs/published.csv`: figures of papers, each with its source and how well it was checked."""
    with (configs() / "published.csv").open(newline="", encoding="utf-8") as file:
        return tuple(csv.DictReader(file))


@cache
def _published(task: str, split: str) -> tuple[dict[str, str], ...]:
    return tuple(row for row in all_published() if (row["task"], row["split"]) == (task, split))


def published(task: str, split: str, metric: str = "", test: str = "") -> list[dict[str, str]]:
    """The published figures of this experiment, of one metric or of all, for one test split or all."""
    return [
        row
        for row in _published(task, split)
        if metric in ("", row["metric"]) and (not test or fnmatch(test, row["test"]))
    ]


def of_same_kind(row: Condition, metric: str) -> list[dict[str, str]]:
    """Published figures of the same kind of network on this row's test split."""
    if row.tag:
        return []
    names = ARCHITECTURES.get(row.arch, (row.arch,))
    return [figure for figure in published(row.task, row.split, metric, row.test) if figure["arch"] in names]
