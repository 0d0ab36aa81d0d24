"""The report of a study as blocks: what was studied, the verdict, table, comparisons, figures, claims, protocol."""

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from tfstudy import __version__
from tfstudy.analysis.frame import UNFINISHED, Study
from tfstudy.analysis.labels import Condition
from tfstudy.analysis.summary import conditions, rows_of
from tfstudy.errors import UserError
from tfstudy.grids.spec import grid_names, read_grid
from tfstudy.report import page as pages
from tfstudy.report.claims import PROTOCOL, ClaimText
from tfstudy.report.comparisons import HEADS, examples_labels, summarize_comparisons, verdict
from tfstudy.report.markup import count_range, listed, number, plural, several, short_number
from tfstudy.report.measured import saved_measurements
from tfstudy.report.notes import LEFT_OUT, first_note, whole_scores
from tfstudy.report.page import Block, Grid, Items, Page, Picture, Section, Words
from tfstudy.report.plots import all_plots
from tfstudy.report.tables import Table, build_table
from tfstudy.report.wide import wide
from tfstudy.runs.display import metric_name
from tfstudy.runs.schema import Result
from tfstudy.runs.store import read_environments

if TYPE_CHECKING:
    from tfstudy.report.plots.layout import Plot

MAX_NAMED = 20  # runs that are left out for the same reason
MAX_LISTED = 8  # tasks, split schemes or architectures
MAX_PLOTTED = 200  # conditions
MAX_PLOTTED_RUNS = 2000
MAIN = "split"  # the figure at the top
CLAIM_HEADS = ("id", "claim", "verdict", "evidence", "source")
PACKAGES = ("python", "torch", "lightning")  # that affect results most
UNKNOWN, NOT_RECORDED = "unknown", "not recorded"


def publish(study: Study, out: Path, claims: Sequence[ClaimText] = (), metric: str = "", baseline: str = "") -> Page:
    """Write the report of a study to a folder (see `page.publish`); `UserError`, and nothing is written, otherwise."""
    pages.check_folder(out)
    page = build_page(study, claims, metric, baseline)
    pages.publish(page, out)
    return page


def build_page(study: Study, claims: Sequence[ClaimText] = (), metric: str = "", baseline: str = "") -> Page:
    """Return the report on a study; `UserError` for unknown names."""
    table = build_table(study, conditions(study.runs, metric=metric), baseline)
    rows = rows_of(table.rows)
    seeds = count_range([len(row.runs) for row in rows], "seed")
    unfinished = sum(reason == UNFINISHED for _, reason in study.left_out)
    figures, notes = _figures(study, len(rows))
    main = [figure for figure in figures if figure.name == MAIN]
    counts = f"{plural(len(study.runs), 'run')}, {plural(len(rows), 'condition')}, {seeds} per condition"
    diverged = [(run, run.result.reason or "reason not recorded") for run in study.runs if not run.finished]
    left_out = [
        *study.left_out_notes(MAX_NAMED),
        *(f"{'/'.join(run.path.parts[-3:])} diverged: {reason}" for run, reason in diverged),
    ]
    sections = [
        Section("Verdict", [*map(Words, verdict(table)), *main]),
        _table(table, counts),
        _comparisons(table),
        Section("Figures", [*(Words(note, note=True) for note in notes), *(one for one in figures if one not in main)]),
        *_claims(claims),
        _runs(table),
        _protocol(table),
        Section("Left out", [Items(left_out or ["None: every run of this study is in the table."])]),
    ]
    return Page(
        name=study.root.resolve().name,
        about=summarize_study(study, rows),
        warning=f"**{plural(unfinished, 'run')} not finished.** Results may change." if unfinished else "",
        counts=counts,
        sections=sections,
        left_out=left_out,
        version=__version__,
    )


def _figures(study: Study, count: int) -> tuple[list[Picture], list[str]]:
    """Return all plots of the study, one for each instrument with saved measurements, and what is not shown."""
    if count > MAX_PLOTTED or len(study.runs) > MAX_PLOTTED_RUNS:
        limits = f"{MAX_PLOTTED} conditions or {MAX_PLOTTED_RUNS:,} runs"
        return [], [f"No figures for more than {limits}; use `tfstudy plot` for single plots."]
    measured, notes = saved_measurements(study.runs)

    def plots() -> Iterator["Plot"]:
        from tfstudy.report.plots import instruments, layout

        yield from all_plots(study)
        yield from (instruments.measurement(name, own, layout.PAGE) for name, own in measured.items())

    found = [Picture(plot.name, plot.alt, plot.svg(), re.sub(r"\W+", "-", plot.name) + ".svg") for plot in plots()]
    return found, notes if found else [*notes, "These records have no data for any plot."]


