"""One `render` for every table: a frame of texts and its notes as Markdown, LaTeX, HTML, or for a terminal.

pandas' Styler writes LaTeX and HTML, rich lays out the terminal. There, columns are left out by priority until the rest
fits, and the table says which.
"""

import html
import re
from collections.abc import Callable, Mapping, Sequence
from io import StringIO
from typing import TYPE_CHECKING, NamedTuple

from rich.cells import cell_len
from rich.console import Console, Group, JustifyMethod
from rich.table import Table as RichTable
from rich.text import Text

from tfstudy.errors import UserError
from tfstudy.report.markup import escape_latex, markdown_list, markdown_table, without_links
from tfstudy.report.terminal import Terminal, joined_width, plain_table

if TYPE_CHECKING:
    import pandas as pd
    from pandas.io.formats.style import Styler

NARROWEST = 5  # characters of a column on a terminal
NEEDS = "% needs \\usepackage{booktabs}"


class Written(str):
    """A text that is in the markup of the table's format already."""


class Cells(NamedTuple):
    """A table as texts, and how it may be laid out."""

    frame: "pd.DataFrame"  # a column of texts for each key
    heads: Mapping[str, str]  # as printed, by key
    title: str = ""
    left: frozenset[str] = frozenset()  # columns that are aligned to the left
    bold: Mapping[str, Sequence[bool]] = {}  # columns, and in which rows each is bold
    breaks: frozenset[int] = frozenset()  # rows before which LaTeX leaves a space
    folded: frozenset[str] = frozenset()  # columns whose cells a terminal may fold
    left_out: Sequence[str] = ()  # of what is too wide for a terminal, in this order
    left_out_last: Sequence[Sequence[str]] = ()  # those that go together, if it is too wide even when folded

    def texts(self, bold: str, escape: Callable[[str], str] = str) -> "pd.DataFrame":
        """Return the texts, each escaped, with the bold ones in this markup, under the heads as printed."""
        out = self.frame.copy()
        for key in out.columns:
            texts = [text if isinstance(text, Written) else escape(text) for text in out[key]]
            strong = self.bold.get(key, [False] * len(texts))
            out[key] = [bold.format(text) if text and own else text for text, own in zip(texts, strong, strict=True)]
        return out.rename(columns=dict(self.heads))


def render(
    tables: Sequence[Cells], notes: Sequence[str], format: str, caption: str = "", label: str = "", below: str = ""
) -> str:
    """Return tables, each below its title, and their notes in a format: `md`, `tex`, `html`, or `text` for a terminal.

    LaTeX has the notes as comments; with a caption or a label it is a `table`, with the text `below` it. `UserError`
    for a label that LaTeX can't read.
    """
    if format == "md":
        blocks = []
        for cells in tables:
            texts = cells.texts("**{}**", without_links)
            heads, rows = [without_links(str(head)) for head in texts], texts.itertuples(index=False, name=None)
            blocks += [without_links(cells.title), markdown_table(heads, rows)]
        return "\n\n".join(filter(None, [*blocks, markdown_list(map(without_links, notes))])) + "\n"
    if format == "html":
        items = "".join(f"<li>{html.escape(note)}</li>" for note in notes)
        titles = [f"<p>{html.escape(cells.title)}</p>\n" * bool(cells.title) for cells in tables]
        written = [_styler(cells, "<strong>{}</strong>", html.escape).to_html(exclude_styles=True) for cells in tables]
        return "".join(title + text for title, text in zip(titles, written, strict=True)) + f"<ul>{items}</ul>\n"
    if format == "tex":
        return _latex(tables, notes, caption, label, below)
    out = StringIO()
    show(tables, notes, Terminal(file=out, force_terminal=False, force_jupyter=False, color_system=None))
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines()) + "\n"


def _styler(cells: Cells, bold: str, escape: Callable[[str], str]) -> "Styler":
    texts = cells.texts(bold, escape)
    return texts.rename(columns=escape).style.hide(axis="index")


