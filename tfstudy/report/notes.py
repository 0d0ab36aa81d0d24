"""The notes under a table: what its numbers are, how they were tested, how the runs were trained and evaluated."""

from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from tfstudy.analysis.frame import RunRecord, Study
from tfstudy.analysis.labels import Condition, preset_text
from tfstudy.analysis.published import SIGN_NOTE
from tfstudy.analysis.summary import A_TEST_NEEDS, rows_of, test_set_labels
from tfstudy.errors import some
from tfstudy.grids.fairness import Contender, unequal_terms
from tfstudy.report.markup import count_range, plural, several
from tfstudy.runs.schema import SplitScores, metric_name

if TYPE_CHECKING:
    import pandas as pd

MAX_LISTED = 5  # parts of a note
_some = partial(some, most=MAX_LISTED, separator="; ", last="; and ")
NOTABLE = 0.01  # share of outputs that were cut
SPREADS = {"sd": "standard deviation", "sem": "standard error", "ci95": "95 % interval"}
ABOUT, WARNING, LEFT_OUT = "about", "warning", "left out"  # kinds; ABOUT with --notes only


class Note(NamedTuple):
    """A line under a table."""

    kind: str
    text: str


def table_notes(study: Study, table: "pd.DataFrame", pairs: "pd.DataFrame", differences: bool) -> list[Note]:
    """Return the notes under a table with these rows, with or without the differences from a baseline."""
    rows = rows_of(table)
    runs = list({run.path: run for one in rows for run in (*one.runs, *one.diverged)}.values())
    metrics = list(dict.fromkeys(table["metric"]))
    single = "none for a single seed"
    if "exact_match" in metrics:
        single = "for a single seed, or seeds with equal results, the Wilson interval over test examples"
    mean = (
        f"{several(map(metric_name, metrics))} on test sets, in percent: mean over seeds with its 95 % confidence "
        f"interval (Student's t; {single})"
    )
    about = [*_trivial_systems(rows, metrics), *_cut_outputs(rows), *_presets(rows), *_sources(table)]
    left_out = (Note(LEFT_OUT, text) for text in study.left_out_notes())
    notes = [Note(ABOUT, mean), *_tests(rows, pairs, differences), *(Note(ABOUT, text) for text in about)]
    return [*notes, *_terms(rows), *_training(runs, rows), *_warnings(runs), *left_out]


def first_note(rows: "pd.DataFrame") -> str:
    """Return what the numbers of a table with these rows are."""
    seeds = count_range([len(runs) for runs in rows["runs"]], "seed")
    shared = (
        "; conditions on the same examples that share a letter do not differ significantly (q < .05); bold: not "
        "significantly below the best"
    )
    adjusted = "; q: p adjusted for the number of comparisons (Benjamini-Hochberg), bold where significant"
    more = shared * any(rows["letters"]) + adjusted * any(rows["baseline"])
    return f"{several(map(metric_name, rows['metric']))} in percent, mean over {seeds} [95 % interval]{more}"


def shown_notes(rows: "pd.DataFrame", notes: Sequence[Note], every: bool = False) -> list[str]:
    """Return what a reader of a table needs first, in at most four lines, or all notes.

    First are what the numbers are, what is wrong with runs, which runs are left out, and the sources.
    """
    quoted = [one for own in rows["published"] for one in own]
    sign = [SIGN_NOTE] * any(not one.same_settings for one in quoted)
    if every:
        return [*sign, *(note.text for note in notes)]
    warnings, left_out = ([note.text for note in notes if note.kind == kind] for kind in (WARNING, LEFT_OUT))
    sources = sorted({f"[{one.figure.paper}] {one.figure.citation}" for one in quoted})
    return list(filter(None, [first_note(rows), *map("; ".join, (warnings, left_out, [*sign, *sources]))]))


# On the statistics, and on what was published


