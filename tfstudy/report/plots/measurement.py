"""The figure of an instrument, as its chart describes it: lines, bars or heat maps, averaged over seeds."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

from tfstudy.analysis.intervals import Interval
from tfstudy.report.markup import count_range
from tfstudy.report.measured import Key, Measured, in_order, intervals
from tfstudy.report.plots import captions, layout
from tfstudy.report.plots.panel_labels import label_axes, set_title
from tfstudy.report.plots.series_style import LINES, MARKERS, OTHER_COLOURS, SeriesStyle, series_styles
from tfstudy.runs.measurement_record import Cell, Chart

MAX_PANELS = 24
MAX_LEGEND = 12
MAX_WRITTEN = 12  # columns and rows of a heat map whose cells have their numbers as text
MAX_TICKS = 20
MARKED = 30  # points of a line that have markers

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
    notes = [
        _caption(measured),
        *([f"{len(every) - MAX_PANELS} more panels are not shown."] * (len(every) > MAX_PANELS)),
    ]
    with layout.theme(sheet):
        figure, axes = layout.panels(
            sheet, _title(name, chart), len(panels), legend=_legend(chart, styles), notes=notes
        )
        label_axes(axes, chart.x_label or _words(chart.x), chart.y_label or _words(chart.y))
        for one, panel in zip(axes, panels, strict=True):
            set_title(one, panel.title)
        if heat:
            _draw_heatmaps(axes, panels, chart)
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
    facets = in_order(key[0] for cells in means.values() for key in cells)
    if chart.hue:
        both = [(label, facet) for label in means for facet in facets]
        found = [Panel(_panel_title(label, facet, chart), facet, _series(means[label], facet)) for label, facet in both]
        return [panel for panel in found if panel.series]
    return [
        Panel(
            _panel_title("", facet, chart),
            facet,
            {label: _series(cells, facet).get("", {}) for label, cells in means.items()},
        )
        for facet in facets
    ]


def _series(cells: Mapping[Key, Interval], facet: Cell) -> Series:
    own = {key: value for key, value in cells.items() if key[0] == facet}
    order = in_order(x for *_, x in own)
    return {
        name: {x: own[facet, name, x] for x in order if (facet, name, x) in own}
        for name in in_order(key[1] for key in own)
    }


def _panel_title(label: str, facet: Cell, chart: Chart) -> str:
    text = f"{_words(chart.facet)} {facet}" if not isinstance(facet, str) else _words(facet)
    return ", ".join(filter(None, [captions.shorten(label), text]))


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
        label = f"{_words(chart.hue)} {name}" if not isinstance(name, str) else captions.wrap(name)
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
    if all(isinstance(x, int) for x in order):
        axes.xaxis.set_major_locator(MaxNLocator(6, integer=True))
    if chart.log_x and numeric:
        axes.set_xscale("log")
    if chart.log_y:
        axes.set_yscale("log")
    if not numeric:
        _category_ticks(axes, order)


def _set_log_ticks(axes: Axes) -> None:
    for axis in (axes.xaxis, axes.yaxis):
        if axis.get_scale() == "log":
            low, high = axis.get_view_interval()
            axis.set_major_locator(LogLocator(subs=(1, 2, 5) if high < 100 * low else (1,), numticks=7))
            axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.10g}"))
            axis.set_minor_formatter(NullFormatter())


def _share_limits(axes: Sequence[Axes], panels: Sequence[Panel]) -> None:
    """Give the panels of the same facet, which show different conditions, the same limits."""
    for facet in {panel.facet for panel in panels}:
        same = [one for one, panel in zip(axes, panels, strict=True) if panel.facet == facet]
        lows, highs = zip(*(one.get_ylim() for one in same), strict=True)
        for one in same:
            one.set_ylim(min(lows), max(highs))


def _draw_line(axes: Axes, xs: Sequence[float], points: Sequence[Interval], style: SeriesStyle) -> None:
    marker = style.marker if len(xs) <= MARKED else ""
    axes.plot(xs, [p.mean for p in points], color=style.colour, ls=style.line, marker=marker, ms=3, lw=1.3, zorder=3)
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


def _draw_heatmaps(axes: Sequence[Axes], panels: Sequence[Panel], chart: Chart) -> None:
    """Draw all panels with one scale of colours."""
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
        _category_ticks(one, columns)
        step = max(1, -(-len(rows) // MAX_TICKS))
        one.set_yticks(range(0, len(rows), step), [str(y) for y in rows[::step]])
        if max(len(columns), len(rows)) <= MAX_WRITTEN:
            _write_numbers(one, grid, scale, centred=bool(limit))
    figure = axes[0].get_figure(root=True)
    bar = figure.colorbar(image, ax=list(axes), aspect=30, pad=0.01, fraction=0.03)  # type: ignore[union-attr]
    bar.set_label(chart.hue_label or _words(chart.hue))
    bar.outline.set_visible(False)


def _write_numbers(axes: Axes, grid: Sequence[Sequence[float]], scale: Any, centred: bool) -> None:
    for row, cells in enumerate(grid):
        for column, value in enumerate(cells):
            if value == value:
                dark = abs(2 * scale(value) - 1) > 0.6 if centred else scale(value) > 0.6
                axes.text(
                    column, row, f"{value:.2g}", ha="center", va="center", fontsize=6, color="w" if dark else "0.2"
                )


def _category_ticks(axes: Axes, names: Sequence[Cell]) -> None:
    step = max(1, -(-len(names) // MAX_TICKS))
    shown = [str(name) for name in names[::step]]
    turned = sum(map(len, shown)) > 24
    axes.set_xticks(range(0, len(names), step), shown, rotation=90 if turned else 0)


def _title(name: str, chart: Chart) -> str:
    return (
        f"{_words(name).capitalize()}: {chart.hue_label or _words(chart.hue)}"
        if chart.kind == "heatmap"
        else (f"{_words(name).capitalize()}")
    )


def _caption(measured: Sequence[Measured]) -> str:
    """Return the number of runs and the settings: `5 seeds per condition, mean with 95 % interval; examples 200`."""
    counts = [len(one.records) for one in measured]
    seeds = "One seed" if max(counts) == 1 else f"{count_range(counts, 'seed')}"
    how = "" if max(counts) == 1 or measured[0].chart.kind == "heatmap" else ", mean with 95 % interval"
    settings = [f"{_words(key)} {value}" for key, value in measured[0].records[0].settings.items() if value != ""]
    return "; ".join([f"{seeds} per condition{how}", *settings])


def _describe(name: str, chart: Chart, panels: Sequence[Panel]) -> str:
    """Return the text for readers who cannot see the picture: the range of the numbers in each panel."""
    texts = []
    for panel in panels:
        means = [point.mean for points in panel.series.values() for point in points.values()]
        texts.append(f"{panel.title or 'all'} {min(means):.3g} to {max(means):.3g}")
    return f"{_words(name).capitalize()}: {_words(chart.value)} by {_words(chart.x)}; {captions.join(texts)}."


def _words(name: str) -> str:
    return name.replace("_", " ")
