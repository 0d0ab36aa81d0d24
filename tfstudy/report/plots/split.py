"""`--kind split`: how well each condition generalises to each test set, next to published figures."""

from collections.abc import Mapping, Sequence
from statistics import mean
from typing import Any

from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from tfstudy.analysis.comparisons import mean_interval
from tfstudy.analysis.conditions import Condition, main_metrics
from tfstudy.errors import UserError
from tfstudy.report.plots import captions, layout
from tfstudy.report.plots.grouping import group_by_test_set
from tfstudy.report.plots.published_marks import Mark, draw_mark, mark_handles, marks_beside, source_notes
from tfstudy.report.plots.rows import row_panels
from tfstudy.report.plots.series_style import SeriesStyle, condition_styles
from tfstudy.report.plots.trivial_systems import draw_lines, line_handles, line_styles, trivial_results

BELOW, ABOVE = 0.065, -0.06  # inches from the mean of a row to its seeds and to the published figures
RIGHT = 1.02  # of the axes: where published figures are written


def plot(conditions: Sequence[Condition], sheet: layout.Sheet) -> layout.Plot:
    """Return the main metric of each condition on each test set: mean, 95 % interval, seeds and published figures.

    Lines show the trivial systems that were evaluated on the same test sets.
    """
    metrics = main_metrics(conditions)
    shown = [condition for condition in conditions if condition.values(metrics[condition.task])]
    if not shown:
        raise UserError("no finished run was evaluated on a test set")
    label, styles, groups = captions.metric_label(metrics), condition_styles(shown), group_by_test_set(shown)
    marks = marks_beside([condition for members in groups.values() for condition in members], metrics)
    every_mark = [mark for own in marks.values() for mark in own]
    trivial = {id(condition): trivial_results(condition, metrics[condition.task]) for condition in shown}
    lines = line_styles(list(trivial.values()))
    notes = [captions.run_caption(shown), *source_notes(every_mark)]
    beside = sheet.letter * max(len(_marks_text(own, sheet)) for own in marks.values())
    legend = [*_legend(shown, metrics), *line_handles(lines), *mark_handles(every_mark)]
    figure, panels = row_panels(
        sheet, "Generalisation to each test set", groups, lambda c: captions.wrap(c.label, sheet.label_letters), label,
        4.0 + beside, legend, notes, extra=lambda _: 0.05,
    )  # fmt: skip
    for axes, rows in panels:
        for condition, level in rows:
            draw_lines(axes, trivial[id(condition)], level, lines)
            _draw_condition(axes, condition, metrics[condition.task], level, styles[condition.label])
            _draw_marks(axes, marks[id(condition)], level, sheet)
        axes.set_xlim(layout.percent_limits(metrics.values(), axes.dataLim.x1))
        if any(marks[id(condition)] for condition, _ in rows):
            _write_beside(axes, 1.33 * sheet.line, "published", sheet)
    means = captions.describe(groups, lambda c: _describe(c, metrics[c.task], marks[id(c)]))
    return layout.Plot("split", figure, f"Mean {label} on each test set: {means}.")


def _describe(condition: Condition, metric: str, marks: Sequence[Mark]) -> str:
    """Return the mean, and the published figures under the settings of these runs."""
    own = [f"{mark.text} with the same settings" for mark in marks if mark.same_settings]
    return f"{mean(condition.values(metric)):.1f}" + (f" (published: {', '.join(own)})" if own else "")


def _legend(conditions: Sequence[Condition], metrics: Mapping[str, str]) -> list[Any]:
    """Return handles for the marks of our runs."""
    grey: dict[str, Any] = {"color": "0.4", "marker": "o"}
    seeds = [len(condition.values(metrics[condition.task])) for condition in conditions]
    within = "\n(one seed: within its run)" if min(seeds) == 1 else ""
    handles = [Line2D([], [], lw=1.6, ms=5, label=f"mean and 95 % interval{within}", **grey)]
    return handles + ([Line2D([], [], lw=0, ms=2.5, alpha=0.6, label="one seed", **grey)] if max(seeds) > 1 else [])


def _draw_condition(axes: Axes, condition: Condition, metric: str, level: float, style: SeriesStyle) -> None:
    values, interval = condition.values(metric), mean_interval(condition, metric)
    if interval.low == interval.low:  # not nan
        axes.hlines(level, interval.low, interval.high, color=style.colour, lw=1.6, zorder=3)
    if len(values) > 1:
        axes.scatter(values, [level + BELOW] * len(values), color=style.colour, s=7, alpha=0.6, lw=0, zorder=4)
    axes.plot(interval.mean, level, color=style.colour, marker=style.marker, ms=5.5, mec="white", mew=0.6, zorder=5)


def _draw_marks(axes: Axes, marks: Sequence[Mark], level: float, sheet: layout.Sheet) -> None:
    """Draw the published figures of a row, and write them on the right."""
    for mark in marks:
        draw_mark(axes, mark, level + ABOVE)
    _write_beside(axes, level, _marks_text(marks, sheet), sheet)


def _marks_text(marks: Sequence[Mark], sheet: layout.Sheet) -> str:
    """Return published figures with the numbers of their sources; in a narrow plot only the numbers."""
    if sheet == layout.COLUMN:
        return "".join(f"[{mark.source}]" for mark in marks)
    return "  ".join(f"{mark.text} [{mark.source}]" for mark in marks)


def _write_beside(axes: Axes, level: float, text: str, sheet: layout.Sheet) -> None:
    axes.text(RIGHT, level, text, transform=axes.get_yaxis_transform(), va="center", fontsize=min(8.0, sheet.points))