def _tests(rows: Sequence[Condition], pairs: "pd.DataFrame", differences: bool) -> list[Note]:
    tested = pairs[pairs["tested"].astype(bool)]
    if tested.empty:
        return [Note(WARNING, f"nothing is tested: {A_TEST_NEEDS}")] if len(pairs) else []
    first = [rows[index] for index in tested["first"]]
    several_amounts = len({one.family for one in first}) > len({one.place for one in first})
    amount = " and with the same amount of training data" * several_amounts
    letters = (
        f"group: conditions on the same examples{amount} that share a letter do not differ significantly "
        f"({several(tested['method'])}, two-sided, q < .05: p adjusted for {plural(len(tested), 'comparison')} by "
        "Benjamini-Hochberg); bold: not significantly different from the best, on test sets where others are"
    )
    intervals = "differences: with plain 95 % intervals; a verdict goes by q, which counts all comparisons"
    return [Note(ABOUT, text) for text in (letters, *[intervals] * differences)]


def _sources(table: "pd.DataFrame") -> list[str]:
    """Return how figures were chosen, and of each paper its key, authors, year, where they are, and what their ± is."""
    places: dict[str, dict[str, None]] = {}
    for figure in (one.figure for own in table["published"] for one in own):
        arxiv = f", arXiv {figure.arxiv}" * bool(figure.arxiv)
        quoted_in = f", quoted in {figure.quoted_from}" * bool(figure.quoted_from)
        place = figure.place
        if figure.spread is not None:
            seeds = f" of {plural(figure.n, 'seed')}" if figure.n else ""
            place += f" (±: {SPREADS.get(figure.spread_kind, 'not explained')}{seeds})"
        elif figure.value_kind == "single":
            place += " (one run)"
        places.setdefault(f"[{figure.paper}] {figure.citation}{arxiv}{quoted_in}", {})[place] = None
    chosen = (
        "published: same metric, test set and kind of network, one figure of each paper (under the settings of a "
        "preset if it has one, else its highest)"
    )
    return [*[chosen] * bool(places), *(f"{citation}: {'; '.join(places[citation])}" for citation in sorted(places))]


# On runs


def _training(runs: Sequence[RunRecord], rows: Sequence[Condition]) -> list[Note]:
    """Return how the runs were trained and evaluated."""
    results, finished = [run.result for run in runs], [run for run in runs if run.finished]
    reads = [count for run in finished for count in run.test_reads.values()]
    read_note = "each test set was evaluated once per run" if reads else "number of test evaluations unknown"
    if repeated := sum(count > 1 for count in reads):
        read_note = (
            f"{repeated} of {len(reads)} test sets were evaluated up to {max(reads)} times (after a stop or on request)"
        )
    held_out = sum(len(run.result.splits) for run in finished)
    overlaps = sum(run.result.overlap.get(name, 0) for run in finished for name in run.result.splits)
    hours = sum(r.seconds for r in results) / 3600
    used = [environment.versions for run in runs for environment in run.environments]
    versions = {f"{name} {one[name]}" for one in used for name in ("torch", "lightning") if name in one}
    # the signature of each metric; where corpora differ, each signature with its corpora
    signatures: dict[str, dict[str, set[str]]] = {}
    for result in results:
        for name, signature in result.signatures.items():
            signatures.setdefault(name, {}).setdefault(signature, set()).add(result.corpus or result.split)
    texts = [
        f"checkpoint: {several(r.checkpoint for r in results)}; decoding: "
        f"{several(r.decode.method for r in results)}, free-running until EOS; {read_note}",
        f"{plural(len(runs), 'run')}, {count_range([len(one.runs) for one in rows], 'seed')} per condition; "
        f"{several(r.device for r in results)}; {hours:.1f} device hours of training and evaluation; "
        + (", ".join(sorted(versions, reverse=True)) or "versions unknown"),
        *(
            f"{name}: " + "; ".join(text + f" ({several(where)})" * (len(own) > 1) for text, where in own.items())
            for name, own in signatures.items()
        ),
    ]
    notes, evaluated = [Note(ABOUT, text) for text in texts], plural(held_out, "evaluated split")
    overlap = f"held-out examples whose source occurs in training: {overlaps:,} (in {evaluated})"
    place, kind, warning = (len(notes), WARNING, "WARNING: ") if overlaps else (1, ABOUT, "")
    notes.insert(place, Note(kind, warning + overlap))
    return notes


