"""Heat maps of an instrument: a panel for each condition and facet, with one scale of colours."""

from collections.abc import Sequence
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes

from tfstudy.report.measured import in_order
from tfstudy.report.plots.measurement_panels import Panel
from tfstudy.runs.measurement_record import Cell

MAX_WRITTEN = 12  # columns and rows of a heat map whose cells have their numbers as text
MAX_TICKS = 20


def draw_heatmaps(axes: Sequence[Axes], panels: Sequence[Panel], label: str) -> None:
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
        category_ticks(one, columns)
        step = max(1, -(-len(rows) // MAX_TICKS))
        one.set_yticks(range(0, len(rows), step), [str(y) for y in rows[::step]])
        if max(len(columns), len(rows)) <= MAX_WRITTEN:
            _write_numbers(one, grid, scale, centred=bool(limit))
    figure = axes[0].get_figure(root=True)
    bar = figure.colorbar(image, ax=list(axes), aspect=30, pad=0.01, fraction=0.03)  # type: ignore[union-attr]
    bar.set_label(label)
    bar.outline.set_visible(False)


def _write_numbers(axes: Axes, grid: Sequence[Sequence[float]], scale: Any, centred: bool) -> None:
    for row, cells in enumerate(grid):
        for column, value in enumerate(cells):
            if value == value:
                dark = abs(2 * scale(value) - 1) > 0.6 if centred else scale(value) > 0.6
                axes.text(
                    column, row, f"{value:.2g}", ha="center", va="center", fontsize=6, color="w" if dark else "0.2"
                )


def category_ticks(axes: Axes, names: Sequence[Cell]) -> None:
    step = max(1, -(-len(names) // MAX_TICKS))
    shown = [str(name) for name in names[::step]]
    turned = sum(map(len, shown)) > 24
    axes.set_xticks(range(0, len(names), step), shown, rotation=90 if turned else 0)
