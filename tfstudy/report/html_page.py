"""A study as one page for a browser, that needs no network, beside the same for a forge and its figures."""

import re
from base64 import b64encode
from pathlib import Path

from tasks.errors import UserError
from tfstudy.analysis.collection import Study
from tfstudy.report import markdown_page
from tfstudy.report.study_page import DRAWN, NONE, TEXTS, Claims, Figure, Page, page, plural
from tfstudy.runs.files import write_whole

TEMPLATES = Path(__file__).parent / "templates"
MARK = '<meta name="generator" content="tfstudy report">'  # by which a report is known as one


def publish(study: Study, out: Path, claims: Claims = NONE, metric: str = "", baseline: str = "") -> tuple[Path, Page]:
    """Writes `index.html`, `report.md` and `figures/*.svg` to a folder; returns the page's path and content.

    All is made before anything is written, and each file appears whole, the page last: it holds its figures, so it is
    never half of one report. Only these files are written; figures of a former report that this one has not are
    removed. `UserError`, and nothing is written, for names that do not occur, or if a file of these names is no
    report's.
    """
    check(out)
    made = page(study, out, claims, metric, baseline)
    files = {f"figures/{figure.file}": figure.svg for figure in made.figures}
    files |= {"report.md": markdown_page.markdown(made), "index.html": hypertext(made)}
    try:
        former = figures_of(out)
        for name, text in files.items():
            # what is no text, such as a folder's name in another encoding, is written as numbers
            write_whole(out / name, text.encode(errors="backslashreplace"))
        for name in former - files.keys():
            (out / name).unlink(missing_ok=True)
    except OSError as error:
        raise UserError(f"can't write to {out}: {error.strerror}") from None
    return out / "index.html", made


def check(out: Path) -> None:
    """`UserError` if a report can't go to this folder without harm."""
    if out.exists() and not out.is_dir():
        raise UserError(f"--out must be a folder, but {out} is a file")
    if (out / "config.yaml").exists():
        raise UserError(f"--out must not be a run's folder, but {out} is one")
    for name, mark in (("index.html", MARK), ("report.md", markdown_page.MARK)):
        path = out / name
        if path.exists() and mark.encode() not in path.read_bytes()[:2000]:
            raise UserError(f"{path} is not a report of tfstudy, so it is left as it is; give --out another folder")


def figures_of(out: Path) -> set[str]:
    """The figures of the report that is there, relative to its folder."""
    there = out / "report.md"
    text = there.read_text(encoding="utf-8", errors="replace") if there.exists() else ""
    return set(re.findall(r"\]\((figures/[\w-]+\.svg)\)", text))


def hypertext(made: Page) -> str:
    """The page."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(TEMPLATES), autoescape=True, undefined=StrictUndefined, trim_blocks=True,
        lstrip_blocks=True,
    )  # fmt: skip
    environment.filters["data"] = data_of
    return (
        environment.get_template("report.html").render(page=made, mark=MARK, texts=TEXTS, drawn=DRAWN, plural=plural)
        + "\n"
    )


def data_of(figure: Figure) -> str:
    """The picture as an address, so that the page needs no other file, and ids of pictures do not meet."""
    return "data:image/svg+xml;base64," + b64encode(figure.svg.encode()).decode()
