"""How far each architecture generalises on each test split, beside what papers report."""

from collections.abc import Mapping, Sequence
from statistics import mean
from typing import TYPE_CHECKING, Any

from tasks.errors import UserError
from tfstudy.analysis.comparisons import spread
from tfstudy.analysis.conditions import Condition, main_metrics
from tfstudy.analysis.metrics import NAMES
from tfstudy.analysis.published import of_same_kind
from tfstudy.report.plots.layout import (
    PERCENT,
    Picture,
    beside,
    by_place,
    canvas,
    in_columns,
    legend,
    listed,
    metric_name,
)
from tfstudy.report.plots.series_style import Look, looks_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PUBLISHED = "published, same kind of network"
GAP = 0.7  # between two splits, in rows


def split(rows: Sequence[Condition]) -> Picture:
    """The main metric by test split and row: mean and interval, a dot a seed, published figures as dark lines."""
    metrics = main_metrics(rows)
    shown = [row for row in rows if row.values(metrics[row.task])]
    if not shown:
        raise UserError("no finished run has a test split")
    means = [
        f"{name}: " + ", ".join(f"{row.label} {mean(row.values(metrics[row.task])):.1f}" for row in members)
        for name, members in by_place(shown).items()
    ]
    alt = f"Mean {metric_name(metrics)} on each test split: {listed(means)}."
    return Picture("split", lambda: _draw(shown, metrics), alt)


def _draw(rows: Sequence[Condition], metrics: Mapping[str, str]) -> "Figure":
    from matplotlib.lines import Line2D

    looks, columns = looks_of(rows), in_columns(by_place(rows))
    most = max(len(one) * GAP + sum(map(len, one.values())) for one in columns)
    names = [*looks, PUBLISHED]
    title = "Generalisation by test split"
    figure = canvas(5.4 * len(columns) + beside(names), max(0.2 * most, 0.2 * (len(names) + 2)) + 1.0, title)
    for axes, places in zip(figure.subplots(1, len(columns), squeeze=False).flat, columns, strict=True):
        _column(axes, places, metrics, looks)
        axes.set(xlabel=metric_name(metrics), xlim=PERCENT, ylim=(most - GAP / 2 - 0.5, -GAP / 2 - 0.5))
    grey: dict[str, Any] = {"color": "0.4", "marker": "o"}
    whiskers = Line2D([], [], lw=1.6, markersize=5, label="mean and 95 % interval\n(one seed: within its run)", **grey)
    seeds = Line2D([], [], lw=0, markersize=2.5, alpha=0.6, label="a seed", **grey)
    papers = Line2D([], [], color="black", marker="|", markersize=9, markeredgewidth=1.3, lw=0, label=PUBLISHED)
    legend(figure, looks, [whiskers, seeds, papers])
    return figure


def _column(
    axes: "Axes", places: Mapping[str, Sequence[Condition]], metrics: Mapping[str, str], looks: Mapping[str, Look]
) -> None:
    top, ticks = 0.0, []
    for members in places.values():
        for number, row in enumerate(members):
            _row(axes, row, metrics[row.task], top + number, looks[row.label])
        ticks.append(top + (len(members) - 1) / 2)
        top += len(members) + GAP
        axes.axhline(top - GAP / 2 - 0.5, color="0.85", lw=0.8)
    axes.set_yticks(ticks, list(places))
    axes.grid(visible=False, axis="y")


def _row(axes: "Axes", row: Condition, metric: str, level: float, look: Look) -> None:
    values, found = row.values(metric), spread(row, metric)
    if found.low == found.low:  # known
        axes.plot([found.low, found.high], [level, level], color=look.colour, lw=1.6, solid_capstyle="butt", zorder=3)
    if len(values) > 1:
        axes.scatter(values, [level + 0.27] * len(values), color=look.colour, s=7, alpha=0.6, lw=0, zorder=4)
    axes.plot(found.mean, level, color=look.colour, marker=look.marker, ms=5.5, mec="white", mew=0.6, zorder=5)
    for value in quoted(row, metric):
        axes.plot([value, value], [level - 0.42, level + 0.42], color="black", lw=1.3, zorder=2)


def quoted(row: Condition, metric: str) -> list[float]:
    """Published figures of this kind of architecture, those that are plain numbers."""
    values = [figure["value"] for figure in of_same_kind(row, NAMES.get(metric, metric))]
    return [float(value) for value in values if value.replace(".", "", 1).isdigit()]
