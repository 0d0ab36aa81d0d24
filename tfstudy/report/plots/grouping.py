"""Which conditions share a panel or a heading of a plot."""

from collections.abc import Mapping, Sequence
from math import ceil
from typing import TypeVar

from tfstudy.analysis.conditions import Condition, test_set_label
from tfstudy.report.plots.series_style import condition_styles

MAX_ROWS = 45  # in a column of rows

Item = TypeVar("Item")


def group_by_test_set(conditions: Sequence[Condition]) -> dict[str, list[Condition]]:
    """Group the conditions by test set, each group in the order of the legend."""
    order = list(condition_styles(conditions))
    groups: dict[str, list[Condition]] = {test_set_label(condition, conditions): [] for condition in conditions}
    for condition in sorted(conditions, key=lambda c: order.index(c.label)):
        groups[test_set_label(condition, conditions)].append(condition)
    return groups


def group_by_split(conditions: Sequence[Condition]) -> dict[str, list[Condition]]:
    """Group the conditions by split scheme, in the order of the legend; the test sets of the same runs count once."""
    groups = group_by_test_set([condition._replace(test_set="test") for condition in conditions])
    return {name: list({c.label: c for c in members}.values()) for name, members in groups.items()}


def trained_range(conditions: Sequence[Condition], tag: str) -> tuple[int, int] | None:
    """Return the smallest and largest value of a tag in validation, which is in distribution; None without it."""
    splits = [run.result.splits.get("validation") for condition in conditions for run in condition.runs]
    lengths = [int(value) for scores in splits if scores for value in scores.slices.get(tag, {}) if value.isdecimal()]
    return (min(lengths), max(lengths)) if lengths else None


def balanced_columns(groups: Mapping[str, Sequence[Item]], max_columns: int = 3) -> list[dict[str, Sequence[Item]]]:
    """Distribute the groups over at most this many columns with a similar number of items in each."""
    total = sum(map(len, groups.values()))
    count = min(max_columns, ceil(total / MAX_ROWS))
    columns: list[dict[str, Sequence[Item]]] = [{} for _ in range(count)]
    before = 0
    for name, items in groups.items():
        columns[before * count // total][name] = items
        before += len(items)
    return [column for column in columns if column]
