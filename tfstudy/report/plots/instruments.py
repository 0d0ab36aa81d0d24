"""The figures of instruments: what they measured, as their chart describes it, and the attention maps of one run."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from tfstudy.errors import quoted
from tfstudy.report.markup import count_range
from tfstudy.report.measured import Measured, in_order, means, rank_note, value_label
from tfstudy.report.plots import layout
from tfstudy.runs.schema import Chart
from tfstudy.runs.schema import metric_name as words

if TYPE_CHECKING:
    from tfstudy.instruments.attention import Maps  # imports torch

MAX_PANELS = 24
MAX_LEGEND = 12
MAX_WRITTEN = 12  # columns and rows of a heat map whose cells have their numbers as text


def measurement(name: str, measured: Sequence[Measured]) -> layout.Plot:
    """Return the figure of what an instrument measured on these conditions."""
    chart, heat, title = measured[0].chart, measured[0].chart.kind == "heatmap", words(name).capitalize()
    # where conditions have no colours of their own, each has panels of its own
    frame = means(measured, "condition" if chart.hue else "facet")
    facets = frame["facet"].map(lambda one: words(one) if isinstance(one, str) else f"{words(chart.facet)} {one}")
    both = [", ".join(filter(None, names)) for names in zip(frame["condition"], facets, strict=True)]
    frame = frame.assign(panel=both if chart.hue else facets, label=frame["series" if chart.hue else "condition"])
    shown = [*frame.groupby("panel", sort=False)][:MAX_PANELS]
    styles = {} if heat else _styles(measured, frame)
    value, y_label = value_label(measured), chart.y_label or words(chart.y)
    with layout.theme():
        panels = layout.panels(f"{title}: {chart.hue_label or words(chart.hue)}" if heat else title, len(shown))
        first: dict[Any, Axes] = {}  # panels of the same facet, which show different conditions, have the same limits
        for axes, (panel, own) in zip(panels.axes, shown, strict=True):
            axes.set_title(panels.lines(str(panel)))
            if heat:
                _draw_heat_map(axes, own, pd.concat([every["mean"] for _, every in shown]))
            else:
                if (same := first.setdefault(own["facet"].iloc[0], axes)) is not axes:
                    axes.sharey(same)
                _draw_series(axes, own, styles, chart)
            if axes.get_yscale() == "log":
                layout.set_log_ticks(axes.yaxis)
        panels.label(chart.x_label or words(chart.x), y_label if heat else value)
        if heat:
            layout.colour_bar(panels, value)
        texts = [f"{panel or 'all'} {own['mean'].min():.3g} to {own['mean'].max():.3g}" for panel, own in shown]
        alt = f"{title}: {words(chart.value)} by {words(chart.x)}; {layout.join(texts)}."
        left_out = frame["panel"].nunique() - len(shown)
        notes = [_caption(measured), *[f"{left_out} more panels are not shown."] * bool(left_out)]
        kept = [*styles][:: max(1, -(-len(styles) // MAX_LEGEND))]
        names = {label if isinstance(label, str) else f"{words(chart.hue)} {label}": styles[label] for label in kept}
        legend = layout.legend_handles(names, lines=True)
        return panels.plot(f"measure-{name}", alt, legend, notes)


def _styles(measured: Sequence[Measured], frame: pd.DataFrame) -> dict[Any, layout.Style]:
    """Return the style of each series: by architecture, or without colours of conditions by its place in the order."""
    if not measured[0].chart.hue:
        return layout.styles_of(pd.DataFrame([(one.label, one.arch) for one in measured], columns=["label", "arch"]))
    names, colours = in_order(frame["label"]), [*layout.COLOURS.values(), *layout.OTHER_COLOURS]
    if not any(isinstance(name, str) for name in names):
        colours = sns.color_palette("viridis", len(names)).as_hex()
    return {name: layout.style_number(number, colours[number % len(colours)]) for number, name in enumerate(names)}


def _draw_series(axes: Axes, own: pd.DataFrame, styles: dict[Any, layout.Style], chart: Chart) -> None:
    """Draw lines against numbers, or against texts at the places 0, 1, 2, ..."""
    order = in_order(own["x"])
    numeric = not any(isinstance(x, str) for x in order)
    own = own.assign(x=own["x"].astype(float) if numeric else own["x"].map(order.index)).set_index("x")
    for label in (label for label in styles if label in set(own["label"])):
        layout.draw_line(axes, own[own["label"] == label], styles[label])
    axes.set(yscale="log" if chart.log_y else "linear")
    if not numeric:
        names = [*map(str, order)]
        axes.set_xticks(range(len(order)), names, rotation=90 if sum(map(len, names)) > 24 else 0)
    elif all(isinstance(x, int) for x in order):
        axes.xaxis.set_major_locator(MaxNLocator(6, integer=True))


def _draw_heat_map(axes: Axes, own: pd.DataFrame, every: "pd.Series[float]") -> None:
    """Draw a panel; `every` has the numbers of all panels, which have one scale of colours."""
    low, high = min(0.0, every.min()), max(0.0, every.max())
    limit = max(-low, high) if low < 0 < high else 0.0
    scale = mpl.colors.Normalize(-limit, limit) if limit else mpl.colors.Normalize(low, high or 1.0)
    grid = own.pivot(index="label", columns="x", values="mean")
    grid = grid.reindex(index=in_order(own["label"]), columns=in_order(own["x"]))
    annot = max(grid.shape) <= MAX_WRITTEN
    look: dict[str, Any] = {"cmap": "RdBu_r" if limit else "Blues", "norm": scale, "annot_kws": {"fontsize": 6}}
    layout.heat_map(axes, grid, annot=annot, fmt=".2g", **look)


def _caption(measured: Sequence[Measured]) -> str:
    """Return the number of runs and the settings: `5 seeds per condition, mean with 95 % interval; examples 200`."""
    counts = [len(one.records) for one in measured]
    seeds = "One seed" if max(counts) == 1 else f"{count_range(counts, 'seed')}"
    how = "" if max(counts) == 1 or measured[0].chart.kind == "heatmap" else ", mean with 95 % interval"
    settings = [f"{words(key)} {value}" for key, value in measured[0].records[0].settings.items() if value != ""]
    return "; ".join(filter(None, [f"{seeds} per condition{how}", rank_note(measured), *settings]))


# Attention maps

TITLES = {
    "encoder": "Encoder self-attention: from source tokens (rows) to source tokens",
    "decoder": "Decoder self-attention: from output tokens (rows) to the tokens before them",
    "prefix": "Self-attention: from output tokens (rows) to source tokens and the output tokens before them",
    "cross": "Cross-attention: from output tokens (rows) to source tokens",
}
WEIGHT, SMALLEST = 0.26, 0.02  # inches of the cell of a weight, if there is room, and at least
ROOM = (11.0, 15.0)  # inches for the cells of all panels
MAX_SHOWN = 200  # characters of a source or an output in an alt text


def attention(found: "Maps") -> layout.Plot:
    """Return the plot of maps of one kind: a row of panels for each layer, a column for each head, tokens as labels."""
    kind, maps, rows, columns = found.kind, found.maps, found.rows, found.columns
    heads = len({one.head for one in maps})
    cell = max(SMALLEST, min(WEIGHT, ROOM[0] / heads / len(columns), ROOM[1] * heads / len(maps) / len(rows)))
    step = math.ceil(0.9 * layout.LINE / cell)  # only every step-th token has a label
    edge = layout.LETTER * min(30, max(map(len, rows))) + 0.8
    width = max(4.0, heads * (max(0.85, cell * len(columns)) + 0.15) + edge)
    with layout.theme():
        panels = layout.uneven_panels(TITLES[kind], [max(0.4, cell * len(rows))] * len(maps), heads, width=width)
        for number, (axes, one) in enumerate(zip(panels.axes, maps, strict=True)):
            sns.heatmap(one.weights, cmap="Blues", vmin=0, vmax=1, cbar=False, ax=axes, xticklabels=[], yticklabels=[])
            axes.set_title(f"layer {one.layer}" + f", head {one.head}" * (heads > 1))
            if number + heads >= len(maps):
                axes.set_xticks([x + 0.5 for x in range(0, len(columns), step)], columns[::step], rotation=90)
            if number % heads == 0:
                axes.set_yticks([y + 0.5 for y in range(0, len(rows), step)], rows[::step], rotation=0)
            axes.tick_params(length=0, pad=2)
        layout.colour_bar(panels, "weight")
        source, output = (quoted(" ".join(tokens), MAX_SHOWN, "") for tokens in (found.source, found.output))
        alt = f"{TITLES[kind]}; {len(maps)} maps by layer and head. Source: {source}. Output: {output}."
        return panels.plot(f"attention-{kind}", alt)
