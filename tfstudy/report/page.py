"""A page of blocks as HTML by one template, and how a report is written.

It is one file that needs no other file and no network: figures are within it, and it links to nothing.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from tfstudy.errors import UserError
from tfstudy.runs.files import write_atomically

TEMPLATES = Path(__file__).parent / "templates"
ESCAPES = str.maketrans({letter: quote(letter) for letter in "%#<>\"&'\n"})
MARK = '<meta name="generator" content="tfstudy report">'  # identifies a file as a report, which may be replaced


class Grid(NamedTuple):
    """A table of texts, of which one within ** is bold; a row with `strong` stands out."""

    caption: str
    heads: Sequence[str]
    rows: Sequence[Sequence[str]]
    strong: Sequence[bool] = ()
    head: int = 0  # the column that names the row


class Picture(NamedTuple):
    """A figure of the study."""

    name: str
    alt: str
    svg: str


Block = str | list[str] | Grid | Picture  # a paragraph, a list, a table or a figure


class Section(NamedTuple):
    """A section of a page. What is folded opens by its title."""

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

    def data_url(svg: str) -> str:  # so that ids and styles of figures do not clash
        return f"data:image/svg+xml;charset=utf-8,{svg.strip().translate(ESCAPES)}"

    options: dict[str, Any] = {"trim_blocks": True, "lstrip_blocks": True, "undefined": StrictUndefined}
    environment = Environment(loader=FileSystemLoader(TEMPLATES), autoescape=True, **options)
    environment.filters |= {"data_url": data_url, "kind": lambda block: type(block).__name__}
    return environment.get_template("report.html").render(page=page, mark=MARK) + "\n"


def publish(page: Page, out: Path) -> None:
    """Write `index.html` to a folder; `UserError`, and nothing is written, if a file of this name is not a report."""
    check_folder(out)
    # undecodable characters, such as of a folder's name in another encoding, are written as numbers
    data = html(page).encode(errors="backslashreplace")
    try:
        write_atomically(out / "index.html", data)
    except OSError as error:
        raise UserError(f"can't write to {out}: {error.strerror}") from None


def check_folder(out: Path) -> None:
    """Raise `UserError` if writing a report to this folder could overwrite something else."""
    path = out / "index.html"
    if out.exists() and not out.is_dir():
        raise UserError(f"--out must be a folder, but {out} is a file")
    if (out / "config.yaml").exists():
        raise UserError(f"--out must not be the folder of a run, but {out} is one")
    if path.exists() and MARK.encode() not in path.read_bytes()[:2000]:
        raise UserError(f"{path} is not a report of tfstudy and would be overwritten; choose another folder as --out")