def _latex(tables: Sequence[Cells], notes: Sequence[str], caption: str, label: str, below: str) -> str:
    """Return a `tabular` for each table; with a caption or a label all of them in one `table`."""
    if not re.fullmatch(r"[A-Za-z0-9:._/+-]*", label):
        raise UserError(f"--label must consist of letters, digits and :._/+-, such as tab:scan, but is '{label}'")
    comments = [NEEDS, *(f"% {' '.join(note.split())}" for note in notes)]
    written = []
    for cells in tables:
        texts = cells.texts(r"\textbf{{{}}}", escape_latex)
        first = [
            ("\\addlinespace\n" if i in cells.breaks else "") + protected(t) for i, t in enumerate(texts.iloc[:, 0])
        ]
        texts.isetitem(0, first)
        aligned = "".join("l" if key in cells.left else "r" for key in cells.frame)
        styler = texts.rename(columns=lambda head: protected(escape_latex(head))).style.hide(axis="index")
        title = rf"{escape_latex(cells.title)}\par\smallskip" + "\n" if len(tables) > 1 and cells.title else ""
        written.append(title + styler.to_latex(column_format=aligned, hrules=True))
    text = "\\par\\medskip\n".join(written)
    if caption or label:
        head = rf"\caption{{{escape_latex(caption)}}}" * bool(caption) + rf"\label{{{label}}}" * bool(label)
        foot = rf"\par\smallskip{{\footnotesize {escape_latex(below)}.\par}}"
        text = "\n".join([r"\begin{table}", r"\centering", head, text + foot, r"\end{table}", ""])
    return "\n".join([*comments, text])


def protected(cell: str) -> str:
    """Return the first cell of a row so that LaTeX does not read it as an option of the row before."""
    return f"{{}}{cell}" if cell.startswith(("[", "*")) else cell


# For a terminal


def show(tables: Sequence[Cells], notes: Sequence[str], console: Console, fixed: bool = False) -> None:
    """Print tables as wide as the console and their notes; what does not fit is left out unless it is `fixed`."""
    for cells in tables:
        if cells.title and len(tables) > 1:
            console.print(Text(cells.title, style="bold"))
        notes = [*_show(cells, console, fixed), *notes]
    for text in notes:
        note = RichTable.grid(padding=(0, 1, 0, 0))  # wrapped and indented after its bullet
        note.add_row(Text("-"), Text(text, style="dim"))
        console.print(note)


def fits(tables: Sequence[Cells], width: int) -> bool:
    """Whether so many characters show tables as they are."""
    return all(joined_width([_widths(cells, str(key))[0] for key in cells.frame]) <= width for cells in tables)


def _show(cells: Cells, console: Console, fixed: bool) -> list[str]:
    """Print a table, and return a note on the columns that it lacks."""
    kept = {str(key): _widths(cells, str(key)) for key in cells.frame}
    left_out = [((key,), 0) for key in cells.left_out] + [(keys, 1) for keys in cells.left_out_last]
    for keys, folded in left_out if not fixed else ():
        if joined_width([widths[folded] for widths in kept.values()]) <= console.width:
            break
        for key in keys:
            kept.pop(key, None)
    console.print(_rich(cells, kept, console.width))
    console.print()
    names = []
    for key in (str(key) for key in cells.frame if key not in kept):
        same = set(cells.frame[key])
        names.append(f"{key} (all {same.pop()})" if len(same) == 1 and key == "preset" else key)
    more = "--format csv has all columns, --columns arch,result,... shows those that you name"
    return [f"left out to fit {console.width} characters: {', '.join(names)}; {more}"] if names else []


def _widths(cells: Cells, key: str) -> tuple[int, int]:
    """Return the width at which no cell of a column is folded, and the least; heads are folded between words."""
    texts = [line for text in cells.frame[key] for line in text.split("\n")]
    words = max(
        map(cell_len, [*cells.heads[key].split(), *(word for text in texts for word in text.split())]), default=0
    )
    natural = max(words, *map(cell_len, texts), 0)
    return natural, words if key in cells.folded else natural


def _rich(cells: Cells, kept: Mapping[str, tuple[int, int]], width: int) -> Group:
    """Return the table of these columns, the widest ones folded until it fits."""
    widths = {key: natural for key, (natural, _) in kept.items()}
    while joined_width(list(widths.values())) > width:
        wide = [key for key, own in widths.items() if own > kept[key][1]] or [
            k for k in widths if widths[k] > NARROWEST
        ]
        if not wide:
            break
        widths[max(wide, key=lambda key: widths[key])] -= 1
    head, body, none = plain_table(), plain_table(), [False] * len(cells.frame)
    for key, own in widths.items():
        justify: JustifyMethod = "left" if key in cells.left else "right"
        head.add_column(width=own, justify=justify, overflow="fold", vertical="bottom")
        body.add_column(width=own, justify=justify, overflow="fold")
    head.add_row(*(Text(cells.heads[key], "dim") for key in widths))
    for number, row in enumerate(zip(*(cells.frame[key] for key in widths), strict=True)):
        styles = ["bold" if cells.bold.get(key, none)[number] else "" for key in widths]
        body.add_row(*(Text(text, style) for text, style in zip(row, styles, strict=True)))
    head.show_header = body.show_header = False
    return Group(head, body)
