"""A page of blocks as HTML, by one template, and as Markdown from the same blocks; and how a report is written.

The HTML is one file that needs no other file and no network: figures are within it, and it links to nothing but papers.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from tfstudy.errors import UserError
from tfstudy.report.markup import escape_markdown, markdown_list, markdown_table
from tfstudy.runs.files import write_atomically

TEMPLATES = Path(__file__).parent / "templates"
ESCAPES = str.maketrans({letter: quote(letter) for letter in "%#<>\"&'\n"})
MARK = '<meta name="generator" content="tfstudy report">'  # identifies a file as a report
MARKDOWN_MARK = "<!-- tfstudy report -->"


class Words(NamedTuple):
    """A paragraph, or a note below what it explains."""

    text: str
    note: bool = False


class Items(NamedTuple):
    """A list."""

    lines: Sequence[str]
    note: bool = False


class Grid(NamedTuple):
    """A table of texts; a row with `strong` stands out."""

    caption: str
    heads: Sequence[str]
    rows: Sequence[Sequence[str]]
    strong: Sequence[bool] = ()
    head: int = 0  # the column that names the row
    markdown: str = ""  # instead of the table made of these texts


class Picture(NamedTuple):
    """A figure of the study, and its file beside the page."""

    name: str
    alt: str
    svg: str
    file: str


Block = Words | Items | Grid | Picture


class Section(NamedTuple):
    """A section of a page. What is folded opens by its title in the HTML; in Markdown it stands open or is left out."""

    title: str
    blocks: Sequence[Block]
    folded: Mapping[str, Sequence[Block]] = {}  # by title
    markdown: bool = False  # whether it has what is folded too

    @property
    def id(self) -> str:
        """Its anchor."""
        return self.title.lower().replace(" ", "-")


class Page(NamedTuple):
    """A report."""

    name: str
    about: Sequence[str]  # sentences: what was studied
    warning: str
    counts: str
    sections: Sequence[Section]
    left_out: Sequence[str]
    version: str

    @property
    def pictures(self) -> list[Picture]:
        """All figures."""
        return [block for section in self.sections for block in section.blocks if isinstance(block, Picture)]

    def section(self, title: str) -> Section:
        """Return the section with this title."""
        return next(section for section in self.sections if section.title == title)


def html(page: Page) -> str:
    """Return the HTML page."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    options: dict[str, Any] = {"trim_blocks": True, "lstrip_blocks": True, "undefined": StrictUndefined}
    environment = Environment(loader=FileSystemLoader(TEMPLATES), autoescape=True, **options)
    environment.filters |= {"kind": lambda block: type(block).__name__, "data_url": _data_url}
    return environment.get_template("report.html").render(page=page, mark=MARK) + "\n"


def _data_url(svg: str) -> str:
    """Return an SVG as a URL, so that the page needs no other file and ids and styles of figures do not clash."""
    return "data:image/svg+xml;charset=utf-8," + svg.strip().translate(ESCAPES)


def markdown(page: Page) -> str:
    """Return the page as Markdown, as repository hosts show it: all but what is folded in the HTML."""
    blocks = [f"{MARKDOWN_MARK}\n\n# {escape_markdown(page.name)}", escaped(" ".join(page.about)), page.warning]
    for section in page.sections:
        folded = [block for own in section.folded.values() for block in own] if section.markdown else []
        if shown := [text for block in (*section.blocks, *folded) if (text := WRITERS[type(block)](block))]:
            blocks += [f"## {section.title}", *shown]
    end = f"Written by tfstudy {page.version}; `index.html` beside this page has the same and more details."
    return "\n\n".join(filter(None, [*blocks, end])) + "\n"


def _grid(grid: Grid) -> str:
    rows = [[escaped(cell) for cell in row] for row in grid.rows]
    for row, strong in zip(rows, grid.strong, strict=False):
        row[grid.head] = f"**{row[grid.head]}**" if strong else row[grid.head]
    table = markdown_table(grid.heads, rows) if rows else ""
    return grid.markdown or "\n\n".join(filter(None, [grid.caption, table]))


def _picture(picture: Picture) -> str:
    alt = escaped(picture.alt).replace("[", "(").replace("]", ")")
    return f"![{alt}](figures/{picture.file})"


WRITERS: dict[type, Callable[[Any], str]] = {
    Words: lambda words: escaped(words.text),
    Items: lambda items: markdown_list(map(escaped, items.lines)),
    Grid: _grid,
    Picture: _picture,
}


def escaped(text: str) -> str:
    """Return text without Markdown of its own, except that bold text as a whole stays bold."""
    bold = text.startswith("**") and text.endswith("**") and len(text) > 4
    return f"**{escape_markdown(text[2:-2])}**" if bold else escape_markdown(text)


# Files


def publish(page: Page, out: Path) -> Path:
    """Write `index.html`, `report.md` and `figures/*.svg` to a folder; return the path of the page.

    Everything is computed before anything is written. Each file is replaced as a whole, the page last; since it
    contains its figures, it is never a mixture of two reports. `UserError`, and nothing is written, if a file with one
    of these names is not a report.
    """
    check_folder(out)
    files = {f"figures/{picture.file}": picture.svg for picture in page.pictures}
    files |= {"report.md": markdown(page), "index.html": html(page)}
    try:
        for name, text in files.items():
            # undecodable characters, such as of a folder's name in another encoding, are written as numbers
            write_atomically(out / name, text.encode(errors="backslashreplace"))
    except OSError as error:
        raise UserError(f"can't write to {out}: {error.strerror}") from None
    return out / "index.html"


def check_folder(out: Path) -> None:
    """Raise `UserError` if writing a report to this folder could overwrite something else."""
    if out.exists() and not out.is_dir():
        raise UserError(f"--out must be a folder, but {out} is a file")
    if (out / "config.yaml").exists():
        raise UserError(f"--out must not be the folder of a run, but {out} is one")
    for name, mark in (("index.html", MARK), ("report.md", MARKDOWN_MARK)):
        path = out / name
        if path.exists() and mark.encode() not in path.read_bytes()[:2000]:
            raise UserError(
                f"{path} is not a report of tfstudy and would be overwritten; choose another folder as --out"
            )
