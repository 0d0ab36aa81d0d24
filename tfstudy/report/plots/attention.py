"""Attention maps: a panel for each layer and head, with the tokens as labels."""

import math
from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tfstudy.errors import printable
from tfstudy.report.plots import layout
from tfstudy.runs.attention_record import AttentionRecord

TITLES = {
    "encoder": "Encoder self-attention: from source tokens (rows) to source tokens",
    "decoder": "Decoder self-attention: from output tokens (rows) to the tokens before them",
    "prefix": "Self-attention: from output tokens (rows) to source tokens and the output tokens before them",
    "cross": "Cross-attention: from output tokens (rows) to source tokens",
}
CELL = 0.26  # inches of a weight, if there is room
ROOM = (11.0, 15.0)  # inches for the cells of all panels
SMALLEST = 0.02
LEAST_WIDTH = 0.85  # inches of a panel: its title
POINTS = (4.5, 8.0)  # of the tokens


def plot(record: AttentionRecord) -> layout.Plot:
    """Return the plot of maps of one kind: a row of panels for each layer, a column for each head."""
    kind = record.maps[0].kind
    rows, columns = record.rows(kind), record.columns(kind)
    layers, heads = sorted({m.layer for m in record.maps}), sorted({m.head for m in record.maps})
    cell = min(CELL, ROOM[0] / len(heads) / len(columns), ROOM[1] / len(layers) / len(rows))
    cell, several = max(cell, SMALLEST), max(heads) > 1
    with layout.theme():
        figure, panels = _panels(len(layers), len(heads), cell, rows, columns, TITLES[kind])
        for m in record.maps:
            axes = panels[layers.index(m.layer)][heads.index(m.head)]
            image = axes.imshow(m.weights, cmap="Blues", vmin=0, vmax=1, aspect="auto", interpolation="none")
            axes.set_title(f"layer {m.layer}" + (f", head {m.head}" if several else ""), fontsize=8)
        bar = figure.colorbar(image, ax=[axes for row in panels for axes in row], aspect=30, pad=0.01, fraction=0.02)
        bar.set_label("weight", fontsize=8)
        bar.ax.tick_params(labelsize=7)
        bar.outline.set_visible(False)
    return layout.Plot(f"attention-{kind}", figure, _describe(record, kind))


def _panels(
    layers: int, heads: int, cell: float, rows: Sequence[str], columns: Sequence[str], title: str
) -> tuple[Figure, list[list[Axes]]]:
    """Return a figure and its panels, by layer and head, with tokens at the outer ones."""
    points = min(POINTS[1], max(POINTS[0], 72 * cell * 0.75))
    step = max(1, math.ceil(1.15 * points / 72 / cell))  # only every step-th token has a label
    left, below = (0.62 * points / 72 * max(map(len, _labels(tokens, step))) for tokens in (rows, columns))
    panel = max(LEAST_WIDTH, cell * len(columns)), max(0.4, cell * len(rows))
    width, height = heads * (panel[0] + 0.12) + left + 0.9, layers * (panel[1] + 0.3) + below + 0.5
    width = max(width, 0.075 * len(title))
    figure = Figure(figsize=(width, height), dpi=layout.SCREEN.dpi, layout="constrained")
    figure.suptitle(title, x=layout.MARGIN / width, ha="left")
    panels = figure.subplots(layers, heads, squeeze=False, sharex=True, sharey=True).tolist()
    panels[0][0].set_xticks(range(0, len(columns), step), _labels(columns, step))  # all panels share them
    panels[0][0].set_yticks(range(0, len(rows), step), _labels(rows, step))
    for axes in (axes for row in panels for axes in row):
        axes.tick_params(length=0, pad=2, labelsize=points)
        axes.tick_params(axis="x", labelrotation=90)
        axes.grid(visible=False)
    return figure, panels


def _labels(tokens: Sequence[str], step: int) -> list[str]:
    """Return every `step`-th token, with its number if others are between them."""
    numbers = [f"{number} " if step > 1 else "" for number in range(1, len(tokens) + 1)]
    return [number + token for number, token in zip(numbers, tokens, strict=True)][::step]


def _describe(record: AttentionRecord, kind: str) -> str:
    """Return the text for readers who cannot see the picture."""
    texts = (" ".join(tokens) for tokens in (record.source, record.output))
    source, output = (text if len(text) <= 200 else f"{text[:200]}..." for text in map(printable, texts))
    return f"{TITLES[kind]}; {len(record.maps)} maps by layer and head. Source: {source}. Output: {output}."
