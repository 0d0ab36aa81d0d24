"""Rows as aligned columns of text, which fit a terminal; where there is no terminal, a row is one line."""

import re
import shutil
import sys
from collections.abc import Collection, Iterable, Sequence
from itertools import groupby
from textwrap import wrap

from rich.cells import cell_len, set_cell_size
from rich.text import Text

from tfstudy.runs.status import DIVERGED, FAILED, FINISHED, INTERRUPTED, PENDING, RUNNING

GAP = "  "
LEAST = 30  # characters of the last column on a narrow terminal
SHORTEST = 20  # characters of a column that is shortened
STYLES = {FINISHED: "green", DIVERGED: "yellow", FAILED: "red", INTERRUPTED: "yellow", RUNNING: "cyan", PENDING: "dim"}
STATE = re.compile(rf" {{0,2}}({'|'.join(STYLES)})(?!\S)")


def aligned(rows: Iterable[Sequence[str]], right: Collection[int] = ()) -> list[str]:
    """Return rows of the same length as lines of any width; `right` are the numbers of columns aligned to the right."""
    rows = list(rows)
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        GAP.join(f"{cell:{'>' if i in right else '<'}{widths[i]}}" for i, cell in enumerate(row)).rstrip()
        for row in rows
    ]


def columns(rows: Iterable[Sequence[str]], width: int | None = None, cut: int | None = None) -> list[str]:
    """Return rows as aligned lines; the last column is wrapped at `width` characters, by default the terminal's.

    Column `cut` is shortened, if it would leave the last one too little room. A row of one cell is a heading.
    """
    rows = [list(map(str, row)) for row in rows]
    width = terminal_width() if width is None else width
    count = max(map(len, rows), default=0)
    widths = [max(map(cell_len, column)) for column in zip(*(row for row in rows if len(row) == count), strict=True)]
    if width and cut is not None and widths:
        widths[cut] = min(widths[cut], max(SHORTEST, widths[cut] + width - sum(widths) - len(GAP) * (count - 1)))
    lines: list[str] = []
    for row in rows:
        lines += _lines(row, widths[: len(row) - 1], width)
    return lines


def _lines(row: Sequence[str], widths: Sequence[int], width: int) -> list[str]:
    """Return a row as lines, its last cell wrapped."""
    *cells, last = row
    cells = [shortened(cell, size) for cell, size in zip(cells, widths, strict=True)]
    head = "".join(f"{cell}{' ' * (size - cell_len(cell))}{GAP}" for cell, size in zip(cells, widths, strict=True))
    indent = cell_len(head)
    parts = wrap(last, max(LEAST, width - indent), break_on_hyphens=False) if width else [last]
    return [f"{' ' * indent if i else head}{part}".rstrip() for i, part in enumerate(parts or [""])]


def run_lines(rows: Iterable[Sequence[str]], name: int, cut: int | None = None) -> list[str]:
    """Return rows on runs as lines; on a terminal, runs stand below the name of their folder.

    Column `name` has the names or paths of the runs, and column `cut` is shortened.
    """
    rows = list(rows)
    if not terminal_width():
        return columns(rows)
    lines: list[Sequence[str]] = []
    for folder, members in groupby(rows, key=lambda row: row[name].rpartition("/")[0]):
        lines.append([folder])
        for row in members:
            cells = [*row[:name], row[name].rpartition("/")[2], *row[name + 1 :]]
            lines.append([f"  {cells[0]}", *cells[1:]])
    return columns(lines, cut=cut)


def shortened(text: str, width: int) -> str:
    """Return text cut to a width."""
    return text if cell_len(text) <= width else set_cell_size(text, width - 3) + "..."


def shortened_inside(text: str, width: int) -> str:
    """Return text of a width, without its middle: names often differ in their ends."""
    start = (width - 3) // 2
    return text if len(text) <= width else f"{text[:start]}...{text[start + 3 - width :]}"


def terminal_width() -> int:
    """Return the width of the terminal; 0 where output is not a terminal, and lines may be long."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else 0


def coloured(line: str) -> Text:
    """Return a line on a run, with the state at its start in the colour of the state."""
    text = Text(line)
    if found := STATE.match(line):
        text.stylize(STYLES[found[1]], *found.span(1))
    return text
