"""The figure of an instrument, as its chart describes it: lines, bars or heat maps, averaged over seeds."""

from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from tfstudy.analysis.intervals import Interval
from tfstudy.report.markup import count_range
from tfstudy.report.measured import Measured, in_order, notes_of, rank_note, value_label, words
from tfstudy.report.plots import captions, layout
from tfstudy.report.plots.heat_maps import category_ticks, draw_heatmaps
from tfstudy.report.plots.log_axes import set_log_ticks
from tfstudy.report.plots.measurement_panels import Panel, Series, panels_of
from tfstudy.report.plots.panel_labels import label_axes, set_title
from tfstudy.report.plots.series_style import LINES, MARKERS, OTHER_COLOURS, SeriesStyle, series_styles
from tfstudy.runs.measurement_record import Cell, Chart

MAX_PANELS = 24
MAX_LEGEND = 12
MARKED = 30  # points of a line that have markers


def plot(name: str, measured: Sequence[Measured], sheet: layout.Sheet = layout.SCREEN) -> layout.Plot:
    """Return the figure of what an instrument measured on these conditions."""
    chart = measured[0].chart
    every = panels_of(chart, measured)
    panels, heat = every[:MAX_PANELS], chart.kind == "heatmap"
    styles = {} if heat else _styles(chart, measured, panels)
    hidden = [f"{len(every) - MAX_PANELS} more panels are not shown."] if len(every) > MAX_PANELS else []
    with layout.theme(sheet):
        legend, notes = _legend(chart, styles), [_caption(measured), *notes_of(measured), *hidden]
        figure, axes = layout.panels(sheet, _title(name, chart), len(panels), legend=legend, notes=notes)
        label_axes(
            axes, chart.x_label or words(chart.x), (chart.y_label or words(chart.y)) if heat else value_label(measured)
        )
        for one, panel in zip(axes, panels, strict=True):
            set_title(one, panel.title)
        if heat:
            draw_heatmaps(axes, panels, value_label(measured))
        else:
            for one, panel in zip(axes, panels, strict=True):
                _draw_series(one, panel.series, styles, chart)
            _share_limits(axes, panels)
            for one in axes:
                set_log_ticks(one)
    return layout.Plot(f"measure-{name}", figure, _describe(name, chart, panels))


