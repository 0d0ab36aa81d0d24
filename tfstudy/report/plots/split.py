"""`--kind split`: how well each condition generalises to each test set, next to published results."""

from collections.abc import Mapping, Sequence
from statistics import mean
from typing import Any

from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from tasks.errors import UserError
from tfstudy.analysis.comparisons import mean_interval
from tfstudy.analysis.conditions import Condition, main_metrics
from tfstudy.analysis.metrics import metric_name
from tfstudy.analysis.published import is_number, of_same_kind
from tfstudy.report.plots import layout
from tfstudy.report.plots.series_style import SeriesStyle, condition_styles


def plot(conditions: Sequence[Condition]) -> layout.Plot:
    """Return the main metric of each condition on each test set: mean, 95 % interval, seeds and published values."""
    metrics = main_metrics(conditions)
    shown = [condition for condition in conditions if condition.values(metrics[condition.task])]
    if not shown:
        raise UserError("no finished run was evaluated on a test set")
    label, styles, groups = layout.metric_label(metrics), condition_styles(shown), layout.group_by_test_set(shown)
    title, legend = "Generalisation to each test set", _legend(shown, metrics)
    figure, panels = layout.row_panels(title, groups, lambda c: layout.wrap(c.label), label, 4.0, legend)
    for axes, rows in panels:
        for condition, level in rows:
            _draw_condition(axes, condition, metrics[condition.task], level, styles[condition.label])
        axes.set_xlim(layout.PERCENT)
    means = layout.describe(groups, lambda c: f"{mean(c.values(metrics[c.task])):.1f}")
    return layout.Plot("split", figure, f"Mean {label} on each test set: {means}.")


def _legend(conditions: Sequence[Condition], metrics: Mapping[str, str]) -> list[Any]:
    """Return handles for the marks that are drawn."""
    grey: dict[str, Any] = {"color": "0.4", "marker": "o"}
    marks = [Line2D([], [], lw=1.6, ms=5, label="mean and 95 % interval\n(one seed: within its run)", **grey)]
    if any(len(condition.values(metrics[condition.task])) > 1 for condition in conditions):
        marks.append(Line2D([], [], lw=0, ms=2.5, alpha=0.6, label="one seed", **grey))
    if any(published_values(condition, metrics[condition.task]) for condition in conditions):
        label = "published, same kind of network"
        marks.append(Line2D([], [], color="black", marker="|", ms=9, mew=1.3, lw=0, label=label))
    return marks


def _draw_condition(axes: Axes, condition: Condition, metric: str, level: float, style: SeriesStyle) -> None:
    values, interval = condition.values(metric), mean_interval(condition, metric)
    if interval.low == interval.low:  # not nan
        axes.hlines(level, interval.low, interval.high, color=style.colour, lw=1.6, zorder=3)
    if len(values) > 1:
        axes.scatter(values, [level + 0.06] * len(values), color=style.colour, s=7, alpha=0.6, lw=0, zorder=4)
    axes.plot(interval.mean, level, color=style.colour, marker=style.marker, ms=5.5, mec="white", mew=0.6, zorder=5)
    for value in published_values(condition, metric):
        axes.plot([value, value], [level - 0.09, level + 0.09], color="black", lw=1.3, zorder=2)


def published_values(condition: Condition, metric: str) -> list[float]:
    """Return published results of this kind of architecture that are plain numbers, in percent."""
    values = [figure["value"] for figure in of_same_kind(condition, metric_name(metric))]
    return [float(value) for value in values if is_number(value)]
