"""Output on a terminal: rows and tables that fit it, and text that can't change it, with control characters as escapes.

Where there is no terminal, a row is one line of any length.
"""

import os
import shutil
import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from textwrap import wrap
from typing import Any

from rich.cells import cell_len, set_cell_size
from rich.console import Console, ConsoleOptions, JustifyMethod, RenderableType
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from tfstudy.errors import printable
from tfstudy.runs.status import DIVERGED, FAILED, FINISHED, INTERRUPTED, PENDING, RUNNING

GAP = 2  # spaces between columns
LEAST = 24  # characters of the last column of rows on a narrow terminal
STYLES = {FINISHED: "green", DIVERGED: "yellow", FAILED: "red", INTERRUPTED: "yellow", RUNNING: "cyan", PENDING: "dim"}


class Terminal(Console):
    """A Rich console that prints text with `printable`, within tables and live displays too, and without markup.

    Text is plain, without colour and bold, if `NO_COLOR` is set, on a dumb terminal, and where there is no terminal;
    there, lines have `piped_width` characters if it is given.
    """

    def __init__(self, piped_width: int | None = None, **options: Any) -> None:
        if os.environ.get("NO_COLOR"):
            options["color_system"] = None
        if not options.get("stderr"):
            options.setdefault("file", sys.stdout)  # by name, so that a live display finds it behind its own stream
        super().__init__(emoji=False, markup=False, highlight=False, **options)
        if piped_width and not self.is_terminal:
            self.width = piped_width

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Yield the segments of an object; those by which Rich itself controls the terminal stay as they are."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else segment._replace(text=printable(segment.text))


def plain_table(title: str = "") -> Table:
    """Return an empty table without lines, its title and head in bold."""
    return Table(
        title=Text(title, style="bold") if title else None,
        title_justify="left",
        title_style="",
        box=None,
        pad_edge=False,
        padding=(0, GAP, 0, 0),
        collapse_padding=True,
        header_style="dim",
    )


def fitted_table(
    columns: Mapping[str, Sequence[str]],
    width: int,
    title: str = "",
    left: Collection[str] = (),
    optional: Iterable[str] = (),
    bold: Collection[int] = (),
) -> tuple[Table, list[str]]:
    """Return a table of columns by their heads, and the optional ones that were left out, in this order, to fit.

    Heads are folded between words if the table is wider than `width`. `left` are aligned to the left, `bold` are rows.
    """
    shown = dict(columns)

    def widths(folded: bool = True) -> list[int]:
        """The widths that break no cell and no line of a head, or no word of it."""
        lines = ((head.split() if folded else head.split("\n"), cells) for head, cells in shown.items())
        return [max(map(cell_len, [*head, *cells])) for head, cells in lines]

    left_out = []
    for head in optional:
        if head in shown and joined_width(widths()) > width:
            left_out.append(head)
            del shown[head]
    table = plain_table(title)
    for head, own in zip(shown, widths(joined_width(widths(False)) > width), strict=True):
        side: JustifyMethod = "left" if head in left else "right"
        table.add_column(head, justify=side, width=own, overflow="fold", vertical="bottom")
    for number, cells in enumerate(zip(*shown.values(), strict=True)):
        table.add_row(*cells, style="bold" if number in bold else "")
    return table, left_out


def joined_width(widths: Collection[int]) -> int:
    """Return the width of columns side by side."""
    return sum(widths) + GAP * (len(widths) - 1)


def columns(
    rows: Iterable[Sequence[str]], width: int | None = None, cut: Sequence[int] = (), shortest: int = 20
) -> list[str]:
    """Return rows of as many cells as aligned lines; the last column is wrapped at `width` characters (0: not at all).

    The default is the width of the terminal. The columns `cut` are shortened in turn, down to `shortest` characters, as
    far as the last one needs room.
    """
    rows = list(rows)
    width = terminal_width() if width is None else width
    widths = [max(map(cell_len, column)) for column in zip(*rows, strict=True)]
    for number in cut if width and widths else ():
        room = width - sum(widths) - GAP * (len(widths) - 1)
        widths[number] = min(widths[number], max(shortest, widths[number] + room))
    lines: list[str] = []
    for *cells, last in rows:
        texts = [shortened(cell, size) for cell, size in zip(cells, widths, strict=False)]
        head = "".join(text + " " * (size - cell_len(text) + GAP) for text, size in zip(texts, widths, strict=False))
        indent = cell_len(head)
        parts = wrap(last, max(LEAST, width - indent), break_on_hyphens=False) if width else [last]
        lines += [f"{' ' * indent if i else head}{part}".rstrip() for i, part in enumerate(parts or [""])]
    return lines


def shortened(text: str, width: int) -> str:
    """Return text of at most a width, without its middle: names often differ in their ends."""
    if cell_len(text) <= width:
        return text
    start = set_cell_size(text, (width - 3) // 2)
    return f"{start}...{set_cell_size(text[::-1], width - 3 - cell_len(start))[::-1]}"


def terminal_width() -> int:
    """Return the width of the terminal; 0 where output is not a terminal, and lines may be long."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else 0


def coloured(line: str) -> Text:
    """Return a line on a run, with the state at its start in the colour of the state."""
    text = Text(line)
    if (state := line.partition(" ")[0]) in STYLES:
        text.stylize(STYLES[state], 0, len(state))
    return text


def show_lines(lines: Iterable[Text | str]) -> None:
    """Print lines as they are, those of type `Text` with their style."""
    console = Terminal(file=sys.stdout)
    for line in lines:
        console.print(line, soft_wrap=True)
