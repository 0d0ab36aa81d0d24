"""The content of a study's report, before it is written as HTML or Markdown."""

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote

from tfstudy import __version__
from tfstudy.analysis.collection import UNFINISHED, RunRecord, Study
from tfstudy.analysis.conditions import conditions
from tfstudy.analysis.published import Paper
from tfstudy.report.attention_maps import ShownMap, shown_maps
from tfstudy.report.claims import ClaimText
from tfstudy.report.comparisons import ComparisonSummary, examples_labels, summarize_comparisons
from tfstudy.report.error_browser import ErrorBrowser, build_error_browser
from tfstudy.report.markup import count_range, number, plural
from tfstudy.report.measured import Measured, saved_measurements
from tfstudy.report.plots import Selection, all_plots
from tfstudy.report.protocol import Protocol, build_protocol
from tfstudy.report.sources import cited_papers, id_notes
from tfstudy.report.study_summary import summarize_study
from tfstudy.report.table_columns import Cells, columns, mean_text
from tfstudy.report.table_lines import Line, Table
from tfstudy.report.tables import build_table
from tfstudy.report.verdict import verdict
from tfstudy.runs.metrics import metric_name

if TYPE_CHECKING:
    from tfstudy.report.plots.layout import Plot

MAX_NAMED = 20  # runs that are left out for the same reason
MAX_PLOTTED = 200  # conditions
MAX_PLOTTED_RUNS = 2000
MAX_EMBEDDED = 600_000  # characters of figures within the page
MAIN = "split"  # the figure at the top
CONDITION_COLUMNS = ("task", "split", "architecture", "preset")  # first, then the result
TEXT_COLUMNS = {*CONDITION_COLUMNS, "metric", "group"}
RunLink = tuple[RunRecord, str]  # a run and its result, or the reason why it diverged


class FigureFile(NamedTuple):
    """A figure of the study, as wide as a page and as a phone."""

    name: str
    alt: str
    svg: str
    narrow: str
    embedded: bool  # in the page; else the page links to the file

    @property
    def file(self) -> str:
        """The name of its file."""
        return re.sub(r"\W+", "-", self.name) + ".svg"


class PageLine(NamedTuple):
    """A line of the table as text, and its runs, each with its result."""

    cells: Cells
    main: str  # the column with the result
    best: bool
    runs: list[RunLink]


class Page(NamedTuple):
    """The content of a report."""

    name: str
    version: str
    counts: str
    unfinished: int
    about: list[str]  # sentences: what was studied
    verdict: list[str]  # three sentences
    main_figure: FigureFile | None
    comparisons: ComparisonSummary
    claims: Sequence[ClaimText]
    table: Table
    lines: list[PageLine]
    notes: list[str]
    figures: list[FigureFile]  # with the main one, and those of instruments
    figure_notes: list[str]
    too_large: bool  # for figures
    errors: ErrorBrowser
    attention: list[ShownMap]
    attention_notes: list[str]
    id_notes: list[str]  # what the ids of claims mean
    papers: list[Paper]
    protocol: Protocol
    names: list[str]  # of the lines
    left_out: list[str]
    diverged: list[RunLink]
    link: Callable[[Path], str]  # to a run's folder, relative to the report


def build_page(study: Study, out: Path, claims: Sequence[ClaimText] = (), metric: str = "", baseline: str = "") -> Page:
    """Return the report on a study, to be written to `out`; `UserError` for unknown names."""
    all_conditions = conditions(study.runs)
    table = build_table(study, all_conditions, metric, baseline)
    labels = examples_labels(table)
    left_out_notes = study.left_out_notes()
    too_large = len(all_conditions) > MAX_PLOTTED or len(study.runs) > MAX_PLOTTED_RUNS
    seeds = count_range([len(condition.runs) for condition in all_conditions], "seed")
    measured, measured_notes = saved_measurements([] if too_large else study.runs)
    figures = [] if too_large else _figures(study, measured)
    attention, attention_notes = shown_maps(all_conditions)
    return Page(
        name=study.root.resolve().name,
        version=__version__,
        counts=f"{plural(len(study.runs), 'run')}, {plural(len(all_conditions), 'condition')}, {seeds} per condition",
        unfinished=sum(reason == UNFINISHED for _, reason in study.left_out),
        about=summarize_study(study, all_conditions),
        verdict=verdict(table),
        main_figure=next((figure for figure in figures if figure.name == MAIN), None),
        comparisons=summarize_comparisons(table),
        claims=claims,
        table=table,
        lines=[_page_line(line, cells) for line, cells in zip(table.lines, columns(table), strict=True)],
        notes=[note for note in table.notes if note not in left_out_notes],
        figures=figures,
        figure_notes=measured_notes,
        too_large=too_large,
        errors=build_error_browser(all_conditions),
        attention=attention,
        attention_notes=attention_notes,
        id_notes=id_notes(claims),
        papers=cited_papers(table, claims),
        protocol=build_protocol(all_conditions),
        names=[f"{labels[condition.examples_key]}, {condition.label}" for condition in all_conditions],
        left_out=study.left_out_notes(MAX_NAMED),
        diverged=[(run, run.result.reason or "reason not recorded") for run in study.runs if not run.finished],
        link=lambda path: quote(os.fsencode(os.path.relpath(path, out))) + "/",
    )


def _figures(study: Study, measured: Mapping[str, Sequence[Measured]]) -> list[FigureFile]:
    out: list[FigureFile] = []
    room = MAX_EMBEDDED
    for page, column in zip(*(_plots(study, measured, width) for width in ("page", "column")), strict=True):
        svg, narrow = page.svg(), column.svg()
        size = len(svg) + len(narrow)
        out.append(FigureFile(page.name, page.alt, svg, narrow, size <= room))
        room -= size * out[-1].embedded
    return out


def _plots(study: Study, measured: Mapping[str, Sequence[Measured]], width: str) -> "Iterator[Plot]":
    """Yield all plots of the study, then one for each instrument with saved measurements."""
    from tfstudy.report.plots import layout, measurement

    yield from all_plots(study, Selection(width=width))
    yield from (measurement.plot(name, own, layout.SHEETS[width]) for name, own in measured.items())


def _page_line(line: Line, cells: Cells) -> PageLine:
    values = line.condition.by_seed(line.metric)
    runs = [(run, number(values[seed]) if (seed := run.result.seed) in values else "") for run in line.condition.runs]
    main = "value" if "value" in cells else metric_name(line.metric)
    first = [*CONDITION_COLUMNS, main, "group"]
    ordered = {name: cells[name] for name in [*first, *cells] if name in cells}
    return PageLine(ordered, main, line.best and bool(mean_text(line)), runs)
