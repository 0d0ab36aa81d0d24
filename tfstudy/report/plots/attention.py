"""The figure of attention maps: a panel for each layer and head, with tokens at the outer ones."""

import math
from typing import TYPE_CHECKING

import seaborn as sns

from tfstudy.errors import printable
from tfstudy.report.plots import layout

if TYPE_CHECKING:
    from tfstudy.instruments.attention import Maps  # imports torch

TITLES = {
    "encoder": "Encoder self-attention: from source tokens (rows) to source tokens",
    "decoder": "Decoder self-attention: from output tokens (rows) to the tokens before them",
    "prefix": "Self-attention: from output tokens (rows) to source tokens and the output tokens before them",
    "cross": "Cross-attention: from output tokens (rows) to source tokens",
}
WEIGHT, SMALLEST = 0.26, 0.02  # inches of the cell of a weight, if there is room, and at least
ROOM = (11.0, 15.0)  # inches for the cells of all panels
POINTS = (4.5, 8.0)  # of the tokens


def plot(found: "Maps") -> layout.Plot:
    """Return the plot of maps of one kind: a row of panels for each layer, a column for each head, tokens as labels."""
    kind, several = found.maps[0].kind, len({one.head for one in found.maps}) > 1
    rows, columns = found.rows(kind), found.columns(kind)
    layers, heads = sorted({one.layer for one in found.maps}), sorted({one.head for one in found.maps})
    cell = max(SMALLEST, min(WEIGHT, ROOM[0] / len(heads) / len(columns), ROOM[1] / len(layers) / len(rows)))
    points = min(POINTS[1], max(POINTS[0], 72 * cell * 0.75))
    step = max(1, math.ceil(1.15 * points / 72 / cell))  # only every step-th token has a label, with its number
    with layout.theme():
        heights = [max(0.4, cell * len(rows))] * len(layers) * len(heads)
        panels = layout.uneven_panels(layout.SCREEN, TITLES[kind], max(0.85, cell * len(columns)), heights, len(heads))
        for axes in panels.axes:
            axes.set_axis_off()
        for one in found.maps:
            row, column = layers.index(one.layer), heads.index(one.head)
            axes = panels.axes[row * len(heads) + column]
            axes.set_axis_on()
            sns.heatmap(one.weights, cmap="Blues", vmin=0, vmax=1, cbar=False, ax=axes, xticklabels=[], yticklabels=[])
            axes.set_title(f"layer {one.layer}" + (f", head {one.head}" if several else ""), fontsize=8)
            if row == len(layers) - 1:
                axes.set_xticks([x + 0.5 for x in range(0, len(columns), step)], _labels(columns, step), rotation=90)
            if column == 0:
                axes.set_yticks([y + 0.5 for y in range(0, len(rows), step)], _labels(rows, step), rotation=0)
            axes.tick_params(length=0, pad=2, labelsize=points)
        bar = panels.figure.subfigs[0].colorbar(axes.collections[0], ax=panels.axes, aspect=30, pad=0.01, fraction=0.02)
        bar.set_label("weight", fontsize=8)
        bar.ax.tick_params(labelsize=7)
        bar.outline.set_visible(False)
        texts = (" ".join(tokens) for tokens in (found.source, found.output))
        source, output = (text if len(text) <= 200 else f"{text[:200]}..." for text in map(printable, texts))
        alt = f"{TITLES[kind]}; {len(found.maps)} maps by layer and head. Source: {source}. Output: {output}."
        return panels.plot(f"attention-{kind}", alt)


def _labels(tokens: tuple[str, ...], step: int) -> list[str]:
    """Return every `step`-th token, with its number if others are between them."""
    numbers = [f"{number} " if step > 1 else "" for number in range(1, len(tokens) + 1)]
    return [number + token for number, token in zip(numbers, tokens, strict=True)][::step]
