"""`--kind slices`: the main metric by the values of a tag."""

import math
from collections.abc import Sequence

import pandas as pd

from tfstudy.analysis.labels import Condition
from tfstudy.analysis.summary import tag_value_key
from tfstudy.errors import UserError
from tfstudy.report.plots import layout, series

MAX_WIDTH = 11.0  # inches of all panels in a row
MAX_TICKS = 25  # of a horizontal axis
MAX_LENGTH = 7.0  # inches of a panel along its values, unless they need more
BAR, MIN_VALUE = 0.13, 0.17  # inches of a bar, and the minimum for all bars of a value


def slices(conditions: Sequence[Condition], sheet: layout.Sheet) -> layout.Plot:
    """Return bars with 95 % intervals for each value of a tag; each condition is restricted to one value."""
    metrics = series.main_metrics(conditions)
    shown = [condition for condition in conditions if condition.each_seed]
    if not shown:
        raise UserError("no run was evaluated by this tag")
    tag, metric = shown[0].tag.replace("_", " "), series.metric_label(metrics)
    groups, styles = series.group_by_test_set(shown), series.condition_styles(shown)
    horizontal = not all(condition.value.isdecimal() for condition in shown)  # words fit beside horizontal bars
    values = {name: sorted({c.value for c in members}, key=tag_value_key) for name, members in groups.items()}
    lengths = []  # of the panels along their values, in inches
    for name, members in groups.items():
        bars = len({condition.label for condition in members})
        lengths.append(len(values[name]) * max(MIN_VALUE, min(BAR * (bars + 1), MAX_LENGTH / len(values[name]))))
    width = max(2.6, *lengths)
    if horizontal:
        width = 2.3 + layout.LETTER * sheet.points * max(
            len(condition.value) for condition in shown
        )  # with their names
    columns = max(1, min(3, int((sheet.width or MAX_WIDTH) // width)))
    width, heights = (2.3, lengths) if horizontal else (width, [1.65] * len(groups))
    drawn = any(condition.low < condition.high for condition in shown)
    panels = layout.uneven_panels(sheet, f"Results by {tag}{', with 95 % intervals' * drawn}", width, heights, columns)
    highest = max(end for condition in shown for end in (condition.mean, condition.high) if not math.isnan(end))
    percent = (0, layout.percent_limits(metrics.values(), highest)[1])
    for axes, (name, members) in zip(panels.axes, groups.items(), strict=True):
        own = values[name]
        points = pd.DataFrame([(own.index(c.value), c.label, c.mean, c.low, c.high) for c in members])
        series.draw_bars(axes, points.set_axis(["x", "label", "mean", "low", "high"], axis=1), styles, horizontal)
        axis, limits = axes.yaxis if horizontal else axes.xaxis, (-0.6, len(own) - 0.4)
        every = 1 if horizontal else math.ceil(len(own) / MAX_TICKS)
        axis.set_ticks(range(0, len(own), every), own[::every])
        axis.grid(visible=False)
        axes.set(xlim=percent, ylim=limits[::-1]) if horizontal else axes.set(ylim=percent, xlim=limits)
        axes.set_title(panels.lines(name))
    panels.label(*((metric, tag) if horizontal else (tag, metric)))
    parts = [part for name, members in groups.items() for part in _describe(name, members)]
    notes = [series.run_caption(shown)]
    notes += ["The interval of one seed is within its run."] * (drawn and any(len(c.runs) == 1 for c in shown))
    legend, alt = series.legend_handles(styles, "bars"), f"Mean {metric} by {tag}: {series.join(parts)}."
    return panels.plot(f"slices-{shown[0].tag}", alt, legend, notes)


def _describe(name: str, conditions: Sequence[Condition]) -> list[str]:
    """Return a text for each label: its mean for all values if they are few, else for the first and the last."""
    parts = []
    for label in dict.fromkeys(condition.label for condition in conditions):
        own = [f"{c.value} {c.mean:.0f}" for c in conditions if c.label == label]
        parts.append(f"{name} {label}: {', '.join(own if len(own) <= 4 else [own[0], own[-1]])}")
    return parts
