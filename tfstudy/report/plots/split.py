"""`--kind split`: each condition on each test set, beside published figures and trivial systems."""

from collections.abc import Sequence
from statistics import mean
from typing import Any

import pandas as pd
from matplotlib.lines import Line2D

from tfstudy.analysis.labels import Condition
from tfstudy.analysis.published import Figure, Quotation, beside, papers
from tfstudy.analysis.summary import rows_of
from tfstudy.errors import UserError
from tfstudy.report.notes import whole_scores
from tfstudy.report.plots import layout, series

BELOW, ABOVE = 0.065, -0.06  # inches from the mean of a row to its seeds and to the published figures
TRIVIAL_LINES, TRIVIAL_COLOUR = (":", "--", "-."), "0.45"
PUBLISHED: dict[str, Any] = {"color": "black", "marker": "D", "ms": 3.4, "mew": 0.8, "mec": "black"}
FACES = {True: "black", False: "white"}  # whether a published figure has the settings of these runs


def split(conditions: pd.DataFrame) -> layout.Plot:
    """Return the main metric of each condition on each test set: mean, 95 % interval, seeds and published figures.

    Lines show the trivial systems that were evaluated on the same test sets.
    """
    frame = series.in_panels(conditions)
    if frame.empty:
        raise UserError("no finished run was evaluated on a test set")
    metric, styles, rows = series.metric_label(conditions), series.styles_of(frame), rows_of(frame)
    frame["quoted"] = pd.Series(quotations(rows), frame.index)
    frame["trivial"] = pd.Series([trivial_results(row) for row in rows], frame.index)
    figures = [one.figure for own in frame["quoted"] for one in own]
    numbers = {paper: n for n, paper in enumerate(dict.fromkeys(figure.paper for figure in figures), 1)}
    lines: dict[str, dict[str, Any]] = {
        name: {"color": TRIVIAL_COLOUR, "ls": TRIVIAL_LINES[number % len(TRIVIAL_LINES)], "lw": 1.1}
        for number, name in enumerate(dict.fromkeys(name for own in frame["trivial"] for name in own))
    }
    panels, frame = layout.in_rows("Generalisation to each test set", frame)
    for row in rows_of(frame):
        axes, style = row.axes, styles[row.label]
        for name, value in row.trivial.items():
            axes.vlines(value, row.level - 0.1, row.level + 0.1, zorder=2, **lines[name])
        series.draw_mean(axes, row, row.level, style)
        series.draw_seeds(axes, [*row.each_seed.values()], row.level + BELOW, style["color"])
        for figure, same in row.quoted:
            if ends := spread(figure):
                axes.plot(ends, [row.level + ABOVE] * 2, color="black", lw=0.7, zorder=2)
            axes.plot(figure.value, row.level + ABOVE, mfc=FACES[same], zorder=2.5, clip_on=False, **PUBLISHED)
        texts = [f"{_text(figure)} [{numbers[figure.paper]}]" for figure, _ in row.quoted]
        layout.write_beside(axes, row.level, "  ".join(texts))
    for axes in frame["axes"][frame["quoted"].map(bool)].unique():
        layout.write_beside(axes, -0.1, "published")
    furthest = max(axes.dataLim.x1 for axes in panels.axes)
    panels.axes[0].set_xlim(layout.percent_limits(frame, furthest))
    panels.label(metric, "")

    def described(row: Condition) -> str:
        same = ", ".join(f"{_text(one.figure)} with the same settings" for one in row.quoted if one.same_settings)
        return f"{row.mean:.1f}" + f" (published: {same})" * bool(same)

    sources = {}
    for figure in figures:
        quoted_by = f", quoted by {papers()[figure.quoted_from].short}" if figure.quoted_from in papers() else ""
        sources[figure.paper] = f"[{numbers[figure.paper]}]\N{NO-BREAK SPACE}{figure.citation}{quoted_by}"
    notes = [series.run_caption(frame), *[f"Published: {'; '.join(sources.values())}"] * bool(sources)]
    legend = [*_legend(frame), *(Line2D([], [], label=f"trivial system: {n}", **look) for n, look in lines.items())]
    return panels.plot("split", f"Mean {metric} on each test set: {series.describe(frame, described)}.", legend, notes)


def _legend(frame: pd.DataFrame) -> list[Any]:
    """Return handles for the marks of our runs and of published figures."""
    seeds, quoted = frame["each_seed"].map(len), [one for own in frame["quoted"] for one in own]
    within = "\n(one seed: within its run)" if seeds.min() == 1 else ""
    handles = [Line2D([], [], lw=1.6, ms=5, color="0.4", marker="o", label=f"mean and 95 % interval{within}")]
    handles += [series.seeds_handle()] * bool(seeds.max() > 1)
    for same, words in ((True, "the settings of these runs"), (False, "other settings")):
        if any(one.same_settings is same for one in quoted):
            handles.append(Line2D([], [], lw=0, mfc=FACES[same], label=f"published, {words}", **PUBLISHED))
    if kinds := dict.fromkeys(one.figure.spread_kind or "range" for one in quoted if spread(one.figure)):
        handles.append(Line2D([], [], color="black", lw=0.7, label=f"published spread: {', '.join(kinds)}"))
    return handles


def trivial_results(condition: Condition) -> dict[str, float]:
    """Return the metric of each trivial system, such as copying the source, in percent, the mean over runs."""
    every = [one.baselines for one in whole_scores(condition)]
    names = dict.fromkeys(name for own in every for name, metrics in own.items() if condition.metric in metrics)
    return {name: 100 * mean(own[name][condition.metric] for own in every if name in own) for name in names}


def quotations(conditions: Sequence[Condition]) -> list[list[Quotation]]:
    """Return the figures in the row of each condition: those that are beside it in a table.

    If some of the conditions has the settings of a figure, the figure is beside this condition only.
    """
    quoted = [beside(condition, condition.metric) for condition in conditions]
    same = {one.figure.id for own in quoted for one in own if one.same_settings}
    return [[one for one in own if one.same_settings or one.figure.id not in same] for own in quoted]


def spread(figure: Figure) -> tuple[float, float] | None:
    """Return the ends of the spread of a figure; None without one."""
    if figure.spread is not None:
        return max(0.0, figure.value - figure.spread), min(100.0, figure.value + figure.spread)
    if figure.spread_low is not None and figure.spread_high is not None:
        return figure.spread_low, figure.spread_high
    return None


def _text(figure: Figure) -> str:
    return f"{figure.text}{' (one run)' if figure.value_kind == 'single' else ''}"
