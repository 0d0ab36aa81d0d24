"""One `render` for everything that is listed: frames of texts and their notes, for a terminal and in each format.

A listing is a function that returns a `Listing`. rich lays out the terminal, where a table that is too wide is
continued below; pandas' Styler writes LaTeX and HTML.
"""

import html
import io
import os
import re
import shutil
import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from rich.align import Align
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.table import Table as RichTable
from rich.text import Text

from tfstudy.errors import UserError, one_of, printable
from tfstudy.report.markup import (
    FORMATS,
    MINUS,
    csv_text,
    escape_latex,
    json_text,
    markdown_list,
    markdown_table,
    without_links,
)
from tfstudy.runs.status import DIVERGED, FAILED, FINISHED, INTERRUPTED, PENDING, RUNNING

if TYPE_CHECKING:
    import pandas as pd

GAP = 2  # spaces between columns
NARROWEST = 5  # characters of a column on a terminal
UNLIMITED = 100_000  # characters of a line where output is not a terminal
NUMBER = re.compile(rf"[{MINUS}+<>=-]*\d[\d.,]*(e[+-]?\d+)?( %)?( \[.*\])?|none|nan|\.|")  # as numbers are written
STYLES = {FINISHED: "green", DIVERGED: "yellow", FAILED: "red", INTERRUPTED: "yellow", RUNNING: "cyan", PENDING: "dim"}
NEEDS = "% needs \\usepackage{booktabs,adjustbox}"
LETTERS = re.compile(r"[^\x00-\u017f\u2010-\u2026]")  # letters that pdflatex does not print without packages


class Written(str):
    """A text that is in the markup of its format already."""


class Cells(NamedTuple):
    """A table as texts, and how it may be laid out."""

    frame: Mapping[str, Sequence[str]]  # the texts of each column, by key
    heads: Mapping[str, str] = {}  # as printed, by key (the key)
    title: str = ""
    left: Collection[str] | None = None  # columns that are aligned to the left (those that are not numbers)
    bold: Mapping[str, Sequence[bool]] = {}  # columns, and in which rows each is bold
    styles: Mapping[str, str] = {}  # on a terminal: of cells with these texts, such as the states of runs
    breaks: frozenset[int] = frozenset()  # rows before which LaTeX leaves a space
    folded: frozenset[str] = frozenset()  # columns whose cells a terminal may fold between words
    names: int = 1  # columns that name a row, at the left: repeated where a table is continued below
    headless: bool = False  # without heads on a terminal

    def head(self, key: str) -> str:
        """Return the head of a column as printed."""
        return self.heads.get(key, key)

    @property
    def width(self) -> int:
        """The characters that it takes on a terminal, with heads folded between words."""
        return joined_width(_spans(self, key)[1] for key in self.frame)

    def is_left(self, key: str) -> bool:
        """Whether a column is aligned to the left."""
        if self.left is None:
            return not all(NUMBER.fullmatch(text) for text in self.frame[key])
        return key in self.left

    def texts(self, bold: str, escape: Callable[[str], str] = str) -> dict[str, list[str]]:
        """Return the texts of each column by its key, each escaped, with the bold ones in this markup."""
        out = {}
        for key in self.frame:
            own = [text if isinstance(text, Written) else escape(text) for text in self.frame[key]]
            strong = self.bold.get(key, [False] * len(own))
            out[key] = [
                bold.format(text) if text and marked else text for text, marked in zip(own, strong, strict=True)
            ]
        return out


Part = Cells | Text | str  # a table, or a line


class Listing(NamedTuple):
    """What a command shows: tables and lines, notes below them, and the same as plain values for JSON."""

    parts: Sequence[Part]
    notes: Sequence[str] = ()
    values: Callable[[], Any] = dict


