"""The report of a study: one HTML page that needs no network, the same as Markdown, and its figures."""

from collections.abc import Sequence
from pathlib import Path
from urllib.parse import quote

from tfstudy.analysis.frame import Study
from tfstudy.errors import UserError
from tfstudy.report import markdown_page
from tfstudy.report.claims import ClaimText, protocol
from tfstudy.report.markup import plural
from tfstudy.report.study_page import MAX_PLOTTED, MAX_PLOTTED_RUNS, TEXT_COLUMNS, Page, build_page
from tfstudy.runs.files import write_atomically

TEMPLATES = Path(__file__).parent / "templates"
ESCAPES = str.maketrans({letter: quote(letter) for letter in "%#<>\"&'\n"})
MARK = '<meta name="generator" content="tfstudy report">'  # identifies a file as a report


def publish(
    study: Study, out: Path, claims: Sequence[ClaimText] = (), metric: str = "", baseline: str = ""
) -> tuple[Path, Page]:
    """Write `index.html`, `report.md` and `figures/*.svg` to a folder; return the path and the content of the page.

    Everything is computed before anything is written. Each file is replaced as a whole, the page last; since it
    contains its figures, it is never a mixture of two reports. `UserError`, and nothing is written, for unknown names,
    or if a file with one of these names is not a report.
    """
    check_folder(out)
    page = build_page(study, out, claims, metric, baseline)
    files = {f"figures/{figure.file}": figure.svg for figure in page.figures}
    files |= {"report.md": markdown_page.markdown(page), "index.html": render(page)}
    try:
        for name, text in files.items():
            # undecodable characters, such as of a folder's name in another encoding, are written as numbers
            write_atomically(out / name, text.encode(errors="backslashreplace"))
    except OSError as error:
        raise UserError(f"can't write to {out}: {error.strerror}") from None
    return out / "index.html", page


def check_folder(out: Path) -> None:
    """Raise `UserError` if writing a report to this folder could overwrite something else."""
    if out.exists() and not out.is_dir():
        raise UserError(f"--out must be a folder, but {out} is a file")
    if (out / "config.yaml").exists():
        raise UserError(f"--out must not be the folder of a run, but {out} is one")
    for name, mark in (("index.html", MARK), ("report.md", markdown_page.MARK)):
        path = out / name
        if path.exists() and mark.encode() not in path.read_bytes()[:2000]:
            raise UserError(
                f"{path} is not a report of tfstudy and would be overwritten; choose another folder as --out"
            )


def render(page: Page) -> str:
    """Return the HTML page."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(TEMPLATES), autoescape=True, undefined=StrictUndefined, trim_blocks=True,
        lstrip_blocks=True,
    )  # fmt: skip
    environment.filters["data_url"] = _data_url
    environment.globals |= {"mark": MARK, "text_columns": TEXT_COLUMNS, "plural": plural}
    environment.globals |= {"max_plotted": MAX_PLOTTED, "max_plotted_runs": MAX_PLOTTED_RUNS}
    return environment.get_template("report.html").render(page=page, claim_notes=protocol()) + "\n"


def _data_url(svg: str) -> str:
    """Return an SVG as a URL, so that the page needs no other file and ids and styles of figures do not clash."""
    return "data:image/svg+xml;charset=utf-8," + svg.strip().translate(ESCAPES)
