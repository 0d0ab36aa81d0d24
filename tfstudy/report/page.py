"""A page of blocks as HTML, by one template, and as Markdown from the same blocks; and how a report is written.

The HTML is one file that needs no other file and no network: figures are within it, and it links to nothing but papers.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from tfstudy.errors import UserError
from tfstudy.report.markup import escape_markdown, markdown_list, markdown_table
from tfstudy.runs.files import write_atomically

TEMPLATES = Path(__file__).parent / "templates"
ESCAPES = str.maketrans({letter: quote(letter) for letter in "%#<>\"&'\n"})
# how a file begins that is a report, and may be replaced
MARKS = {"index.html": '<meta name="generator" content="tfstudy report">', "report.md": "<!-- tfstudy report -->"}


class Grid(NamedTuple):
    """A table of texts; a row with `strong` stands out."""

    caption: str
    heads: Sequence[str]
    rows: Sequence[Sequence[str]]
    strong: Sequence[bool] = ()
    head: int = 0  # the column that names the row


class Picture(NamedTuple):
    """A figure of the study, and its file beside the page."""

    name: str
    alt: str
    svg: str
    file: str


Block = str | list[str] | Grid | Picture  # a paragraph, a list, a table or a figure


class Section(NamedTuple):
    """A section of a page. What is folded opens by its title in the HTML; in Markdown it stands open."""

    title: str
    blocks: Sequence[Block]
    folded: Mapping[str, Sequence[Block]] = {}  # by title

    @property
    def id(self) -> str:
        """Its anchor."""
        return self.title.lower().replace(" ", "-")


class Page(NamedTuple):
    """A report."""

    name: str
    about: str  # what was studied
    warning: str
    counts: str
    sections: Sequence[Section]
    left_out: Sequence[str]
    version: str

    @property
    def pictures(self) -> list[Picture]:
        """All figures."""
        return [block for section in self.sections for block in section.blocks if isinstance(block, Picture)]


def html(page: Page) -> str:
    """Return the HTML page."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    options: dict[str, Any] = {"trim_blocks": True, "lstrip_blocks": True, "undefined": StrictUndefined}
    environment = Environment(loader=FileSystemLoader(TEMPLATES), autoescape=True, **options)
    # as a URL, so that the page needs no other file, and ids and styles of figures do not clash
    data_url = "data:image/svg+xml;charset=utf-8,"
    environment.filters["data_url"] = lambda svg: data_url + svg.strip().translate(ESCAPES)
    environment.filters["kind"] = lambda block: type(block).__name__
    return environment.get_template("report.html").render(page=page, mark=MARKS["index.html"]) + "\n"


def markdown(page: Page) -> str:
    """Return the page as Markdown, as repository hosts show it."""
    blocks = [f"{MARKS['report.md']}\n\n# {escape_markdown(page.name)}", escaped(page.about), page.warning]
    for section in page.sections:
        blocks += [f"## {section.title}", *map(_markdown, section.blocks)]
        for title, own in section.folded.items():
            blocks += [f"### {escaped(title)}", *map(_markdown, own)]
    return "\n\n".join(filter(None, [*blocks, f"Written by tfstudy {page.version}."])) + "\n"


def _markdown(block: Block) -> str:
    if isinstance(block, str):
        return escaped(block)
    if isinstance(block, Picture):
        alt = escaped(block.alt).replace("[", "(").replace("]", ")")
        return f"![{alt}](figures/{block.file})"
    if not isinstance(block, Grid):
        return markdown_list(map(escaped, block))
    rows = [[escaped(cell) for cell in row] for row in block.rows]
    for row, strong in zip(rows, block.strong, strict=False):
        row[block.head] = f"**{row[block.head]}**" if strong else row[block.head]
    return "\n\n".join(filter(None, [block.caption, markdown_table(block.heads, rows) if rows else ""]))


def escaped(text: str) -> str:
    """Return text without Markdown of its own, except that bold text as a whole stays bold."""
    bold = text.startswith("**") and text.endswith("**") and len(text) > 4
    return f"**{escape_markdown(text[2:-2])}**" if bold else escape_markdown(text)


# Files


def publish(page: Page, out: Path) -> None:
    """Write `index.html`, `report.md` and `figures/*.svg` to a folder.

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


def check_folder(out: Path) -> None:
    """Raise `UserError` if writing a report to this folder could overwrite something else."""
    if out.exists() and not out.is_dir():
        raise UserError(f"--out must be a folder, but {out} is a file")
    if (out / "config.yaml").exists():
        raise UserError(f"--out must not be the folder of a run, but {out} is one")
    for path, mark in ((out / name, mark) for name, mark in MARKS.items()):
        if path.exists() and mark.encode() not in path.read_bytes()[:2000]:
            raise UserError(
                f"{path} is not a report of tfstudy and would be overwritten; choose another folder as --out"
            )
