"""What a report of a study holds, before it is written in some language."""

import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

from tfstudy import __version__
from tfstudy.analysis.collection import UNFINISHED, RunRecord, Study
from tfstudy.analysis.conditions import conditions
from tfstudy.analysis.metrics import NAMES
from tfstudy.report.comparisons import Findings, findings, places_of
from tfstudy.report.error_browser import Browser, browse
from tfstudy.report.markup import columns, figure
from tfstudy.report.plots import figures, svg
from tfstudy.report.protocol import Ledger, ledger
from tfstudy.report.tables import Line, Table, of_rows

TELL = 20  # runs that are left out for a reason, by name
DRAWN = 200  # rows that can be drawn
EMBEDDED = 4_000_000  # letters of figures that the page holds itself
TEXTS = {"task", "split", "architecture", "preset", "metric", "group"}  # columns that are no measured numbers
Link = Callable[[Path], str]  # of a run's folder, relative to the report


class Claim(NamedTuple):
    """A claim that was judged, in words."""

    id: str
    claim: str
    verdict: str  # supported, refuted, undecided
    why: str
    evidence: Sequence[str]  # of each of its parts
    source: str
    runs: Sequence[Path]


class Claims(NamedTuple):
    """The claims that a study has runs for, and how they were judged."""

    conditions: Sequence[Claim] = ()
    notes: Sequence[str] = ()


NONE = Claims()


class Figure(NamedTuple):
    """A picture of the study."""

    name: str
    alt: str
    svg: str
    embedded: bool  # in the page; else it is a file beside it

    @property
    def file(self) -> str:
        """Its name as a file."""
        return re.sub(r"\W+", "-", self.name) + ".svg"


class Cells(NamedTuple):
    """A line of the table as text, and the runs that it comes from with what each measured."""

    cells: dict[str, str]
    main: str  # the column with the figure that the row is judged by
    top: bool
    runs: list[tuple[RunRecord, str]]


class Page(NamedTuple):
    """A whole report."""

    name: str
    version: str
    counts: str
    running: int  # runs that are not finished
    findings: Findings
    claims: Claims
    table: Table
    lines: list[Cells]
    notes: list[str]
    figures: list[Figure]
    browser: Browser
    ledger: Ledger
    names: list[str]  # of the rows
    left_out: list[str]
    diverged: list[tuple[RunRecord, str]]
    link: Link


def page(study: Study, out: Path, claims: Claims = NONE, metric: str = "", baseline: str = "") -> Page:
    """The report on a study with a finished run, to be written to `out`; `UserError` for names that do not occur."""
    found = conditions(study.runs)
    table = of_rows(study, found, metric, baseline)
    places = places_of(table)
    told = study.told()
    least, most = (pick(len(row.runs) for row in found) for pick in (min, max))
    seeds = f"{least} to {plural(most, 'seed')}" if least < most else plural(most, "seed")
    return Page(
        name=study.root.resolve().name,
        version=__version__,
        counts=f"{plural(len(study.runs), 'run')} in {plural(len(found), 'row')}, {seeds} a row",
        running=sum(reason == UNFINISHED for _, reason in study.left_out),
        findings=findings(table),
        claims=claims,
        table=table,
        lines=[_cells(*pair) for pair in zip(table.lines, columns(table), strict=True)],
        notes=[note for note in table.notes if note not in told],
        figures=_figures(study) if len(found) <= DRAWN else [],
        browser=browse(found),
        ledger=ledger(found),
        names=[f"{places[row.where]}, {row.label}" for row in found],
        left_out=study.told(TELL),
        diverged=_diverged(study),
        link=lambda path: quote(os.fsencode(os.path.relpath(path, out))) + "/",
    )


def plural(count: int, noun: str) -> str:
    """`1 run`, `2 runs`."""
    return f"{count:,} {noun}{'s' * (count != 1)}"


def _figures(study: Study) -> list[Figure]:
    out: list[Figure] = []
    room = EMBEDDED
    for one in figures(study):
        drawn = svg(one)
        out.append(Figure(one.name, one.alt, drawn, len(drawn) <= room))
        room -= len(drawn) * out[-1].embedded
    return out


def _cells(line: Line, cells: dict[str, str]) -> Cells:
    name = NAMES.get(line.metric, line.metric.replace("_", " "))
    values = line.row.by_seed(line.metric)
    runs = [(run, f"{values[seed]:.1f}" if (seed := run.result.seed) in values else "") for run in line.row.runs]
    main = "value" if "value" in cells else name
    return Cells(cells, main, line.top and bool(figure(line)), runs)


def _diverged(study: Study) -> list[tuple[RunRecord, str]]:
    return [(run, run.result.reason or "no reason noted") for run in study.runs if not run.finished]