def render(
    parts: Sequence[Part],
    notes: Sequence[str],
    format: str,
    caption: str = "",
    label: str = "",
    below: str = "",
    values: Callable[[], Any] = dict,
    width: int | None = None,
) -> str:
    """Return tables, lines and notes in one of `FORMATS`; `text` is for a terminal, at most `width` characters wide.

    LaTeX has the notes as comments; with a caption or a label it is a `table`, with the text `below` it. JSON is
    what `values` returns. `UserError` for an unknown format, and for a label that LaTeX can't read.
    """
    one_of("format", format, FORMATS)
    if format == "json":
        return json_text(values())
    if format == "csv":
        tables = (_frame(part, part.frame) for part in parts if isinstance(part, Cells))
        return "\n".join(csv_text(frame.map(lambda text: " ".join(text.split()))) for frame in tables)
    if format == "md":
        blocks = [_markdown(part) if isinstance(part, Cells) else without_links(str(part)) for part in parts]
        return "\n\n".join(filter(None, [*blocks, markdown_list(map(without_links, notes))])) + "\n"
    if format == "html":
        blocks = [_html(part) if isinstance(part, Cells) else f"<p>{html.escape(str(part))}</p>\n" for part in parts]
        items = "".join(f"<li>{html.escape(note)}</li>" for note in notes)
        return f"{''.join(blocks)}<ul>{items}</ul>\n"
    if format == "tex":
        return _latex(parts, notes, caption, label, below)
    out = io.StringIO()
    options: dict[str, Any] = {"force_terminal": False, "force_jupyter": False, "color_system": None}
    show(parts, notes, Terminal(file=out, width=width or text_width(), **options))
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines()) + "\n"


def _markdown(cells: Cells) -> str:
    texts = cells.texts("**{}**", without_links)
    table = markdown_table([cells.head(key) for key in texts], zip(*texts.values(), strict=True))
    return f"{without_links(cells.title)}\n\n{table}" if cells.title else table


def _html(cells: Cells) -> str:
    title = f"<p>{html.escape(cells.title)}</p>\n" if cells.title else ""
    frame = _frame(cells, cells.texts("<strong>{}</strong>", html.escape), html.escape)
    return title + frame.style.hide(axis="index").to_html(exclude_styles=True)


def _frame(cells: Cells, texts: Mapping[str, Sequence[str]], head: Callable[[str], str] = str) -> "pd.DataFrame":
    """Return a frame of these texts, with its heads as printed."""
    import pandas as pd

    return pd.DataFrame(texts).set_axis([head(cells.head(key)) for key in texts], axis=1)


def _latex(parts: Sequence[Part], notes: Sequence[str], caption: str, label: str, below: str) -> str:
    """Return a `tabular` for each table, no wider than the page; with a caption or a label all in one `table`."""
    if not re.fullmatch(r"[A-Za-z0-9:._/+-]*", label):
        raise UserError(f"--label must consist of letters, digits and :._/+-, such as tab:scan, but is '{label}'")
    if label and not caption:
        raise UserError("--label needs --caption: without one LaTeX refers to the section")
    tables = [part for part in parts if isinstance(part, Cells)]
    single = [cells.title for cells in tables if len(parts) == 1 and cells.title]  # below the table, or a comment
    written = []
    for cells in tables:
        texts = cells.texts(r"\textbf{{{}}}", escape_latex)
        first = next(iter(texts))
        spaced = enumerate(map(protected, texts[first]))
        texts[first] = [("\\addlinespace\n" if number in cells.breaks else "") + text for number, text in spaced]
        sides = "".join("l" if cells.is_left(key) else "r" for key in texts)
        frame = _frame(cells, texts, lambda head: protected(escape_latex(head)))
        table = frame.style.hide(axis="index").to_latex(column_format=sides, hrules=True)
        table = f"\\begin{{adjustbox}}{{max width=\\textwidth}}\n{table}\\end{{adjustbox}}\n"
        title = rf"{escape_latex(cells.title)}\par\smallskip" + "\n" if len(parts) > 1 and cells.title else ""
        written.append(title + table)
    text = "\\par\\medskip\n".join(written)
    if caption or label:
        head = rf"\caption{{{escape_latex(caption)}}}" * bool(caption) + rf"\label{{{label}}}" * bool(label)
        foot = rf"\par\smallskip{{\footnotesize {escape_latex('. '.join([*single, below]))}.\par}}"
        text = "\n".join([r"\begin{table}", r"\centering", head, text + foot, r"\end{table}", ""])
    lines = [*(str(part) for part in parts if not isinstance(part, Cells)), *single, *notes]
    comments = [NEEDS, *_engine(text), *(f"% {' '.join(line.split())}" for line in lines)]
    return "\n".join([*comments, text])


def _engine(text: str) -> list[str]:
    """Return a comment if pdflatex can't print all letters, such as those of Greek and Chinese."""
    letters = sorted(set(LETTERS.findall(text)))
    shown = " ".join(letters[:10]) + (" ..." if len(letters) > 10 else "")
    return [f"% needs XeLaTeX or LuaLaTeX, and a font that has {shown}"] if letters else []