def _styles(chart: Chart, measured: Sequence[Measured], panels: Sequence[Panel]) -> dict[Cell, SeriesStyle]:
    if not chart.hue:
        own: dict[Cell, SeriesStyle] = {}
        own.update(series_styles({one.label: one.arch for one in measured}).items())
        return own
    names = in_order(name for panel in panels for name in panel.series)
    numeric = all(not isinstance(name, str) for name in names)
    shades = mpl.colormaps["viridis"]([0.9 * number / max(1, len(names) - 1) for number in range(len(names))])
    colours = (
        [mpl.colors.to_hex(shade) for shade in shades] if numeric else ["#0072B2", "#D55E00", "#009E73", *OTHER_COLOURS]
    )
    return {
        name: SeriesStyle(
            colours[i % len(colours)], MARKERS[i % len(MARKERS)], LINES[i // len(colours) % len(LINES)], ""
        )
        for i, name in enumerate(names)
    }


def _legend(chart: Chart, styles: Mapping[Cell, SeriesStyle]) -> list[Any]:
    """Return the handles of some series, spread evenly if there are many; none if the only one has no name."""
    names = list(styles)
    count = min(MAX_LEGEND, len(names))
    shown = [names[round(i * (len(names) - 1) / max(1, count - 1))] for i in range(count)]
    handles: list[Any] = []
    for name in shown:
        label = f"{words(chart.hue)} {name}" if not isinstance(name, str) else captions.wrap(name)
        style = styles[name]
        if chart.kind == "bar":
            handles.append(Patch(label=label, **style.bar))
        else:
            handles.append(Line2D([], [], color=style.colour, ls=style.line, marker=style.marker, ms=4, label=label))
    return handles


def _draw_series(axes: Axes, series: Series, styles: Mapping[Cell, SeriesStyle], chart: Chart) -> None:
    order = in_order(x for points in series.values() for x in points)
    numeric = chart.kind == "line" and not any(isinstance(x, str) for x in order)
    places = {x: float(x) if numeric else number for number, x in enumerate(order)}
    names = [name for name in styles if name in series]  # in the order of the legend
    for number, name in enumerate(names):
        points = series[name]
        xs = [places[x] for x in points]
        if chart.kind == "bar":
            _draw_bars(axes, xs, list(points.values()), styles[name], number, len(names))
        else:
            _draw_line(axes, xs, list(points.values()), styles[name])
    if numeric and len(order) == 1:
        axes.set_xticks([places[order[0]]], [f"{order[0]:g}"])
    elif all(isinstance(x, int) for x in order):
        axes.xaxis.set_major_locator(MaxNLocator(6, integer=True))
    if chart.log_x and numeric:
        axes.set_xscale("log")
    if chart.log_y:
        axes.set_yscale("log")
    if not numeric:
        category_ticks(axes, order)


def _share_limits(axes: Sequence[Axes], panels: Sequence[Panel]) -> None:
    """Give the panels of the same facet, which show different conditions, the same limits."""
    for facet in {panel.facet for panel in panels}:
        same = [one for one, panel in zip(axes, panels, strict=True) if panel.facet == facet]
        lows, highs = zip(*(one.get_ylim() for one in same), strict=True)
        for one in same:
            one.set_ylim(min(lows), max(highs))


def _draw_line(axes: Axes, xs: Sequence[float], points: Sequence[Interval], style: SeriesStyle) -> None:
    marker = style.marker if len(xs) <= MARKED else ""
    size = 3 if len(xs) > 1 else 5  # a single point, without a line, may lie on other lines
    means = [point.mean for point in points]
    axes.plot(xs, means, color=style.colour, ls=style.line, marker=marker, ms=size, lw=1.3, zorder=3)
    if any(point.n > 1 for point in points):
        low, high = ([getattr(p, end) if p.n > 1 else p.mean for p in points] for end in ("low", "high"))
        axes.fill_between(xs, low, high, color=style.colour, alpha=0.2, lw=0)


def _draw_bars(
    axes: Axes, xs: Sequence[float], points: Sequence[Interval], style: SeriesStyle, number: int, count: int
) -> None:
    width = 0.8 / count
    places = [x + (number - (count - 1) / 2) * width for x in xs]
    axes.bar(places, [p.mean for p in points], width, **style.bar)
    several = [(place, p) for place, p in zip(places, points, strict=True) if p.n > 1]
    if several:
        sides = [[p.mean - p.low for _, p in several], [p.high - p.mean for _, p in several]]
        axes.errorbar([x for x, _ in several], [p.mean for _, p in several], sides, fmt="none", ecolor="0.2", lw=0.8)


def _title(name: str, chart: Chart) -> str:
    measured = f": {chart.hue_label or words(chart.hue)}" if chart.kind == "heatmap" else ""
    return f"{words(name).capitalize()}{measured}"


def _caption(measured: Sequence[Measured]) -> str:
    """Return the number of runs and the settings: `5 seeds per condition, mean with 95 % interval; examples 200`."""
    counts = [len(one.records) for one in measured]
    seeds = "One seed" if max(counts) == 1 else f"{count_range(counts, 'seed')}"
    how = "" if max(counts) == 1 or measured[0].chart.kind == "heatmap" else ", mean with 95 % interval"
    settings = [f"{words(key)} {value}" for key, value in measured[0].records[0].settings.items() if value != ""]
    return "; ".join(filter(None, [f"{seeds} per condition{how}", rank_note(measured), *settings]))


def _describe(name: str, chart: Chart, panels: Sequence[Panel]) -> str:
    """Return the text for readers who cannot see the picture: the range of the numbers in each panel."""
    texts = []
    for panel in panels:
        means = [point.mean for points in panel.series.values() for point in points.values()]
        texts.append(f"{panel.title or 'all'} {min(means):.3g} to {max(means):.3g}")
    return f"{words(name).capitalize()}: {words(chart.value)} by {words(chart.x)}; {captions.join(texts)}."
