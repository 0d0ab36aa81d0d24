"""The content of a study's report, before it is written as HTML or Markdown."""

import contextlib
import os
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote

from tfstudy import __version__
from tfstudy.analysis.frame import UNFINISHED, RunRecord, Study
from tfstudy.analysis.labels import Condition
from tfstudy.analysis.published import Paper, papers
from tfstudy.analysis.summary import conditions, rows_of, test_set_labels
from tfstudy.errors import UserError, printable
from tfstudy.grids.spec import grid_names, read_grid
from tfstudy.report.claims import ClaimText
from tfstudy.report.comparisons import ComparisonSummary, examples_labels, summarize_comparisons, verdict
from tfstudy.report.error_examples import error_kind_lines
from tfstudy.report.markup import count_range, listed, number, plural, short_number
from tfstudy.report.measured import saved_measurements
from tfstudy.report.notes import LEFT_OUT
from tfstudy.report.plots import Selection, all_plots
from tfstudy.report.protocol import Protocol, build_protocol
from tfstudy.report.tables import QUOTED, Table, build_table, cells
from tfstudy.runs.display import metric_name
from tfstudy.runs.reader import read_environments
from tfstudy.runs.studyfile import packed_in

if TYPE_CHECKING:
    from tfstudy.report.plots.layout import Plot

MAX_NAMED = 20  # runs that are left out for the same reason
MAX_LISTED = 8  # tasks, split schemes or architectures
MAX_PLOTTED = 200  # conditions
MAX_PLOTTED_RUNS = 2000
MAX_EXAMPLES = 2  # of each kind of error
MAX_CONDITIONS = 150  # whose errors are shown
ERROR_WIDTH = 110  # characters of a line of errors
MAIN = "split"  # the figure at the top
CONDITION_COLUMNS = ("task", "split", "architecture", "preset")  # first, then the result
TEXT_COLUMNS = {*CONDITION_COLUMNS, "metric", "group"}
IDS = {
    "L": "L, such as L2: a statement of lecture notes on Transformers (EE 641 Unit 6, 2025)",
    "P": "P, such as P7: a statement of a paper, named as its source",
}
RunLink = tuple[RunRecord, str]  # a run and its result, or the reason why it diverged


class FigureFile(NamedTuple):
    """A figure of the study."""

    name: str
    alt: str
    svg: str

    @property
    def file(self) -> str:
        """The name of its file."""
        return re.sub(r"\W+", "-", self.name) + ".svg"


class PageLine(NamedTuple):
    """A line of the table as text, and its runs, each with its result."""

    cells: dict[str, str]
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
    errors: dict[str, str]  # by test set and condition: the kinds of a run's errors, with examples, as lines
    error_notes: list[str]
    id_notes: list[str]  # what the ids of claims mean
    papers: list[Paper]
    protocol: Protocol
    names: list[str]  # of the lines
    left_out: list[str]
    diverged: list[RunLink]
    link: Callable[[Path], str]  # to a run's folder or zip file, relative to the report


def build_page(study: Study, out: Path, claims: Sequence[ClaimText] = (), metric: str = "", baseline: str = "") -> Page:
    """Return the report on a study, to be written to `out`; `UserError` for unknown names."""
    table = build_table(study, conditions(study.runs, metric=metric), baseline)
    all_conditions, labels = rows_of(table.rows), examples_labels(table)
    too_large = len(all_conditions) > MAX_PLOTTED or len(study.runs) > MAX_PLOTTED_RUNS
    seeds = count_range([len(condition.runs) for condition in all_conditions], "seed")
    figure_notes: list[str] = []
    plots = [] if too_large else _plots(study, figure_notes)
    errors, error_notes = _errors(all_conditions)
    figures = [FigureFile(plot.name, plot.alt, plot.svg()) for plot in plots]
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
        lines=_page_lines(table),
        notes=[note.text for note in table.notes if note.kind != LEFT_OUT],
        figures=figures,
        figure_notes=figure_notes,
        too_large=too_large,
        errors=errors,
        error_notes=error_notes,
        id_notes=[note for letter, note in IDS.items() if any(claim.id.startswith(letter) for claim in claims)],
        papers=cited_papers(table, claims),
        protocol=build_protocol(all_conditions),
        names=[f"{labels[condition.place]}, {condition.label}" for condition in all_conditions],
        left_out=study.left_out_notes(MAX_NAMED),
        diverged=[(run, run.result.reason or "reason not recorded") for run in study.runs if not run.finished],
        link=lambda path: _link(path, out),
    )


def _link(run: Path, out: Path) -> str:
    """Return the link from a report to a run's folder, or to the zip file that holds the run."""
    file = packed_in(run)
    return quote(os.fsencode(os.path.relpath(file or run, out))) + "/" * (not file)


def _plots(study: Study, notes: list[str]) -> "Iterator[Plot]":
    """Yield all plots of the study, and one for each instrument with saved measurements.

    What is not shown is added to the notes.
    """
    from tfstudy.report.plots import layout, measurement

    yield from all_plots(study, Selection(width="page"))
    measured, left_out = saved_measurements(study.runs)
    notes += left_out
    yield from (measurement.plot(name, own, layout.PAGE) for name, own in measured.items())