def _table(table: Table, counts: str) -> Section:
    blocks: list[Block] = [Words(f"{counts}; {first_note(table.rows)}.", note=True)]
    for cells in wide(table.rows, table.baseline):
        rows = list(zip(*cells.texts("**{}**").values(), strict=True))
        blocks.append(Grid(cells.title, list(cells.frame), rows))
    notes = [note.text for note in table.notes if note.kind != LEFT_OUT]
    return Section("Table", blocks, {"How the numbers were obtained": [Items(notes)]})


def _comparisons(table: Table) -> Section:
    found = summarize_comparisons(table)
    grid = Grid(found.summary, HEADS, found.tested, found.decided, 1)
    return Section("Comparisons", [grid, Items(found.notes, note=True)])


def _claims(claims: Sequence[ClaimText]) -> list[Section]:
    if not claims:
        return []
    rows = [(one.claim.id, one.claim.claim, f"**{one.verdict}**", one.evidence, one.claim.source) for one in claims]
    blocks: list[Block] = [Grid("", CLAIM_HEADS, rows), Items(PROTOCOL, note=True)]
    title = f"{plural(len(claims), 'claim')} of which this study measured any statement"
    return [Section("Claims", [], {title: blocks}, markdown=True)]


def _runs(table: Table) -> Section:
    """Return each run's seed, result and folder, by condition."""
    lines, names = [], examples_labels(table)
    for row in rows_of(table.rows):
        results = {seed: f": {number(value)}" for seed, value in row.each_seed.items()}
        runs = [
            f"seed {run.result.seed}{results.get(run.result.seed, '')} ({'/'.join(run.path.parts[-3:])})"
            for run in row.runs
        ]
        lines.append(f"{names[row.place]}, {row.label}: {', '.join(runs) or 'no finished run'}")
    return Section("Runs", [], {"Result and folder of each run": [Items(lines)]}, markdown=True)


def _protocol(table: Table) -> Section:
    """Return how each condition was measured; what several conditions share is listed once."""
    rows, names = rows_of(table.rows), examples_labels(table)
    facts = [measured_how(row) for row in rows]
    same = {key: text for key, text in facts[0].items() if all(own[key] == text for own in facts)}
    shared = same if len(rows) > 1 else {}
    keys = [key for key in facts[0] if key not in shared]
    lines = [
        [f"{names[row.place]}, {row.label}", *(own[key] for key in keys)] for row, own in zip(rows, facts, strict=True)
    ]
    folded: dict[str, list[Block]] = {
        "The same for all conditions": [Items([f"{key}: {text}" for key, text in shared.items()])],
        "What differs between conditions": [Grid("", ["condition", *keys], lines)],
    }
    return Section("Protocol", [], folded if shared else {"Each condition": folded.popitem()[1]})


def measured_how(condition: Condition) -> dict[str, str]:
    """Return how a condition was measured, read from the records of its runs."""
    runs, results, test_set = condition.runs, [run.result for run in condition.runs], condition.test
    environments = [environment for run in runs for environment in read_environments(run.path)]
    packages = [environment.versions for environment in environments]
    return {
        "checkpoint": _distinct(f"{r.checkpoint}, step {r.step:,}" if r.step else r.checkpoint for r in results),
        "decoding": _distinct(_decoding(r) for r in results),
        "test examples": _distinct(f"{scores.n:,}" for scores in whole_scores(condition)),
        "test evaluations": _distinct(run.test_reads().get(test_set, NOT_RECORDED) for run in runs),
        "overlap with training": _distinct(r.overlap.get(test_set, NOT_RECORDED) for r in results),
        "training examples": _distinct(f"{r.train_examples:,}" for r in results if r.train_examples),
        "parameters": _distinct(f"{r.parameters:,}" for r in results),
        "training seconds": _seconds([r.train_seconds for r in results]),
        "evaluation seconds": _seconds([r.evaluate_seconds for r in results]),
        "weights": _distinct(f"from run {r.reused_from[:8]}" if r.reused_from else "its own" for r in results),
        "device": _distinct(r.device for r in results),
        "versions": _distinct(", ".join(f"{name} {one[name]}" for name in PACKAGES if name in one) for one in packages),
        "data hash": _distinct(environment.data[:12] for environment in environments),
        "commit": _distinct((environment.commit or "")[:10] for environment in environments),
    }


def _distinct(values: Iterable[object]) -> str:
    """Return the distinct values; `unknown` if there are none."""
    return several(value for value in values if value not in ("", None)) or UNKNOWN


def _decoding(result: Result) -> str:
    decode = result.decode
    if decode.method != "beam":
        return decode.method
    return f"beam search, beam size {decode.beam_size}, length penalty {decode.length_penalty:g}"


def _seconds(values: Sequence[float]) -> str:
    """Return the median, and the range of several values."""
    if not values:
        return UNKNOWN
    span = f" ({min(values):,.0f} to {max(values):,.0f})" if len(values) > 1 else ""
    return f"{median(values):,.0f}{span}"


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
