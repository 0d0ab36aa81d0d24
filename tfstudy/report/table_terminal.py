"""A table that fits the terminal: the result is its last column, and what was left out and the notes stand below it.

If the table is too wide, the columns of `LEFT_OUT` are left out, the first ones first. If that is not enough, settings,
published figures and the results of seeds are folded, then the columns of `LEFT_OUT_LAST` are left out: an interval
that excludes 0 says the same as p. Columns that the user asked for are folded but never left out.
"""

from collections.abc import Sequence
from io import StringIO
from typing import NamedTuple

from rich.cells import cell_len
from rich.console import Console, JustifyMethod
from rich.table import Table as RichTable
from rich.text import Text

from tfstudy.analysis.counterparts import SIGN_NOTE
from tfstudy.report.table_columns import Column, Line, Table, is_bold, quoted_figures, shown_columns
from tfstudy.report.terminal import Terminal, joined_width, plain_table

LEFT_OUT = (
    "parameters", "L50", "published_over_lengths", "over_lengths", "chrf", "published_oracle_length", "oracle_length",
    "L90", "preset",
)  # fmt: skip
LEFT_OUT_LAST = ("p", "group")
LAST = ("difference", "p", "group", "seeds", "published", "metric", "result")  # columns, in this order
FOLDED = ("preset", "seeds", "published", "published_oracle_length", "published_over_lengths")
PADDED = ("result", "difference")  # a number and its interval, each aligned
NARROWEST = 5  # characters of a column
SEED_WIDTH = 9  # characters of `0: 41.2,`, which is not broken


class PrintedColumn(NamedTuple):
    """A column with the text of each line."""

    column: Column
    texts: list[str]

    @property
    def key(self) -> str:
        return self.column.key

    @property
    def natural_width(self) -> int:
        """The width at which no cell is folded; heads are folded between words."""
        return max(
            _longest_word(self.column.head), *(cell_len(part) for text in self.texts for part in text.split("\n"))
        )

    @property
    def folded_width(self) -> int:
        """The least width that breaks no word."""
        least = SEED_WIDTH if self.key == "seeds" else 0
        folded = max(least, *(_longest_word(text) for text in (self.column.head, *self.texts)))
        return folded if self.key in FOLDED else self.natural_width


def terminal_text(table: Table) -> str:
    """Return the table as plain text of the terminal's width."""
    out = StringIO()
    print_table(table, Terminal(file=out, force_terminal=False, force_jupyter=False, color_system=None))
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines()) + "\n"


def print_table(table: Table, console: Console) -> None:
    """Print the table, which columns were left out of it, and the notes."""
    columns = _printed_columns(table)
    shown = columns if table.columns else _fitting(columns, console.width)
    head, body = plain_table(), plain_table()
    for one, width in zip(shown, _widths(shown, console.width), strict=True):
        justify: JustifyMethod = "left" if one.column.left or one.key in PADDED else "right"
        head.add_column(width=width, justify=justify, overflow="fold", vertical="bottom")
        body.add_column(width=width, justify=justify, overflow="fold")
    head.add_row(*(Text(one.column.head, style="dim") for one in shown))
    for i, line in enumerate(table.lines):
        body.add_row(*(Text(one.texts[i], style="bold" if is_bold(one.column, line) else "") for one in shown))
    for part in (head, body):
        part.show_header = False
        console.print(part)
    console.print()
    for text in (*_footer(table, columns, shown, console.width), *table.notes):
        note = RichTable.grid(padding=(0, 1, 0, 0))  # wrapped and indented after its bullet
        note.add_row(Text("-"), Text(text, style="dim"))
        console.print(note)


def _printed_columns(table: Table) -> list[PrintedColumn]:
    columns = shown_columns(table)
    if not table.columns:
        columns.sort(key=lambda column: LAST.index(column.key) if column.key in LAST else -1)
    return [PrintedColumn(column, _texts(column, table.lines)) for column in columns]


def _texts(column: Column, lines: Sequence[Line]) -> list[str]:
    if quoted := column.quoted:
        return ["\n".join(one.text for one in quoted(line)) for line in lines]
    texts = [column.text(line) for line in lines]
    if column.key not in PADDED:
        return texts
    longest = max(cell_len(text.partition(" ")[0]) for text in texts)
    return [" " * (longest - cell_len(text.partition(" ")[0])) + text if text else "" for text in texts]


def _fitting(columns: Sequence[PrintedColumn], width: int) -> list[PrintedColumn]:
    """Return the columns that fit, those that say least left out."""
    kept = list(columns)
    for keys, folded in ((LEFT_OUT, False), (LEFT_OUT_LAST, True)):
        for key in keys:
            if joined_width([one.folded_width if folded else one.natural_width for one in kept]) <= width:
                return kept
            kept = [one for one in kept if one.key != key or (key == "preset" and len(set(one.texts)) > 1)]
    return kept


def _widths(columns: Sequence[PrintedColumn], width: int) -> list[int]:
    """Return the widths of columns, the widest ones folded until they fit."""
    widths = [one.natural_width for one in columns]
    least = [one.folded_width for one in columns]
    while joined_width(widths) > width:
        numbers = [i for i, one in enumerate(widths) if one > least[i]] or [
            i for i, one in enumerate(widths) if one > NARROWEST
        ]
        if not numbers:
            break
        widths[max(numbers, key=lambda i: widths[i])] -= 1
    return widths


def _footer(table: Table, columns: Sequence[PrintedColumn], shown: Sequence[PrintedColumn], width: int) -> list[str]:
    out = [SIGN_NOTE] if any(not one.same_settings for one in quoted_figures(table)) else []
    names = [f"preset (all {one.texts[0]})" if one.key == "preset" else one.key for one in columns if one not in shown]
    if names:
        out.append(
            f"left out to fit {width} characters: {', '.join(names)}; --format md shows all columns, --columns "
            "arch,result,... those that you name"
        )
    return out


def _longest_word(text: str) -> int:
    return max((cell_len(word) for word in text.split()), default=0)