def protected(cell: str) -> str:
    """Return the first cell of a row so that LaTeX does not read it as an option of the row before."""
    return f"{{}}{cell}" if cell.startswith(("[", "*")) else cell


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
    known = sys.stdout.isatty() or os.environ.get("COLUMNS", "").isdigit()
    return shutil.get_terminal_size().columns if known else UNLIMITED


def show(parts: Sequence[Part], notes: Sequence[str], console: Console) -> None:
    """Print tables, lines and notes."""
    for number, part in enumerate(parts):
        if not isinstance(part, Cells):
            console.print(part, soft_wrap=" " not in str(part))  # a path, which can be copied if it is not wrapped
            continue
        if number and isinstance(parts[number - 1], Cells):
            console.print()
        if part.title:
            console.print(Text(part.title, "bold"))
        for piece, cells in enumerate(pieces(part, console.width)):
            if piece:
                console.print()
            console.print(_rich_table(cells, console.width))
    if notes and parts:
        console.print()
    for text in notes:
        note = RichTable.grid(padding=(0, 1, 0, 0))  # wrapped and indented after its bullet
        note.add_row(Text("-"), Text(text, style="dim"))
        console.print(note)


def pieces(cells: Cells, width: int) -> Iterable[Cells]:
    """Yield a table as tables of at most a width: its first columns, then the next ones with the names of the rows.

    A list without heads stays whole, and its cells are folded.
    """
    if cells.headless:
        yield cells
        return
    names, others = list(cells.frame)[: cells.names], list(cells.frame)[cells.names :]
    while names:
        taken = others[:1]
        while len(taken) < len(others):
            keys = [*names, *others[: len(taken) + 1]]
            if joined_width(_spans(cells, key)[2] for key in keys) > width:
                break
            taken = others[: len(taken) + 1]
        yield cells._replace(frame={key: cells.frame[key] for key in (*names, *taken)})
        others = others[len(taken) :]
        if not others:
            return


def _rich_table(cells: Cells, width: int) -> RichTable:
    """Return a table of at most a width: heads are folded first, then the cells of its `folded` columns, then all."""
    spans = {key: _spans(cells, key) for key in cells.frame}
    whole = joined_width(own[0] for own in spans.values()) <= width
    widths = {key: own[0 if whole else 1] for key, own in spans.items()}
    while joined_width(widths.values()) > width:
        wide = [key for key in widths if widths[key] > spans[key][2]] or [k for k in widths if widths[k] > NARROWEST]
        if not wide:
            break
        widths[max(wide, key=lambda key: widths[key])] -= 1
    table = plain_table(show_header=not cells.headless)
    for key, own in widths.items():
        side: Any = "left" if cells.is_left(key) else "right"
        head = Align(Text(cells.head(key), "dim"), side, vertical="bottom")
        table.add_column(head, width=own, justify=side, overflow="fold")
    bold = [cells.bold.get(key, ()) for key in widths]
    for number, row in enumerate(zip(*(cells.frame[key] for key in widths), strict=True)):
        styles = ["bold" if strong and strong[number] else "" for strong in bold]
        table.add_row(*(Text(text, cells.styles.get(text, style)) for text, style in zip(row, styles, strict=True)))
    return table


def _spans(cells: Cells, key: str) -> tuple[int, int, int]:
    """Return the width of a column with whole heads, with heads folded between words, and with folded cells too."""
    lines = [line for text in cells.frame[key] for line in text.split("\n")]
    head = "" if cells.headless else cells.head(key)
    natural, words = _longest(lines), _longest(head.split())
    least = _longest(word for line in lines for word in line.split()) if key in cells.folded else natural
    return max(natural, _longest(head.split("\n"))), max(natural, words), max(least, words)


def _longest(texts: Iterable[str]) -> int:
    return max(map(cell_len, texts), default=0)


def joined_width(widths: Iterable[int]) -> int:
    """Return the width of columns side by side."""
    own = list(widths)
    return sum(own) + GAP * (len(own) - 1)


def plain_table(**options: Any) -> RichTable:
    """Return an empty table without lines."""
    return RichTable(
        box=None, pad_edge=False, padding=(0, GAP, 0, 0), collapse_padding=True, header_style="", **options
    )
