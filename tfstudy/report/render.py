"""One `render` for everything that is listed: frames of texts and their notes, for a terminal and in each format.

A listing is a function that returns a `Listing`. rich lays out the terminal, where a table that is too wide is
continued below; pandas' Styler writes LaTeX and HTML.
"""

import html
import io
import os
import re
import shutil
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from rich.align import Align
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.table import Table as RichTable
from rich.text import Text

from tfstudy.errors import one_of, printable
from tfstudy.report import markup
from tfstudy.runs.find import DIVERGED, FAILED, FINISHED, INTERRUPTED, PENDING, RUNNING

if TYPE_CHECKING:
    import pandas as pd

GAP = 2  # spaces between columns
UNLIMITED = 100_000  # characters of a line where output is not a terminal
NUMBER = re.compile(rf"[{markup.MINUS}+<>=-]*\d[\d.,]*(e[+-]?\d+)?( %)?( \[.*\])?|none|nan|\.|")  # as it is written
STYLES = {FINISHED: "green", DIVERGED: "yellow", FAILED: "red", INTERRUPTED: "yellow", RUNNING: "cyan", PENDING: "dim"}
NEEDS = "% needs \\usepackage{booktabs,adjustbox}; for Greek, Chinese and others XeLaTeX or LuaLaTeX, and a font"


class Written(str):
    """A text that is in the markup of its format already."""


class Cells(NamedTuple):
    """A table as texts, and how it may be laid out."""

    frame: Mapping[str, Sequence[str]]  # the texts of each column, by its head
    title: str = ""
    left: Collection[str] | None = None  # columns that are aligned to the left (those that are not numbers)
    bold: Mapping[str, Sequence[bool]] = {}  # columns, and in which rows each is bold
    styles: Mapping[str, str] = {}  # on a terminal: of cells with these texts, such as the states of runs
    folded: Collection[str] = ()  # columns whose cells a terminal may fold between words
    names: int = 1  # columns that name a row, at the left: repeated where a table is continued below
    headless: bool = False  # without heads on a terminal

    @classmethod
    def of(cls, rows: Sequence[Mapping[str, str]], **more: Any) -> "Cells":
        """Return a table with these rows, each the texts by the heads of the columns."""
        return cls({head: [row[head] for row in rows] for head in (rows or [{}])[0]}, **more)

    @classmethod
    def listed(cls, frame: Mapping[str, Sequence[str]], **more: Any) -> "Cells":
        """Return a list: texts without heads on a terminal, aligned to the left, without empty columns."""
        shown = {key: texts for key, texts in frame.items() if any(texts)}
        return cls(shown, left=shown, headless=True, **more)

    def is_left(self, key: str) -> bool:
        """Whether a column is aligned to the left."""
        if self.left is None:
            return not all(NUMBER.fullmatch(text) for text in self.frame[key])
        return key in self.left

    def texts(self, bold: str, escape: Callable[[str], str] = str) -> dict[str, list[str]]:
        """Return the texts of each column by its key, each escaped, with the bold ones in this markup."""
        out = {}
        for key, texts in self.frame.items():
            own = (text if isinstance(text, Written) else escape(text) for text in texts)
            marks = self.bold.get(key, [False] * len(texts))
            out[key] = [bold.format(text) if text and mark else text for text, mark in zip(own, marks, strict=True)]
        return out


Part = Cells | Text | str  # a table, or a line


class Listing(NamedTuple):
    """What a command shows: tables and lines, notes below them, and plain values for JSON."""

    parts: Sequence[Part]
    notes: Sequence[str] = ()
    values: Any = None


def render(
    parts: Sequence[Part], notes: Sequence[str], format: str, values: Any = None, width: int | None = None
) -> str:
    """Return tables, lines and notes in one of `FORMATS`; `text` is for a terminal, at most `width` characters wide.

    LaTeX has lines and notes as comments; JSON has `values`. `UserError` for an unknown format.
    """
    one_of("format", format, markup.FORMATS)
    if format == "json":
        return markup.json_text(values)
    if format == "csv":
        tables = (_frame(part.frame) for part in parts if isinstance(part, Cells))
        return "\n".join(markup.csv_text(frame.map(lambda text: " ".join(text.split()))) for frame in tables)
    if format == "md":
        blocks = [_markdown(part) if isinstance(part, Cells) else markup.markdown_text(str(part)) for part in parts]
        return "\n\n".join(filter(None, [*blocks, markup.markdown_list(notes)])) + "\n"
    if format == "html":
        blocks = [_html(part) if isinstance(part, Cells) else f"<p>{html.escape(str(part))}</p>\n" for part in parts]
        items = "".join(f"<li>{html.escape(note)}</li>" for note in notes)
        return f"{''.join(blocks)}<ul>{items}</ul>\n"
    if format == "tex":
        return _latex(parts, notes)
    out = io.StringIO()
    options: dict[str, Any] = {"force_terminal": False, "force_jupyter": False, "color_system": None}
    show(parts, notes, Terminal(file=out, width=width or text_width(), **options))
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines()) + "\n"


def _markdown(cells: Cells) -> str:
    texts = cells.texts("**{}**")
    table = markup.markdown_table(list(texts), zip(*texts.values(), strict=True))
    return f"{markup.markdown_text(cells.title)}\n\n{table}" if cells.title else table


def _html(cells: Cells) -> str:
    title = f"<p>{html.escape(cells.title)}</p>\n" if cells.title else ""
    frame = _frame(cells.texts("<strong>{}</strong>", html.escape), html.escape)
    return title + frame.style.hide(axis="index").to_html(exclude_styles=True)


