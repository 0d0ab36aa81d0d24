"""The report of a study: the verdict, the table, comparisons, figures, claims and runs, as HTML by one template.

The page is one file that needs no other file and no network: figures are within it, and it links to nothing.
"""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Union
from urllib.parse import quote

from tfstudy import __version__
from tfstudy.analysis.frame import UNFINISHED, Study
from tfstudy.analysis.summary import conditions, rows_of, test_set_labels
from tfstudy.errors import UserError
from tfstudy.report.claims import PROTOCOL, ClaimText
from tfstudy.report.comparisons import comparisons, verdict
from tfstudy.report.markup import count_range, number, plural
from tfstudy.report.measured import saved_measurements
from tfstudy.report.notes import LEFT_OUT, first_note
from tfstudy.report.render import Cells
from tfstudy.report.tables import Table, build_table, wide
from tfstudy.runs.files import write_atomically
from tfstudy.runs.schema import Environment

if TYPE_CHECKING:
    from tfstudy.report.plots.layout import Plot

TEMPLATES = Path(__file__).parent / "templates"
ESCAPES = str.maketrans({letter: quote(letter) for letter in "%#<>\"&'\n"})
MARK = '<meta name="generator" content="tfstudy report">'  # identifies a file as a report, which may be replaced
MAX_NAMED = 20  # runs that are left out for the same reason
MAX_PLOTTED = 200  # conditions
MAX_PLOTTED_RUNS = 2000
UNKNOWN = "unknown"


class Section(NamedTuple):
    """Blocks with a title; within a section they open by it."""

    title: str
    blocks: Sequence["Block"]


Block = Union[str, list[str], Cells, "Plot", "Section"]  # a paragraph, a list, a table or a figure


class Page(NamedTuple):
    """A report."""

    name: str
    warning: str
    counts: str
    sections: Sequence[Section]
    left_out: Sequence[str]


def write_report(
    study: Study, out: Path, claims: Sequence[ClaimText] = (), metric: str = "", baseline: str = ""
) -> Page:
    """Write `index.html` to a folder; `UserError`, and nothing is written, for unknown names and foreign files."""
    page = build_page(study, claims, metric, baseline)
    check_folder(out)
    # undecodable characters, such as of a folder's name in another encoding, are written as numbers
    data = html(page).encode(errors="backslashreplace")
    try:
        write_atomically(out / "index.html", data)
    except OSError as error:
        raise UserError(f"can't write to {out}: {error.strerror}") from None
    return page


def check_folder(out: Path) -> None:
    """Raise `UserError` if writing a report to this folder could overwrite something else."""
    path = out / "index.html"
    if out.exists() and not out.is_dir():
        raise UserError(f"--out must be a folder, but {out} is a file")
    if (out / "config.yaml").exists():
        raise UserError(f"--out must not be the folder of a run, but {out} is one")
    if path.exists() and MARK.encode() not in path.read_bytes()[:2000]:
        raise UserError(f"{path} is not a report of tfstudy and would be overwritten; choose another folder as --out")


def html(page: Page) -> str:
    """Return the HTML page."""
    from jinja2 import Environment as Templates
    from jinja2 import FileSystemLoader, StrictUndefined
    from markupsafe import escape

    def data_url(plot: "Plot") -> str:  # so that ids and styles of figures do not clash
        return f"data:image/svg+xml;charset=utf-8,{plot.encode('.svg').decode().strip().translate(ESCAPES)}"

    def rows(cells: Cells) -> Any:
        return zip(*cells.texts("<strong>{}</strong>", lambda text: str(escape(text))).values(), strict=True)

    options: dict[str, Any] = {"trim_blocks": True, "lstrip_blocks": True, "undefined": StrictUndefined}
    templates = Templates(loader=FileSystemLoader(TEMPLATES), autoescape=True, **options)
    templates.filters |= {"data_url": data_url, "kind": lambda block: type(block).__name__, "rows": rows}
    templates.filters["id"] = lambda title: title.lower().replace(" ", "-")
    return templates.get_template("report.html").render(page=page, mark=MARK, version=__version__) + "\n"