def _errors(every: Sequence[Condition]) -> tuple[dict[str, str], list[str]]:
    """Return the errors of the first run of each condition whose predictions can be read, and what is not shown."""
    shown: dict[str, str] = {}
    without = []
    with_runs, names = [condition for condition in every if condition.runs], test_set_labels(every)
    for condition in with_runs[:MAX_CONDITIONS]:
        name = f"{names[condition.place]}: {condition.label}"
        for run in condition.runs:
            with contextlib.suppress(UserError):
                lines = error_kind_lines(run.path, condition.test, MAX_EXAMPLES, ERROR_WIDTH)
                shown[name] = "\n".join(printable(line.plain.rstrip()) for line in lines).strip()
                break
        else:
            without.append(name)
    notes = [f"Not read, for lack of predictions: {listed(without, MAX_NAMED)}."] if without else []
    if len(with_runs) > MAX_CONDITIONS:
        notes.append(f"The first {MAX_CONDITIONS} of {len(with_runs):,} conditions are shown.")
    return shown, notes


def _page_lines(table: Table) -> list[PageLine]:
    texts = cells(table)
    main, out = texts.heads["result"], []
    named: list[Any] = texts.frame.rename(columns=dict(texts.heads)).to_dict("records")
    for row, own in zip(rows_of(table.rows), named, strict=True):
        values = row.each_seed
        runs = [(run, number(values[seed]) if (seed := run.result.seed) in values else "") for run in row.runs]
        first = [*CONDITION_COLUMNS, main, "group"]
        ordered = {name: own[name] for name in dict.fromkeys([*first, *own]) if name in own}
        out.append(PageLine(ordered, main, row.best_group and bool(own[main]), runs))
    return out


# What was studied, in one or two sentences


def summarize_study(study: Study, conditions: Sequence[Condition]) -> list[str]:
    """Return sentences on what was studied: what the grid's file says of it, then the facts of the records.

    The facts are `60 runs of scan; 4 split schemes (...); 3 architectures (...); 5 seeds per condition; 3,000 steps`.
    """
    runs, about = study.runs, grid_about(study)
    sizes = sorted({run.result.parameters for run in runs} - {0})  # 0 in records without sizes
    ends = dict.fromkeys(map(short_number, (sizes[0], sizes[-1]))) if sizes else {}
    days = sorted({day[:10] for run in runs for day in (run.result.started, run.result.finished) if day})
    parts = [
        f"{plural(len(runs), 'run')} of {listed(sorted({run.result.task for run in runs}), MAX_LISTED)}",
        _named("split scheme", {run.result.split for run in runs}),
        _named("architecture", {run.result.arch for run in runs})
        + (f" of {' to '.join(ends)} parameters" if ends else ""),
        f"{count_range([len(condition.runs) for condition in conditions], 'seed')} per condition",
        _range([int(condition.config.get("train.steps", 0)) for condition in conditions], "training step"),
        _range([run.result.train_examples for run in runs], "training example"),
        f"run on {days[0]}" if len(days) == 1 else f"run from {days[0]} to {days[-1]}" if days else "",
    ]
    measured = listed(dict.fromkeys(metric_name(condition.metric) for condition in conditions), MAX_LISTED)
    facts = f"{'; '.join(filter(None, parts))}. Results are {measured} on test sets, from 0 to 100."
    return [*([about] if about else []), facts]


def grid_about(study: Study) -> str:
    """Return what the file of a grid says of it, `Grid scan: ...`; empty unless the runs were started by one grid."""
    known = grid_names()
    commands = (entry.arguments for run in study.runs for entry in read_environments(run.path)[:1])
    used = {words[1] for words in commands if words[:1] == ["grid"] and len(words) > 1 and words[1] in known}
    if len(used) != 1:
        return ""
    name = used.pop()
    try:
        about = " ".join(str(read_grid(name).get("about") or "").replace("`", "").split())
    except UserError:
        return ""
    return f"Grid {name}: {about.rstrip('.')}." if about else ""


def _named(noun: str, values: Iterable[str]) -> str:
    """Return `split scheme length`, or `2 split schemes (length, simple)`."""
    names = sorted(values)
    return f"{noun} {names[0]}" if len(names) == 1 else f"{plural(len(names), noun)} ({listed(names, MAX_LISTED)})"


def _range(counts: Sequence[int], noun: str) -> str:
    known = [count for count in counts if count]
    return count_range(known, noun) if known else ""


# Sources


def cited_papers(table: Table, claims: Iterable[ClaimText]) -> list[Paper]:
    """Return the papers with published figures in the table, and those that are sources of the claims, by key."""
    keys = {
        key
        for quoted in QUOTED
        for own in table.rows[quoted]
        for one in own
        for key in (one.figure.paper, one.figure.quoted_from)
    }
    sources = [_plain(claim.source) for claim in claims]
    return [
        paper
        for key, paper in sorted(papers().items())
        if key in keys or any(_plain(paper.short) in source for source in sources)
    ]


def _plain(text: str) -> str:
    """Return text without accents: sources spell Dessì as Dessi."""
    return unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()
