"""`--kind slices`: the main metric by the values of a tag."""

import math
from collections.abc import Sequence

import pandas as pd

from tfstudy.analysis.labels import Condition
from tfstudy.analysis.summary import tag_value_key
from tfstudy.errors import UserError
from tfstudy.report.plots import layout, series

MAX_WIDTH, WIDTH = 11.0, 2.3  # inches of all panels in a row with the names of values, and of a panel
MAX_HEIGHT = 7.0  # inches of a panel, unless its values need more
BAR, MIN_VALUE = 0.13, 0.17  # inches of a bar, and the minimum for all bars of a value


def slices(conditions: Sequence[Condition], sheet: layout.Sheet) -> layout.Plot:
    """Return bars with 95 % intervals for each value of a tag; each condition is restricted to one value."""
    metrics = series.main_metrics(conditions)
    shown = [condition for condition in conditions if condition.each_seed]
    if not shown:
        raise UserError("no run was evaluated by this tag")
    tag, metric = shown[0].tag.replace("_", " "), series.metric_label(metrics)
    groups, styles = series.group_by_test_set(shown), series.condition_styles(shown)
    values = {name: sorted({c.value for c in members}, key=tag_value_key) for name, members in groups.items()}
    heights = []
    for name, members in groups.items():
        bars = len({condition.label for condition in members})
        heights.append(len(values[name]) * max(MIN_VALUE, min(BAR * (bars + 1), MAX_HEIGHT / len(values[name]))))
    names = layout.LETTER * sheet.points * max(len(condition.value) for condition in shown)  # beside a panel, in inches
    columns = max(1, min(3, int((sheet.width or MAX_WIDTH) // (WIDTH + names))))
    drawn = any(condition.low < condition.high for condition in shown)
    panels = layout.uneven_panels(sheet, f"Results by {tag}{', with 95 % intervals' * drawn}", WIDTH, heights, columns)
    highest = max(end for condition in shown for end in (condition.mean, condition.high) if not math.isnan(end))
    limits = (0, layout.percent_limits(metrics.values(), highest)[1])
    for axes, (name, members) in zip(panels.axes, groups.items(), strict=True):
        own = values[name]
        points = pd.DataFrame([(own.index(c.value), c.label, c.mean, c.low, c.high) for c in members])
        series.draw_bars(axes, points.set_axis(["x", "label", "mean", "low", "high"], axis=1), styles, horizontal=True)
        axes.set_yticks(range(len(own)), own)
        axes.set(xlim=limits, ylim=(len(own) - 0.4, -0.6))
        axes.grid(visible=False, axis="y")
        axes.set_title(panels.lines(name))
    panels.label(metric, tag)
    parts = []
    for name, members in groups.items():
        for label in dict.fromkeys(condition.label for condition in members):
            texts = [f"{c.value} {c.mean:.0f}" for c in members if c.label == label]
            parts.append(f"{name} {label}: {', '.join(texts if len(texts) <= 4 else [texts[0], texts[-1]])}")
    notes = [series.run_caption(shown)]
    notes += ["The interval of one seed is within its run."] * (drawn and any(len(c.runs) == 1 for c in shown))
    legend, alt = series.legend_handles(styles, "bars"), f"Mean {metric} by {tag}: {series.join(parts)}."
    return panels.plot(f"slices-{shown[0].tag}", alt, legend, notes)
