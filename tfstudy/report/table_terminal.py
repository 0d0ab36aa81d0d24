"""A table that fits the terminal: the result is its last column, and what was left out and the notes stand below it.

If the table is too wide, the columns of `LEFT_OUT` are left out, the first ones first. If that is not enough, settings,
published figures and the results of seeds are folded, then the columns of `LEFT_OUT_LAST` are left out: an interval
that excludes 0 says the same as p. Columns that the user asked for are folded but never left out.
"""

from collections.abc import Sequence
from io import StringIO
from itertools import groupby
from typing import NamedTuple

from rich.cells import cell_len
from rich.console import Console
from rich.padding import Padding
from rich.table import Table as RichTable
from rich.text import Text

from tfstudy.report.quotations import SIGN_NOTE
from tfstudy.report.table_columns import Column, is_bold, quoted_figures, shown_columns
from tfstudy.report.table_lines import Line, Table
from tfstudy.report.terminal import Terminal, joined_width, plain_table

LEFT_OUT = (
    "parameters", "L50", "published_over_lengths", "over_lengths", "chrf", "published_oracle_length", "oracle_length",
    "L90", "preset",
)  # fmt: skip
LEFT_OUT_LAST = ("p", "group")
LAST = ("difference", "p", "group", "seeds", "published", "metric", "result")  # columns, in this order
FOLDED = ("preset", "seeds", "published", "published_oracle_length", "published_over_lengths")
PADDED = ("result", "difference")  # a number and its interval, each aligned
INDENT = 1  # spaces before the lines under a heading
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
    blocks = _blocks(table)
    indent = INDENT if blocks else 0
    columns = _printed_columns(table, hidden=("task", "split") if blocks else ())
    shown = columns if table.columns else _fitting(columns, console.width - indent)
    widths = _widths(shown, console.width - indent)
    console.print(_rich_table(table, shown, widths, [], indent))
    for title, lines in blocks or [("", range(len(table.lines)))]:
        if title:
            console.print(Text(title, style="bold"))
        console.print(_rich_table(table, shown, widths, lines, indent))
    console.print()
    for text in (*_footer(table, columns, shown, console.width), *table.notes):
        _print_note(text, console)


def _blocks(table: Table) -> list[tuple[str, Sequence[int]]]:
    """Return the numbers of the lines on each test set, with its name; none if most would have a line or two."""

    def title(number: int) -> str:
        condition = table.lines[number].condition
        several_tasks = len({line.condition.task for line in table.lines}) > 1
        return f"{condition.task} {condition.split_label}" if several_tasks else condition.split_label

    blocks: list[tuple[str, Sequence[int]]] = [
        (name, list(numbers)) for name, numbers in groupby(range(len(table.lines)), title)
    ]
    named = {"task", "split"} & {*table.columns}
    return blocks if not named and 2 * len(blocks) <= max(2, len(table.lines)) else []


def _printed_columns(table: Table, hidden: Sequence[str]) -> list[PrintedColumn]:
    columns = [column for column in shown_columns(table) if column.key not in hidden]
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


def _rich_table(
    table: Table, columns: Sequence[PrintedColumn], widths: Sequence[int], lines: Sequence[int], indent: int
) -> Padding:
    """Return these lines; without lines, the head of the table."""
    out = plain_table()
    out.show_header = False
    for one, width in zip(columns, widths, strict=True):
        left = one.column.left or one.key in PADDED
        out.add_column(
            width=width, justify="left" if left else "right", overflow="fold", vertical="bottom" if not lines else "top"
        )
    if not lines:
        out.add_row(*(Text(one.column.head, style="dim") for one in columns))
    for i in lines:
        cells = (Text(one.texts[i], style="bold" if is_bold(one.column, table.lines[i]) else "") for one in columns)
        out.add_row(*cells)
    return Padding(out, (0, 0, 0, indent), expand=False)


def _footer(table: Table, columns: Sequence[PrintedColumn], shown: Sequence[PrintedColumn], width: int) -> list[str]:
    out = [SIGN_NOTE] if any(not one.same_settings for one in quoted_figures(table)) else []
    if names := [_left_out_name(one) for one in columns if one not in shown]:
        out.append(
            f"left out to fit {width} characters: {', '.join(names)}; --format md shows all columns, --columns "
            "arch,result,... those that you name"
        )
    return out


def _left_out_name(one: PrintedColumn) -> str:
    return f"{one.key} (all {one.texts[0]})" if one.key == "preset" else one.key


def _print_note(note: str, console: Console) -> None:
    """Print a note, wrapped and indented after its bullet."""
    out = RichTable.grid(padding=(0, 1, 0, 0))
    out.add_row(Text("-"), Text(note, style="dim"))
    console.print(out)


def _longest_word(text: str) -> int:
    return max((cell_len(word) for word in text.split()), default=0)