def _frame(texts: Mapping[str, Sequence[str]], head: Callable[[str], str] = str) -> "pd.DataFrame":
    import pandas as pd

    return pd.DataFrame(texts).set_axis([head(key) for key in texts], axis=1)


def _latex(parts: Sequence[Part], notes: Sequence[str]) -> str:
    """Return a `tabular` for each table, no wider than the page."""
    tables = []
    for cells in (part for part in parts if isinstance(part, Cells)):
        texts = cells.texts(r"\textbf{{{}}}", _latex_cell)
        sides = "".join("l" if cells.is_left(key) else "r" for key in texts)
        frame = _frame(texts, _latex_cell)
        table = frame.style.hide(axis="index").to_latex(column_format=sides, hrules=True)
        title = rf"{markup.escape_latex(cells.title)}\par\smallskip" + "\n" if cells.title else ""
        tables.append(f"{title}\\begin{{adjustbox}}{{max width=\\textwidth}}\n{table}\\end{{adjustbox}}\n")
    text = "\\par\\medskip\n".join(tables)
    lines = [*(str(part) for part in parts if not isinstance(part, Cells)), *notes]
    return "\n".join([NEEDS, *(f"% {' '.join(line.split())}" for line in lines), text])


def _latex_cell(text: str) -> str:
    """Return a text so that LaTeX does not read it as an option of the row before."""
    return "{}" * text.startswith(("[", "*")) + markup.escape_latex(text)


# For a terminal


class Terminal(Console):
    """A Rich console that prints text with `printable`, within tables too, and without markup.

    Text is plain, without colour and bold, if `NO_COLOR` is set, on a dumb terminal, and where there is no terminal.
    """

    def __init__(self, **options: Any) -> None:
        if os.environ.get("NO_COLOR"):
            options["color_system"] = None
        super().__init__(emoji=False, markup=False, highlight=False, **options)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Yield the segments of an object."""
        for segment in super().render(renderable, options):
            yield segment._replace(text=printable(segment.text))


def text_width() -> int:
    """Return the width of the terminal, or `COLUMNS`; lines may be long where neither is known, as in a pipe."""
    return shutil.get_terminal_size((UNLIMITED, 0)).columns


def show(parts: Sequence[Part], notes: Sequence[str], console: Console) -> None:
    """Print tables, lines and notes; a table that is too wide is continued below, with the names of its rows."""
    for number, part in enumerate(parts):
        if not isinstance(part, Cells):
            console.print(part, soft_wrap=" " not in str(part))  # a path, which can be copied if it is not wrapped
            continue
        if number and isinstance(parts[number - 1], Cells):
            console.print()
        if part.title:
            console.print(Text(part.title, "bold"))
        for piece, table in enumerate(_rich_tables(part, console.width)):
            if piece:
                console.print()
            console.print(table)
    if notes and parts:
        console.print()
    for text in notes:
        note = RichTable.grid(padding=(0, 1, 0, 0))  # wrapped and indented after its bullet
        note.add_row(Text("-"), Text(text, style="dim"))
        console.print(note)


def _rich_tables(cells: Cells, width: int) -> Iterator[RichTable]:
    """Yield tables of at most a width: the first columns, then the next ones; a list without heads stays whole."""
    width += GAP  # which follows each column
    flat = {key: [text.replace("\n", " ") for text in own] for key, own in cells.frame.items()}
    if not cells.headless and sum(_spans(cells._replace(frame=flat), key)[1] for key in flat) <= width:
        cells = cells._replace(frame=flat)  # what may stand in two lines needs only one
    spans = {key: _spans(cells, key) for key in cells.frame}
    names = list(cells.frame)[: None if cells.headless else cells.names]
    others = list(cells.frame)[len(names) :]
    while names:
        count = 1
        while count < len(others) and sum(spans[key][1] for key in (*names, *others[: count + 1])) <= width:
            count += 1
        shown, others = [*names, *others[:count]], others[count:]
        folded_heads = sum(spans[key][0] for key in shown) > width
        widths = {key: spans[key][folded_heads and key not in cells.folded] for key in shown}
        while sum(widths.values()) > width and (wide := [key for key in shown if widths[key] > spans[key][1]]):
            widths[max(wide, key=lambda key: widths[key])] -= 1
        whole_words = sum(widths.values()) <= width
        yield _rich_table(
            cells, {key: own - GAP if whole_words or key not in cells.folded else None for key, own in widths.items()}
        )
        names = names if others else []


def _rich_table(cells: Cells, widths: Mapping[str, int | None]) -> RichTable:
    """Return a table with columns of these widths; rich folds the others within words."""
    table = RichTable(
        box=None, pad_edge=False, padding=(0, GAP, 0, 0), collapse_padding=True, show_header=not cells.headless
    )
    for key, width in widths.items():
        side: Any = "left" if cells.is_left(key) else "right"
        head = Align(Text(key, "dim"), side, vertical="bottom")
        table.add_column(head, width=width, justify=side, overflow="fold", header_style="")
    for number, row in enumerate(zip(*(cells.frame[key] for key in widths), strict=True)):
        styles = ["bold" if key in cells.bold and cells.bold[key][number] else "" for key in widths]
        table.add_row(*(Text(text, cells.styles.get(text, style)) for text, style in zip(row, styles, strict=True)))
    return table


def _spans(cells: Cells, key: str) -> tuple[int, int]:
    """Return the width of a column and its gap with its head in one line, and with head, and `folded` cells, folded."""
    texts, head = "\n".join(cells.frame[key]), "" if cells.headless else key
    lines = texts.split("\n")
    least = [*(texts.split() if key in cells.folded else lines), *head.split()]
    return max(map(cell_len, (*lines, *head.split("\n")))) + GAP, max(map(cell_len, least), default=0) + GAP