def build_page(study: Study, claims: Sequence[ClaimText] = (), metric: str = "", baseline: str = "") -> Page:
    """Return the report on a study; `UserError` for unknown names."""
    table = build_table(study, conditions(study.runs, metric=metric), baseline)
    rows, (compared, about_compared) = rows_of(table.rows), comparisons(table)
    unfinished = sum(reason == UNFINISHED for _, reason in study.left_out)
    figures, notes = _figures(study, len(rows), metric)
    main = [figure for figure in figures if figure.name == "split"]  # at the top
    seeds = count_range([len(row.runs) for row in rows], "seed")
    counts = f"{plural(len(study.runs), 'run')}, {plural(len(rows), 'condition')}, {seeds} per condition"
    left_out = [*study.left_out_notes(MAX_NAMED)] + [
        f"{'/'.join(run.path.parts[-3:])} diverged: {run.result.reason or 'reason not recorded'}"
        for run in study.runs
        if not run.finished
    ]
    explained = [note.text for note in table.notes if note.kind != LEFT_OUT]
    keys = ("id", "claim", "verdict", "evidence", "source")
    texts = [(one.claim.id, one.claim.claim, one.verdict, one.evidence, one.claim.source) for one in claims]
    claimed = [dict(zip(keys, own, strict=True)) for own in texts]
    judged = Cells.of(claimed, bold={"verdict": [True] * len(claims)})
    said = f"{plural(len(claims), 'claim')} of which this study measured any statement; q counts those of this study"
    sections = [
        Section("Verdict", [*verdict(table), *main]),
        Section(
            "Table",
            [f"{first_note(table.rows)}.", *wide(table.rows, table.baseline),
             Section("How the numbers were obtained", [explained])],
        ),
        Section("Comparisons", [compared, about_compared]),
        Section("Figures", [*notes, *(one for one in figures if one not in main)]),
        *([Section("Claims", [Section(said, [judged, [*PROTOCOL]])])] if claims else []),
        Section("Runs", [Section("Result and folder of each run", [_runs(table)])]),
        Section("Left out", [left_out or "None: every run of this study is in the table."]),
    ]  # fmt: skip
    warning = f"{plural(unfinished, 'run')} not finished. Results may change." if unfinished else ""
    return Page(study.root.resolve().name, warning, counts, sections, left_out)


def _figures(study: Study, count: int, metric: str) -> tuple[list["Plot"], list[str]]:
    """Return all plots of the study, one for each instrument with saved measurements, and what is not shown."""
    if count > MAX_PLOTTED or len(study.runs) > MAX_PLOTTED_RUNS:
        limits = f"{MAX_PLOTTED} conditions or {MAX_PLOTTED_RUNS:,} runs"
        return [], [f"No figures for more than {limits}; use `tfstudy plot` for single plots."]
    from tfstudy.report.plots import all_plots
    from tfstudy.report.plots.instruments import measurement

    measured, notes = saved_measurements(study.runs)
    plots = [*all_plots(study, metric), *(measurement(name, own) for name, own in measured.items())]
    return plots, notes if plots else [*notes, "These records have no data for any plot."]


def _runs(table: Table) -> Cells:
    """Return a row for each run of each condition, from which a number can be traced to its code and data."""
    names, rows = test_set_labels(rows_of(table.rows)), []
    for row in rows_of(table.rows):
        for run in row.runs:
            last, result = (run.environments or [Environment()])[-1], run.result
            rows.append({
                "test set": names[row.place], "condition": row.label, "seed": str(result.seed),
                "result": number(row.each_seed.get(result.seed, math.nan)), "parameters": f"{result.parameters:,}",
                "seconds": f"{result.train_seconds:,.0f}", "device": result.device,
                "commit": (last.commit or "")[:10] or UNKNOWN, "data": last.data[:12] or UNKNOWN,
                "run": "/".join(run.path.parts[-3:]),
            })  # fmt: skip
    return Cells.of(rows)
