"""The figure of an instrument, as its chart describes it: lines, bars or heat maps, averaged over seeds."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, MaxNLocator, NullFormatter

from tfstudy.analysis.stats import Interval
from tfstudy.report.markup import count_range
from tfstudy.report.measured import Key, Measured, in_order, intervals, notes_of, rank_note, value_label, words
from tfstudy.report.plots import layout, series
from tfstudy.report.plots.series import LINES, MARKERS, OTHER_COLOURS, SeriesStyle
from tfstudy.runs.measurement_record import Cell, Chart

MAX_PANELS = 24
MAX_LEGEND = 12
MARKED = 30  # points of a line that have markers
MAX_WRITTEN = 12  # columns and rows of a heat map whose cells have their numbers as text
MAX_TICKS = 20  # of names
FEWEST = 3  # ticks of a logarithmic axis at 1, 2, 5, 10, ...; with fewer, ticks are evenly spaced numbers

Series = Mapping[Cell, Mapping[Cell, Interval]]  # by hue, condition or y: a number at each x


class Panel(NamedTuple):
    """What one panel shows."""

    title: str
    facet: Cell
    series: Series


def plot(name: str, measured: Sequence[Measured], sheet: layout.Sheet = layout.SCREEN) -> layout.Plot:
    """Return the figure of what an instrument measured on these conditions."""
    chart = measured[0].chart
    every = panels_of(chart, measured)
    panels, heat = every[:MAX_PANELS], chart.kind == "heatmap"
    styles = {} if heat else _styles(chart, measured, panels)
    hidden = [f"{len(every) - MAX_PANELS} more panels are not shown."] if len(every) > MAX_PANELS else []
    title = words(name).capitalize() + (f": {chart.hue_label or words(chart.hue)}" if heat else "")
    y = (chart.y_label or words(chart.y)) if heat else value_label(measured)
    with layout.theme(sheet):
        legend, notes = _legend(chart, styles), [_caption(measured), *notes_of(measured), *hidden]
        figure, axes = layout.panels(sheet, title, len(panels), legend=legend, notes=notes)
        layout.label_axes(axes, chart.x_label or words(chart.x), y)
        for one, panel in zip(axes, panels, strict=True):
            layout.set_title(one, panel.title)
        if heat:
            _draw_heat_maps(axes, panels, value_label(measured))
        else:
            for one, panel in zip(axes, panels, strict=True):
                _draw_series(one, panel.series, styles, chart)
            _share_limits(axes, panels)
            for one in axes:
                _set_log_ticks(one)
    return layout.Plot(f"measure-{name}", figure, _describe(name, chart, panels))


def panels_of(chart: Chart, measured: Sequence[Measured]) -> list[Panel]:
    """Return the panels: one per facet where conditions have colours, else one per condition and facet."""
    means = {one.label: intervals(one) for one in measured}
    panels = []
    for label in means if chart.hue else [""]:
        for facet in in_order(key[0] for cells in means.values() for key in cells):
            text = words(facet) if isinstance(facet, str) else f"{words(chart.facet)} {facet}"
            shown = _series(means[label], facet) if chart.hue else {}
            if not chart.hue:
                shown = {name: _series(cells, facet).get("", {}) for name, cells in means.items()}
            if shown:
                panels.append(Panel(", ".join(filter(None, [label, text])), facet, shown))
    return panels


def _series(cells: Mapping[Key, Interval], facet: Cell) -> Series:
    own = {key: value for key, value in cells.items() if key[0] == facet}
    order = in_order(x for *_, x in own)
    return {
        name: {x: own[facet, name, x] for x in order if (facet, name, x) in own}
        for name in in_order(key[1] for key in own)
    }


def _styles(chart: Chart, measured: Sequence[Measured], panels: Sequence[Panel]) -> dict[Cell, SeriesStyle]:
    if not chart.hue:
        return dict(series.series_styles({one.label: one.arch for one in measured}).items())
    names = in_order(name for panel in panels for name in panel.series)
    colours = ["#0072B2", "#D55E00", "#009E73", *OTHER_COLOURS]
    if all(not isinstance(name, str) for name in names):
        shades = mpl.colormaps["viridis"]([0.9 * number / max(1, len(names) - 1) for number in range(len(names))])
        colours = [mpl.colors.to_hex(shade) for shade in shades]
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
    labels = {name: name if isinstance(name, str) else f"{words(chart.hue)} {name}" for name in shown}
    kind = "bars" if chart.kind == "bar" else "lines"
    return series.legend_handles({labels[name]: styles[name] for name in shown}, kind, size=4)


def _draw_series(axes: Axes, drawn: Series, styles: Mapping[Cell, SeriesStyle], chart: Chart) -> None:
    order = in_order(x for points in drawn.values() for x in points)
    numeric = chart.kind == "line" and not any(isinstance(x, str) for x in order)
    places = {x: float(x) if numeric else number for number, x in enumerate(order)}
    names = [name for name in styles if name in drawn]  # in the order of the legend
    for number, name in enumerate(names):
        points = drawn[name]
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
        _name_ticks(axes, order)


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


def _share_limits(axes: Sequence[Axes], panels: Sequence[Panel]) -> None:
    """Give the panels of the same facet, which show different conditions, the same limits."""
    for facet in {panel.facet for panel in panels}:
        same = [one for one, panel in zip(axes, panels, strict=True) if panel.facet == facet]
        lows, highs = zip(*(one.get_ylim() for one in same), strict=True)
        for one in same:
            one.set_ylim(min(lows), max(highs))


def _set_log_ticks(axes: Axes) -> None:
    """Set the ticks of logarithmic axes, at least two. An axis of a single number has it in the middle, with a tick."""
    for axis, set_limits in ((axes.xaxis, axes.set_xlim), (axes.yaxis, axes.set_ylim)):
        if axis.get_scale() != "log":
            continue
        lowest, highest = axis.get_data_interval()
        low, high = sorted(axis.get_view_interval())
        decades = LogLocator(subs=(1, 2, 5) if high < 100 * low else (1,), numticks=7)
        if lowest == highest:
            set_limits(lowest / 2, 2 * highest)
            axis.set_major_locator(FixedLocator([lowest]))
        elif sum(low <= tick <= high for tick in decades.tick_values(low, high)) >= FEWEST:
            axis.set_major_locator(decades)
        else:
            axis.set_major_locator(MaxNLocator(5, steps=[1, 2, 5, 10]))
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.10g}"))
        axis.set_minor_formatter(NullFormatter())


def _draw_heat_maps(axes: Sequence[Axes], panels: Sequence[Panel], label: str) -> None:
    """Draw all panels with one scale of colours, which has the label."""
    values = [point.mean for panel in panels for points in panel.series.values() for point in points.values()]
    low, high = min(0.0, *values), max(0.0, *values)
    colours, limit = ("RdBu_r", max(-low, high)) if low < 0 < high else ("Blues", 0.0)
    scale = mpl.colors.Normalize(-limit, limit) if limit else mpl.colors.Normalize(low, high or 1.0)
    for one, panel in zip(axes, panels, strict=True):
        columns = in_order(x for points in panel.series.values() for x in points)
        rows = list(panel.series)
        grid = [[panel.series[y][x].mean if x in panel.series[y] else float("nan") for x in columns] for y in rows]
        image = one.imshow(grid, cmap=colours, norm=scale, aspect="auto", interpolation="none")
        one.grid(visible=False)
        _name_ticks(one, columns)
        step = max(1, -(-len(rows) // MAX_TICKS))
        one.set_yticks(range(0, len(rows), step), [str(y) for y in rows[::step]])
        for y, cells in enumerate(grid if max(len(columns), len(rows)) <= MAX_WRITTEN else []):
            for x, value in enumerate(cells):
                if value == value:  # not nan
                    dark = abs(2 * scale(value) - 1) > 0.6 if limit else scale(value) > 0.6
                    one.text(x, y, f"{value:.2g}", ha="center", va="center", fontsize=6, color="w" if dark else "0.2")
    figure = axes[0].get_figure(root=True)
    bar = figure.colorbar(image, ax=list(axes), aspect=30, pad=0.01, fraction=0.03)  # type: ignore[union-attr]
    bar.set_label(label)
    bar.outline.set_visible(False)


def _name_ticks(axes: Axes, names: Sequence[Cell]) -> None:
    """Name some of the x positions 0, 1, 2, ..., upright where the names are long."""
    step = max(1, -(-len(names) // MAX_TICKS))
    shown = [str(name) for name in names[::step]]
    axes.set_xticks(range(0, len(names), step), shown, rotation=90 if sum(map(len, shown)) > 24 else 0)


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
    return f"{words(name).capitalize()}: {words(chart.value)} by {words(chart.x)}; {series.join(texts)}."
