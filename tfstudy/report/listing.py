"""Names with descriptions, as lines that fit a terminal, or one line for each where there is no terminal."""

import shutil
import sys
from collections.abc import Iterable, Sequence
from textwrap import wrap

from rich.cells import cell_len
from rich.text import Text

from tfstudy.runs.progress import DIVERGED, FAILED, FINISHED, INTERRUPTED, PENDING, RUNNING

GAP = "  "
LEAST = 30  # characters of the last column on a narrow terminal
STYLES = {FINISHED: "green", DIVERGED: "yellow", FAILED: "red", INTERRUPTED: "yellow", RUNNING: "cyan", PENDING: "dim"}


def columns(rows: Iterable[Sequence[str]], width: int | None = None) -> list[str]:
    """Return rows as aligned lines; the last column is wrapped at `width` characters, by default the terminal's."""
    rows = [list(map(str, row)) for row in rows]
    if not rows:
        return []
    width = terminal_width() if width is None else width
    widths = [max(map(cell_len, column)) for column in zip(*rows, strict=True)][:-1]
    indent = sum(widths) + len(GAP) * len(widths)
    lines: list[str] = []
    for *cells, last in rows:
        head = "".join(f"{cell}{' ' * (size - cell_len(cell))}{GAP}" for cell, size in zip(cells, widths, strict=True))
        parts = wrap(last, max(LEAST, width - indent), break_on_hyphens=False) if width else [last]
        lines += [
            f"{head}{part}".rstrip() if i == 0 else f"{' ' * indent}{part}" for i, part in enumerate(parts or [""])
        ]
    return lines


def terminal_width() -> int:
    """Return the width of the terminal; 0 where output is not a terminal, and lines may be long."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else 0


def coloured(line: str, state: str) -> Text:
    """Return a line on a run with its state, at the line's start, in the colour of the state."""
    return (
        Text.assemble((state, STYLES.get(state, "")), line.removeprefix(state))
        if line.startswith(state)
        else Text(line)
    )
