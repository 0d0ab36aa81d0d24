"""Attention maps as text: the token that each token attends to most."""

from collections.abc import Iterable, Sequence
from operator import itemgetter
from statistics import fmean

from rich.table import Table
from rich.text import Text

from tfstudy.instruments.attention import Map, Maps
from tfstudy.report.terminal import Terminal, plain_table

WIDTH = 80  # characters, where the output is not a terminal
LETTERS = 18  # of a token
NAMES = {
    "encoder": "encoder self-attention",
    "decoder": "decoder self-attention",
    "prefix": "self-attention",
    "cross": "cross-attention",
}


def show(found: Maps) -> None:
    """Print, for maps of one kind, the token that each token attends to most."""
    console = Terminal(piped_width=WIDTH)
    for part in summary(found, console.width):
        console.print(part)


def summary(found: Maps, width: int = WIDTH) -> list[Table | str]:
    """Return a table of maps of one kind: for each row the column with the largest mean weight over heads.

    It has a column for each layer; the last layers, as far as they fit in a width.
    """
    kind, layers = found.maps[0].kind, sorted({m.layer for m in found.maps})
    rows, columns = ([_short(token) for token in tokens] for tokens in (found.rows(kind), found.columns(kind)))
    place, cell = len(str(len(columns))), max(map(len, columns))
    shown = layers[-max(1, (width - 6 - max(map(len, rows))) // (cell + place + 8)) :]
    table = plain_table()
    table.add_column("", justify="right", style="dim")
    table.add_column("source" if kind == "encoder" else "output", no_wrap=True)
    for layer in shown:
        table.add_column(f"layer {layer}", no_wrap=True)
    means = [mean_weights([m for m in found.maps if m.layer == layer]) for layer in shown]
    for number, row in enumerate(rows):
        best = [max(enumerate(mean[number]), key=itemgetter(1)) for mean in means]
        cells = [f"{at + 1:{place}} {columns[at]:{cell}} {weight:4.2f}" for at, weight in best]
        table.add_row(str(number + 1), Text(row), *map(Text, cells))
    hidden = len(layers) - len(shown)
    title = f"{NAMES[kind]}: the token with the largest weight{_heads(found.maps)}"
    return [title, table, *([f"{hidden} earlier layers are not shown; choose one with --layer"] if hidden else [])]


def mean_weights(maps: Sequence[Map]) -> list[list[float]]:
    """Return the mean of maps of the same shape."""
    rows = zip(*(m.weights for m in maps), strict=True)
    return [[fmean(cells) for cells in zip(*row, strict=True)] for row in rows]


def _heads(maps: Iterable[Map]) -> str:
    heads = {m.head for m in maps}
    if len(heads) == 1:
        return "" if heads == {1} else f", head {heads.pop()}"  # most architectures have one
    return f", mean of {len(heads)} heads"


def _short(token: str) -> str:
    return token if len(token) <= LETTERS else f"{token[: LETTERS - 1]}…"
