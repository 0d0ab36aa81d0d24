"""The main metric by the values of a tag."""

from collections.abc import Mapping, Sequence
from statistics import mean
from typing import TYPE_CHECKING

from tasks.errors import UserError
from tfstudy.analysis.comparisons import spread
from tfstudy.analysis.conditions import Condition, main_metrics
from tfstudy.report.plots.layout import (
    Picture,
    beside,
    by_place,
    canvas,
    capital,
    legend,
    listed,
    metric_name,
    name_axes,
    painted,
)
from tfstudy.report.plots.series_style import Look, looks_of
from tfstudy.runs.schema import Part

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDEST = 11.0  # inches of the panels beside each other
LONGEST = 7.0  # inches of a panel, unless its values need more
BAR, LEAST = 0.13, 0.17  # inches of a bar, and of a value at the least


def slices(rows: Sequence[Condition], tag: str) -> Picture:
    """Bars with 95 % intervals for each value of a tag; `rows` are those that `tfstudy.rows.rows` makes of the tag."""
    metrics = main_metrics(rows)
    shown = [row for row in rows if row.tag == tag and row.values(metrics[row.task])]
    if not shown:
        raise UserError(f"nothing was measured by the tag '{tag}'")
    told = []
    for name, members in by_place(shown).items():
        for label in dict.fromkeys(row.label for row in members):
            own = [row for row in members if row.label == label]
            told.append(f"{name} {label}: " + ", ".join(f"{r.value} {_mean(r, metrics):.0f}" for r in ends(own)))
    alt = f"{metric_name(metrics)} by {named(tag)}: {listed(told)}."
    return Picture(f"slices-{tag}", lambda: _draw(shown, tag, metrics), capital(alt))


def tags(rows: Sequence[Condition]) -> list[str]:
    """The tags that the test splits of these rows can be sliced by."""
    found = (part for row in rows for part in row.measured().values() if isinstance(part, Part))
    return sorted({tag for part in found for tag in part.by})


def ends(rows: Sequence[Condition]) -> Sequence[Condition]:
    """All rows if they are few, else the first and the last."""
    return rows if len(rows) <= 4 else [rows[0], rows[-1]]


def _mean(row: Condition, metrics: Mapping[str, str]) -> float:
    return mean(row.values(metrics[row.task]))


def _draw(rows: Sequence[Condition], tag: str, metrics: Mapping[str, str]) -> "Figure":
    places, looks = by_place(rows), looks_of(rows)
    lying = not all(row.value.isdigit() for row in rows)  # words have room beside lying bars
    lengths = [_length(own) for own in places.values()]
    wide = 2.3 + 0.068 * max(len(row.value) for row in rows) if lying else max(2.6, *lengths)
    across = max(1, min(3, len(places), int(WIDEST // wide)))
    heights = [(max(lengths[i : i + across]) if lying else 1.6) + 0.5 for i in range(0, len(places), across)]
    title = capital(f"{metric_name(metrics)} by {named(tag)}, with 95 % intervals")
    figure = canvas(0.4 + across * wide + beside(looks), 0.7 + sum(heights), title)
    grid = list(figure.subplots(len(heights), across, squeeze=False, height_ratios=heights).flat)
    for axes in grid[len(places) :]:
        axes.remove()
    for axes, (name, members) in zip(grid, places.items(), strict=False):
        _panel(axes, members, metrics, looks, lying)
        axes.set_title(name)
    words = metric_name(metrics), named(tag)
    name_axes(grid[: len(places)], *(words if lying else reversed(words)))
    legend(figure, looks, kind="bars")
    return figure


def _length(rows: Sequence[Condition]) -> float:
    """The inches that the bars of a panel take, side by side."""
    values = len(values_of(rows))
    return values * max(LEAST, min(BAR * (len(labels_of(rows)) + 1), LONGEST / values))


def named(tag: str) -> str:
    return tag.replace("_", " ")


def values_of(rows: Sequence[Condition]) -> list[str]:
    """The tag's values, numbers in their order."""
    return sorted({row.value for row in rows}, key=lambda v: (0, int(v), "") if v.isdigit() else (1, 0, v))


def labels_of(rows: Sequence[Condition]) -> list[str]:
    return list(dict.fromkeys(row.label for row in rows))


def _panel(
    axes: "Axes", rows: Sequence[Condition], metrics: Mapping[str, str], looks: Mapping[str, Look], lying: bool
) -> None:
    values, labels = values_of(rows), labels_of(rows)
    wide = 0.84 / len(labels)
    for row in rows:
        found = spread(row, metrics[row.task])
        level = values.index(row.value) + (labels.index(row.label) - (len(labels) - 1) / 2) * wide
        ends, levels = [found.low, found.high], [level, level]
        if lying:
            axes.barh(level, found.mean, wide, **painted(looks[row.label]))
            axes.plot(ends, levels, color="0.15", lw=0.9)
        else:
            axes.bar(level, found.mean, wide, **painted(looks[row.label]))
            axes.plot(levels, ends, color="0.15", lw=0.9)
    axis = axes.yaxis if lying else axes.xaxis
    axis.set_ticks(range(len(values)), values)
    axis.grid(visible=False)
    limits = (-0.6, len(values) - 0.4)
    axes.set(xlim=(0, 103), ylim=limits[::-1]) if lying else axes.set(ylim=(0, 103), xlim=limits)
