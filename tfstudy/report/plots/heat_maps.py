"""Heat maps: the mean of each setting on each test set (`--kind settings`), and attention."""

import math
from collections.abc import Sequence
from itertools import takewhile
from typing import TYPE_CHECKING

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tfstudy.analysis.labels import Condition
from tfstudy.config.trees import short_key
from tfstudy.errors import UserError, printable
from tfstudy.report.plots import layout, series

if TYPE_CHECKING:
    from tfstudy.instruments.attention import Maps  # imports torch

SETTING = (0.62, 0.21)  # inches of the cell of a setting
DARK = 60.0  # percent above which a number is white
DEFAULT = "(default)"
TITLES = {
    "encoder": "Encoder self-attention: from source tokens (rows) to source tokens",
    "decoder": "Decoder self-attention: from output tokens (rows) to the tokens before them",
    "prefix": "Self-attention: from output tokens (rows) to source tokens and the output tokens before them",
    "cross": "Cross-attention: from output tokens (rows) to source tokens",
}
WEIGHT, SMALLEST = 0.26, 0.02  # inches of the cell of a weight, if there is room, and at least
ROOM = (11.0, 15.0)  # inches for the cells of all panels
LEAST_WIDTH = 0.85  # inches of a panel: its title
POINTS = (4.5, 8.0)  # of the tokens


# Settings


def settings(conditions: Sequence[Condition], sheet: layout.Sheet) -> layout.Plot:
    """Return the mean over seeds of the main metric; `UserError` if no architecture has two settings.

    A setting that was not evaluated on a test set leaves its cell empty.
    """
    metrics = series.main_metrics(conditions)
    shown = [condition for condition in conditions if condition.each_seed]
    labels, groups = list(series.condition_styles(shown)), series.group_by_test_set(shown)
    found: dict[str, dict[str, float]] = {label: {} for label in labels}
    for name, members in groups.items():
        for one in members:
            found[row_label(one, labels)][name] = one.mean
    means = {label: own for label, own in found.items() if own}
    if len(means) == len({condition.arch for condition in shown}):
        raise UserError("a plot of settings needs at least two settings of an architecture, evaluated on a test set")
    rows = dict(zip(row_names(list(means)), means.values(), strict=True))
    slanted = 0.65 * sheet.letter * max(map(len, groups))  # the names of the columns
    width = SETTING[0] * len(groups) + 1.2 * sheet.letter * max(map(len, rows)) + 0.3
    figure, [axes] = layout.uneven_panels(
        sheet, "Mean of each setting on each test set", [SETTING[1] * len(rows) + slanted + 0.2], width, 1, [],
        [f"{series.metric_label(metrics)}, mean over seeds.", series.run_caption(shown)],
    )  # fmt: skip
    grid = [[own.get(column, float("nan")) for column in groups] for own in rows.values()]
    axes.imshow(grid, cmap="Blues", norm=mpl.colors.Normalize(0, 100), aspect="auto", interpolation="none")
    axes.grid(visible=False)
    axes.set_yticks(range(len(rows)), list(rows))
    axes.set_xticks(range(len(groups)), list(groups), rotation=40, ha="right", rotation_mode="anchor")
    for y, cells in enumerate(grid):
        for x, value in enumerate(cells):
            if value == value:  # not nan
                ink = "white" if value > DARK else "0.2"
                axes.text(x, y, f"{value:.0f}", ha="center", va="center", fontsize=min(7.5, sheet.points), color=ink)
    texts = {name: ", ".join(f"{column} {value:.1f}" for column, value in own.items()) for name, own in rows.items()}
    described = series.join([f"{name}: {text}" for name, text in texts.items()])
    return layout.Plot("settings", figure, f"Mean {series.metric_label(metrics)} of each setting: {described}.")


def row_label(condition: Condition, labels: Sequence[str]) -> str:
    """Return the label of a condition, or one that says more and is true of it too: of a task that varies more."""
    words = set(condition.label.split())
    known = {short_key(key): str(value) for key, value in condition.config.items()}

    def is_true(word: str) -> bool:
        key, _, value = word.partition("=")
        return word == condition.preset or known.get(key) == value

    longer = (label for label in labels if words < set(label.split()))
    return next((label for label in longer if all(map(is_true, set(label.split()) - words))), condition.label)


def row_names(labels: Sequence[str]) -> list[str]:
    """Return labels without the words that all of them start with."""
    texts = [label.split() for label in labels]
    shared = len(list(takewhile(lambda words: len(set(words)) == 1, zip(*texts, strict=False))))
    return [" ".join(words[shared:]) or DEFAULT for words in texts]


# Attention


def attention(found: "Maps") -> layout.Plot:
    """Return the plot of maps of one kind: a row of panels for each layer, a column for each head, tokens as labels."""
    kind = found.maps[0].kind
    title = TITLES[kind]
    layers, heads = sorted({m.layer for m in found.maps}), sorted({m.head for m in found.maps})
    with layout.theme():
        figure, panels = _attention_panels(found, title, len(layers), len(heads))
        for m in found.maps:
            axes = panels[layers.index(m.layer)][heads.index(m.head)]
            image = axes.imshow(m.weights, cmap="Blues", vmin=0, vmax=1, aspect="auto", interpolation="none")
            axes.set_title(f"layer {m.layer}" + (f", head {m.head}" if max(heads) > 1 else ""), fontsize=8)
        bar = figure.colorbar(image, ax=[axes for row in panels for axes in row], aspect=30, pad=0.01, fraction=0.02)
        bar.set_label("weight", fontsize=8)
        bar.ax.tick_params(labelsize=7)
        bar.outline.set_visible(False)
    texts = (" ".join(tokens) for tokens in (found.source, found.output))
    source, output = (text if len(text) <= 200 else f"{text[:200]}..." for text in map(printable, texts))
    alt = f"{title}; {len(found.maps)} maps by layer and head. Source: {source}. Output: {output}."
    return layout.Plot(f"attention-{kind}", figure, alt)


def _attention_panels(found: "Maps", title: str, layers: int, heads: int) -> tuple[Figure, list[list[Axes]]]:
    """Return a figure and its panels, by layer and head, with tokens at the outer ones."""
    rows, columns = found.rows(found.maps[0].kind), found.columns(found.maps[0].kind)
    cell = max(SMALLEST, min(WEIGHT, ROOM[0] / heads / len(columns), ROOM[1] / layers / len(rows)))
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
