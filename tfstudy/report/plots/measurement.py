"""The figure of an instrument, as its chart describes it: lines, bars or heat maps, averaged over seeds."""

from collections.abc import Sequence
from typing import Any

import matplotlib as mpl
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from tfstudy.report.markup import count_range
from tfstudy.report.measured import Measured, in_order, means, rank_note, value_label, words
from tfstudy.report.plots import layout, series
from tfstudy.runs.measurement_record import Cell, Chart

MAX_PANELS = 24
MAX_LEGEND = 12
MAX_WRITTEN = 12  # columns and rows of a heat map whose cells have their numbers as text
MAX_TICKS = 20  # of names


def plot(name: str, measured: Sequence[Measured], sheet: layout.Sheet = layout.SCREEN) -> layout.Plot:
    """Return the figure of what an instrument measured on these conditions."""
    chart, heat = measured[0].chart, measured[0].chart.kind == "heatmap"
    # where conditions have no colours of their own, each has panels of its own
    frame = means(measured, "condition" if chart.hue else "facet")
    facets = frame["facet"].map(lambda one: words(one) if isinstance(one, str) else f"{words(chart.facet)} {one}")
    both = [", ".join(filter(None, names)) for names in zip(frame["condition"], facets, strict=True)]
    frame = frame.assign(panel=both if chart.hue else facets, label=frame["series" if chart.hue else "condition"])
    every = series.grouped(frame, "panel")
    shown = every[:MAX_PANELS]
    drawn, caption = pd.concat([own for _, own in shown]), [_caption(measured)]
    caption += [f"{len(every) - MAX_PANELS} more panels are not shown."] * (len(every) > MAX_PANELS)
    title = words(name).capitalize() + (f": {chart.hue_label or words(chart.hue)}" if heat else "")
    y, styles = (
        (chart.y_label or words(chart.y)) if heat else value_label(measured),
        {} if heat else _styles(measured, drawn),
    )
    with layout.theme(sheet):
        panels = layout.panels(sheet, title, len(shown))
        first: dict[Cell, Axes] = {}  # panels of the same facet, which show different conditions, have the same limits
        for axes, (panel, own) in zip(panels.axes, shown, strict=True):
            axes.set_title(panels.lines(panel))
            if heat:
                _draw_heat_map(axes, own, drawn["mean"])
                continue
            same = first.setdefault(own["facet"].iloc[0], axes)
            if same is not axes:
                axes.sharey(same)
            _draw_series(axes, own, styles, chart)
        panels.label(chart.x_label or words(chart.x), y)
        if heat:
            inner = panels.figure.subfigs[0]
            bar = inner.colorbar(panels.axes[0].collections[0], ax=panels.axes, aspect=30, pad=0.01, fraction=0.03)
            bar.set_label(value_label(measured))
            bar.outline.set_visible(False)
        for axes in panels.axes:
            for axis in (axis for axis in (axes.xaxis, axes.yaxis) if axis.get_scale() == "log"):
                layout.set_log_ticks(axis)
        texts = [f"{panel or 'all'} {own['mean'].min():.3g} to {own['mean'].max():.3g}" for panel, own in shown]
        alt = f"{words(name).capitalize()}: {words(chart.value)} by {words(chart.x)}; {series.join(texts)}."
        return panels.plot(f"measure-{name}", alt, _legend(chart, styles), caption)


def _styles(measured: Sequence[Measured], drawn: pd.DataFrame) -> series.Styles:
    if not measured[0].chart.hue:
        return series.series_styles({one.label: one.arch for one in measured})
    names = in_order(drawn["label"])
    colours = [*series.COLOURS.values(), *series.OTHER_COLOURS]
    if not any(isinstance(name, str) for name in names):
        colours = sns.color_palette("viridis", len(names)).as_hex()
    count = len(colours)
    styles = [
        series.style_number(i, colours[i % count])._replace(line=series.LINES[i // count % 4])
        for i in range(len(names))
    ]
    return dict(zip(names, styles, strict=True))


def _legend(chart: Chart, styles: series.Styles) -> list[Any]:
    """Return the handles of some series, spread evenly if there are many."""
    names = list(styles)
    count = min(MAX_LEGEND, len(names))
    shown = [names[round(i * (len(names) - 1) / max(1, count - 1))] for i in range(count)]
    labels = {name if isinstance(name, str) else f"{words(chart.hue)} {name}": styles[name] for name in shown}
    return series.legend_handles(labels, "bars" if chart.kind == "bar" else "lines", size=4)


def _draw_series(axes: Axes, own: pd.DataFrame, styles: series.Styles, chart: Chart) -> None:
    order = in_order(own["x"])
    numeric = chart.kind == "line" and not any(isinstance(x, str) for x in order)
    own = own.assign(x=own["x"].astype(float) if numeric else own["x"].map(order.index))
    if chart.kind == "bar":
        series.draw_bars(axes, own, styles)
    for label in styles if chart.kind != "bar" else ():
        points = own[own["label"] == label].set_index("x")
        if len(points):
            series.draw_line(axes, points, styles[label], **{"ms": 5} if len(points) == 1 else {})
    axes.set(xscale="log" if chart.log_x and numeric else "linear", yscale="log" if chart.log_y else "linear")
    if not numeric:
        step = -(-len(order) // MAX_TICKS)
        names = [str(name) for name in order[::step]]
        axes.set_xticks(range(0, len(order), step), names, rotation=90 if sum(map(len, names)) > 24 else 0)
    elif len(order) == 1:
        axes.set_xticks(order, [f"{order[0]:g}"])
    elif all(isinstance(x, int) for x in order) and not chart.log_x:
        axes.xaxis.set_major_locator(MaxNLocator(6, integer=True))


def _draw_heat_map(axes: Axes, own: pd.DataFrame, every: "pd.Series[float]") -> None:
    """Draw a panel; `every` has the numbers of all panels, which have one scale of colours."""
    low, high = min(0.0, every.min()), max(0.0, every.max())
    limit = max(-low, high) if low < 0 < high else 0.0
    scale = mpl.colors.Normalize(-limit, limit) if limit else mpl.colors.Normalize(low, high or 1.0)
    columns = {x: own[own["x"] == x].set_index("label")["mean"] for x in in_order(own["x"])}
    grid = pd.DataFrame(columns).reindex(in_order(own["label"]))
    steps = [-(-side // MAX_TICKS) for side in grid.shape]
    sns.heatmap(
        grid, cmap="RdBu_r" if limit else "Blues", norm=scale, annot=max(grid.shape) <= MAX_WRITTEN, fmt=".2g",
        annot_kws={"fontsize": 6}, cbar=False, yticklabels=steps[0], xticklabels=steps[1], ax=axes,
    )  # fmt: skip
    axes.tick_params("x", labelrotation=90 if sum(len(str(x)) for x in grid) > 24 else 0)
    axes.tick_params("y", labelrotation=0)


def _caption(measured: Sequence[Measured]) -> str:
    """Return the number of runs and the settings: `5 seeds per condition, mean with 95 % interval; examples 200`."""
    counts = [len(one.records) for one in measured]
    seeds = "One seed" if max(counts) == 1 else f"{count_range(counts, 'seed')}"
    how = "" if max(counts) == 1 or measured[0].chart.kind == "heatmap" else ", mean with 95 % interval"
    settings = [f"{words(key)} {value}" for key, value in measured[0].records[0].settings.items() if value != ""]
    return "; ".join(filter(None, [f"{seeds} per condition{how}", rank_note(measured), *settings]))
