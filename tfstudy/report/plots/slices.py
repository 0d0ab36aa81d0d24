"""`--kind slices --tag TAG`: the main metric by the values of a tag."""

import math
from collections.abc import Mapping, Sequence
from statistics import mean

from matplotlib.axes import Axes

from tfstudy.analysis.comparisons import mean_interval
from tfstudy.analysis.conditions import Condition, main_metrics, tag_value_key
from tfstudy.errors import UserError
from tfstudy.report.plots import captions, layout
from tfstudy.report.plots.grouping import group_by_test_set
from tfstudy.report.plots.panel_labels import label_axes, set_title
from tfstudy.report.plots.series_style import Styles, condition_styles

MAX_WIDTH = 11.0  # inches of all panels in a row
MAX_TICKS = 25  # of a horizontal axis
MAX_LENGTH = 7.0  # inches of a panel along its values, unless they need more
BAR, MIN_VALUE = 0.13, 0.17  # inches of a bar, and the minimum for all bars of a value


def plot(conditions: Sequence[Condition], sheet: layout.Sheet) -> layout.Plot:
    """Return bars with 95 % intervals for each value of a tag; each condition is restricted to one value."""
    metrics = main_metrics(conditions)
    shown = [condition for condition in conditions if condition.values(metrics[condition.task])]
    if not shown:
        raise UserError("no run was evaluated by this tag")
    tag, metric = shown[0].tag.replace("_", " "), captions.metric_label(metrics)
    groups, styles = group_by_test_set(shown), condition_styles(shown)
    horizontal = not all(condition.tag_value.isdecimal() for condition in shown)  # words fit beside horizontal bars
    lengths = [_panel_length(members) for members in groups.values()]
    longest = max(len(condition.tag_value) for condition in shown)
    width = 2.3 + sheet.letter * longest if horizontal else max(2.6, *lengths)
    heights = [length + 0.5 for length in lengths] if horizontal else [2.1] * len(groups)
    columns, legend = max(1, min(3, int((sheet.width or MAX_WIDTH) // width))), layout.legend_handles(styles, "bars")
    intervals = [mean_interval(condition, metrics[condition.task]) for condition in shown]
    drawn = any(interval.low < interval.high for interval in intervals)
    title = f"Results by {tag}{', with 95 % intervals' * drawn}"
    notes = [captions.run_caption(shown), *(_within_run(shown) if drawn else [])]
    ends = [end for interval in intervals for end in (interval.mean, interval.high) if not math.isnan(end)]
    highest = layout.percent_limits(metrics.values(), max(ends))[1]
    figure, panels = layout.uneven_panels(sheet, title, heights, width, columns, legend, notes)
    for axes, (name, members) in zip(panels, groups.items(), strict=True):
        _draw_panel(axes, members, metrics, styles, horizontal, highest)
        set_title(axes, name)
    label_axes(panels, *((metric, tag) if horizontal else (tag, metric)))
    parts = [part for name, members in groups.items() for part in _describe(name, members, metrics)]
    return layout.Plot(f"slices-{shown[0].tag}", figure, f"Mean {metric} by {tag}: {captions.join(parts)}.")


def _within_run(conditions: Sequence[Condition]) -> list[str]:
    """Return the note on intervals of one seed, if there are any."""
    single = any(len(condition.runs) == 1 for condition in conditions)
    return ["The interval of one seed is within its run."] if single else []


def _describe(name: str, conditions: Sequence[Condition], metrics: Mapping[str, str]) -> list[str]:
    """Return a text for each label: its mean for all values if they are few, else for the first and the last."""
    parts = []
    for label in _labels(conditions):
        own = [f"{c.tag_value} {mean(c.values(metrics[c.task])):.0f}" for c in conditions if c.label == label]
        parts.append(f"{name} {label}: {', '.join(own if len(own) <= 4 else [own[0], own[-1]])}")
    return parts


def _panel_length(conditions: Sequence[Condition]) -> float:
    """Return the inches that the bars of a panel take, side by side."""
    values = len(_values(conditions))
    return values * max(MIN_VALUE, min(BAR * (len(_labels(conditions)) + 1), MAX_LENGTH / values))


def _values(conditions: Sequence[Condition]) -> list[str]:
    """Return the values of the tag, numbers in their order."""
    return sorted({condition.tag_value for condition in conditions}, key=tag_value_key)


def _labels(conditions: Sequence[Condition]) -> list[str]:
    return list(dict.fromkeys(condition.label for condition in conditions))


def _draw_panel(
    axes: Axes,
    conditions: Sequence[Condition],
    metrics: Mapping[str, str],
    styles: Styles,
    horizontal: bool,
    highest: float,
) -> None:
    values, labels = _values(conditions), _labels(conditions)
    thickness, draw = 0.84 / len(labels), axes.barh if horizontal else axes.bar
    for condition in conditions:
        interval = mean_interval(condition, metrics[condition.task])
        centre = values.index(condition.tag_value) + (labels.index(condition.label) - (len(labels) - 1) / 2) * thickness
        draw(centre, interval.mean, thickness, **styles[condition.label].bar)
        ends, centres = (interval.low, interval.high), (centre, centre)
        axes.plot(*((ends, centres) if horizontal else (centres, ends)), color="0.15", lw=0.9)
    axis = axes.yaxis if horizontal else axes.xaxis
    every = 1 if horizontal else math.ceil(len(values) / MAX_TICKS)
    axis.set_ticks(range(0, len(values), every), values[::every])
    axis.grid(visible=False)
    percent, limits = (0, highest), (-0.6, len(values) - 0.4)
    axes.set(xlim=percent, ylim=limits[::-1]) if horizontal else axes.set(ylim=percent, xlim=limits)