def _warnings(runs: Sequence[RunRecord]) -> list[Note]:
    """Return which runs diverged and which are outdated; these and current runs are different conditions."""
    outdated = Counter(filter(None, ("; ".join(run.outdated()) for run in runs)))
    missing = Counter(filter(None, (run.missing_plugin() for run in runs)))
    diverged, of_all = sum(not run.finished for run in runs), f"of {plural(len(runs), 'run')}"
    texts = [
        *([f"{plural(diverged, 'run')} diverged, without results; {A_TEST_NEEDS}"] if diverged else []),
        *(f"{n} {of_all} outdated: {reason} (`tfstudy result RUN --changes`)" for reason, n in outdated.items()),
        *(f"{n} {of_all} not compared with the current code: {plugin}" for plugin, n in missing.items()),
    ]
    return [Note(WARNING, text) for text in texts]


# On conditions


def whole_scores(condition: Condition) -> list[SplitScores]:
    """Return what each run measured on the test set of a condition; nothing for some of its examples."""
    scores = [run.result.splits.get(condition.test) for run in condition.runs]
    return [] if condition.tag else [one for one in scores if one and one.n]


def _trivial_systems(rows: Sequence[Condition], metrics: Sequence[str]) -> list[str]:
    """Return the metrics of trivial systems in percent on each test set, as ranges where runs differ in them."""
    names, found = test_set_labels(rows), dict[str, dict[str, dict[str, list[float]]]]()
    for row in rows:
        for system, measured in (one for scores in whole_scores(row) for one in scores.baselines.items()):
            own = found.setdefault(names[row.place], {}).setdefault(system, {})
            for metric in dict.fromkeys((*metrics, "chrf")):
                if metric in measured:
                    own.setdefault(metric_name(metric), []).append(100 * measured[metric])

    def text(name: str, values: Sequence[float]) -> str:
        return f"{name} {'-'.join(dict.fromkeys(f'{end:.1f}' for end in (min(values), max(values))))}"

    parts = [
        f"{at}: " + "; ".join(f"{name} {', '.join(map(text, own, own.values()))}" for name, own in systems.items())
        for at, systems in found.items()
    ]
    return [f"trivial systems on {part}" for part in parts]


def _cut_outputs(rows: Sequence[Condition]) -> list[str]:
    """Return which conditions had more than 1 % of their outputs cut at the maximum number of tokens."""
    cut, names = [], test_set_labels(rows)
    for row in rows:
        scores = whole_scores(row)
        if (share := sum(one.limit_hits for one in scores) / max(1, sum(one.n for one in scores))) > NOTABLE:
            cut.append(f"{names[row.place]} {row.label} {100 * share:.0f} %")
    return [f"outputs cut at the maximum number of tokens: {_some(cut)}"] if cut else []


def _terms(rows: Sequence[Condition]) -> list[Note]:
    """Return warnings if compared architectures differ in parameters, steps, batches, tuning or amounts of data."""
    places = [" ".join(filter(None, (row.task, row.split, row.corpus))) for row in rows]
    found = [Contender(at, r.arch, r.config, r.parameters, r.preset) for at, r in zip(places, rows, strict=True)]
    return [Note(WARNING, text) for text in unequal_terms(found)]


def _presets(rows: Sequence[Condition]) -> list[str]:
    """Return which settings differ from the presets as they are now, besides those in the names of conditions."""
    differing: dict[str, set[str]] = {}
    for row in rows:
        if (text := preset_text(row)) != f"preset {row.preset}":
            differing.setdefault(text, set()).add(row.arch)
    parts = [f"{several(archs)}: {text}" for text, archs in differing.items()]
    return [f"settings that differ from today's presets, beside those in the names: {_some(parts)}"] if parts else []
