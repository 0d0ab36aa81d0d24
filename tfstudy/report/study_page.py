"""The report of a study as blocks: what was studied, the verdict, table, comparisons, figures, claims, protocol."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import median

import pandas as pd

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
from tfstudy.report.page import Block, Grid, Page, Picture, Section
from tfstudy.report.plots import all_plots
from tfstudy.report.tables import Table, build_table, wide
from tfstudy.runs.schema import metric_name

MAX_NAMED = 20  # runs that are left out for the same reason
MAX_LISTED = 8  # tasks, split schemes or architectures
MAX_PLOTTED = 200  # conditions
MAX_PLOTTED_RUNS = 2000
CLAIM_HEADS = ("id", "claim", "verdict", "evidence", "source")
PACKAGES = ("python", "torch", "lightning")  # that affect results most
UNKNOWN, NOT_RECORDED = "unknown", "not recorded"


def write_report(
    study: Study, out: Path, claims: Sequence[ClaimText] = (), metric: str = "", baseline: str = ""
) -> Page:
    """Write the report of a study to a folder (see `page.publish`); `UserError`, and nothing is written, otherwise."""
    page = build_page(study, claims, metric, baseline)
    pages.publish(page, out)
    return page


def build_page(study: Study, claims: Sequence[ClaimText] = (), metric: str = "", baseline: str = "") -> Page:
    """Return the report on a study; `UserError` for unknown names."""
    table = build_table(study, conditions(study.runs, metric=metric), baseline)
    rows, compared = rows_of(table.rows), summarize_comparisons(table)
    unfinished = sum(reason == UNFINISHED for _, reason in study.left_out)
    figures, notes = _figures(study, len(rows))
    main = [figure for figure in figures if figure.name == "split"]  # at the top
    seeds = count_range([len(row.runs) for row in rows], "seed")
    counts = f"{plural(len(study.runs), 'run')}, {plural(len(rows), 'condition')}, {seeds} per condition"
    left_out = study.left_out_notes(MAX_NAMED)
    for run in study.runs:
        if not run.finished:
            reason = run.result.reason or "reason not recorded"
            left_out.append(f"{'/'.join(run.path.parts[-3:])} diverged: {reason}")
    grids = [
        Grid(cells.title, list(cells.frame), list(zip(*cells.texts("**{}**").values(), strict=True)))
        for cells in wide(table.rows, table.baseline)
    ]
    explained = [note.text for note in table.notes if note.kind != LEFT_OUT]
    sections = [
        Section("Verdict", [*verdict(table), *main]),
        Section(
            "Table", [f"{counts}; {first_note(table.rows)}.", *grids], {"How the numbers were obtained": [explained]}
        ),
        Section(
            "Comparisons", [Grid(compared.summary, HEADS, compared.tested, compared.decided, 1), [*compared.notes]]
        ),
        Section("Figures", [*notes, *(one for one in figures if one not in main)]),
        *_claims(claims),
        Section("Runs", [], {"Result and folder of each run": [_runs(table)]}),
        Section("Protocol", [], _protocol(table)),
        Section("Left out", [left_out or "None: every run of this study is in the table."]),
    ]
    warning = f"{plural(unfinished, 'run')} not finished. Results may change." if unfinished else ""
    about = f"{grid_about(study)} {summarize_study(study, rows)}".strip()
    return Page(study.root.resolve().name, about, warning, counts, sections, left_out, __version__)


def _figures(study: Study, count: int) -> tuple[list[Picture], list[str]]:
    """Return all plots of the study, one for each instrument with saved measurements, and what is not shown."""
    if count > MAX_PLOTTED or len(study.runs) > MAX_PLOTTED_RUNS:
        limits = f"{MAX_PLOTTED} conditions or {MAX_PLOTTED_RUNS:,} runs"
        return [], [f"No figures for more than {limits}; use `tfstudy plot` for single plots."]
    from tfstudy.report.plots.instruments import measurement

    measured, notes = saved_measurements(study.runs)
    plots = [*all_plots(study), *(measurement(name, own) for name, own in measured.items())]
    found = [Picture(plot.name, plot.alt, plot.encode(".svg").decode()) for plot in plots]
    return found, notes if found else [*notes, "These records have no data for any plot."]


def _claims(claims: Sequence[ClaimText]) -> list[Section]:
    rows = [(one.claim.id, one.claim.claim, f"**{one.verdict}**", one.evidence, one.claim.source) for one in claims]
    title = f"{plural(len(claims), 'claim')} of which this study measured any statement"
    return [Section("Claims", [], {title: [Grid("", CLAIM_HEADS, rows), [*PROTOCOL]]})] if claims else []


def _runs(table: Table) -> list[str]:
    """Return each run's seed, result and folder, by condition."""
    lines, names = [], examples_labels(table)
    for row in rows_of(table.rows):
        results = {seed: f": {number(value)}" for seed, value in row.each_seed.items()}
        runs = [
            f"seed {run.result.seed}{results.get(run.result.seed, '')} ({'/'.join(run.path.parts[-3:])})"
            for run in row.runs
        ]
        lines.append(f"{names[row.place]}, {row.label}: {', '.join(runs) or 'no finished run'}")
    return lines


def _protocol(table: Table) -> dict[str, list[Block]]:
    """Return how each condition was measured; what several conditions share is listed once."""
    rows, names = rows_of(table.rows), examples_labels(table)
    facts = pd.DataFrame([measured_how(row) for row in rows], [f"{names[row.place]}, {row.label}" for row in rows])
    shared = (facts.nunique() == 1) & (len(rows) > 1)
    cells = facts.loc[:, ~shared].reset_index().to_numpy().tolist()
    grid = Grid("", ["condition", *facts.columns[~shared]], cells)
    if not shared.any():
        return {"Each condition": [grid]}
    same = [f"{key}: {text}" for key, text in facts.loc[:, shared].iloc[0].items()]
    return {"The same for all conditions": [same], "What differs between conditions": [grid]}


def measured_how(condition: Condition) -> dict[str, str]:
    """Return how a condition was measured, read from the records of its runs."""
    runs, results, test_set = condition.runs, [run.result for run in condition.runs], condition.test
    environments = [environment for run in runs for environment in run.environments]
    packages = [environment.versions for environment in environments]
    beam = "{0.method} search, beam size {0.beam_size}, length penalty {0.length_penalty:g}"
    seconds = [result.train_seconds for result in results]
    return {
        "checkpoint": _distinct(f"{r.checkpoint}, step {r.step:,}" if r.step else r.checkpoint for r in results),
        "decoding": _distinct((beam if r.decode.method == "beam" else "{0.method}").format(r.decode) for r in results),
        "test examples": _distinct(f"{scores.n:,}" for scores in whole_scores(condition)),
        "test evaluations": _distinct(run.test_reads().get(test_set, NOT_RECORDED) for run in runs),
        "overlap with training": _distinct(r.overlap.get(test_set, NOT_RECORDED) for r in results),
        "training examples": _distinct(f"{r.train_examples:,}" for r in results if r.train_examples),
        "parameters": _distinct(f"{r.parameters:,}" for r in results),
        "training seconds (median)": f"{median(seconds):,.0f}" if seconds else UNKNOWN,
        "weights": _distinct(f"from run {r.reused_from[:8]}" if r.reused_from else "its own" for r in results),
        "device": _distinct(r.device for r in results),
        "versions": _distinct(", ".join(f"{name} {one[name]}" for name in PACKAGES if name in one) for one in packages),
        "data hash": _distinct(environment.data[:12] for environment in environments),
        "commit": _distinct((environment.commit or "")[:10] for environment in environments),
    }


def _distinct(values: Iterable[object]) -> str:
    """Return the distinct values; `unknown` if there are none."""
    return several(value for value in values if value not in ("", None)) or UNKNOWN


# What was studied


def summarize_study(study: Study, rows: Sequence[Condition]) -> str:
    """Return the facts of the records: `60 runs of scan; 4 split schemes (...); 3 architectures (...); 5 seeds ...`."""
    results = [run.result for run in study.runs]
    sizes = sorted({one.parameters for one in results} - {0})  # 0 in records without sizes
    ends = " to ".join(dict.fromkeys(map(short_number, (sizes[0], sizes[-1])))) if sizes else ""
    steps = [steps for row in rows if (steps := int(row.config.get("train.steps", 0)))]
    parts = [
        f"{plural(len(results), 'run')} of {listed(sorted({one.task for one in results}), MAX_LISTED)}",
        _named("split scheme", {one.split for one in results}),
        _named("architecture", {one.arch for one in results}) + f" of {ends} parameters" * bool(ends),
        f"{count_range([len(row.runs) for row in rows], 'seed')} per condition",
        count_range(steps, "training step") if steps else "",
    ]
    measured = listed(dict.fromkeys(metric_name(row.metric) for row in rows), MAX_LISTED)
    return f"{'; '.join(filter(None, parts))}. Results are {measured} on test sets, from 0 to 100."


def grid_about(study: Study) -> str:
    """Return what the file of a grid says of it, `Grid scan: ...`; empty unless the runs were started by one grid."""
    known = grid_names()
    commands = (entry.arguments for run in study.runs for entry in run.environments[:1])
    used = {words[1] for words in commands if words[:1] == ["grid"] and len(words) > 1 and words[1] in known}
    if len(used) != 1:
        return ""
    [name] = used
    try:
        about = " ".join(str(read_grid(name).get("about") or "").replace("`", "").split())
    except UserError:
        return ""
    return f"Grid {name}: {about.rstrip('.')}." if about else ""


def _named(noun: str, values: Iterable[str]) -> str:
    """Return `split scheme length`, or `2 split schemes (length, simple)`."""
    names = sorted(values)
    return f"{noun} {names[0]}" if len(names) == 1 else f"{plural(len(names), noun)} ({listed(names, MAX_LISTED)})"
