"""The notes under a table: what its numbers are, how they were tested, how the runs were trained and evaluated."""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from tfstudy.analysis.frame import RunRecord, Study
from tfstudy.analysis.labels import Condition, preset_text
from tfstudy.analysis.published import SIGN_NOTE, Quotation
from tfstudy.analysis.summary import A_TEST_NEEDS, rows_of, test_set_labels
from tfstudy.grids.fairness import Contender, unequal_terms
from tfstudy.report.markup import count_range, plural, several
from tfstudy.runs.schema import SplitScores, metric_name

if TYPE_CHECKING:
    import pandas as pd

UNTESTED = "nothing is tested"
MAX_LISTED = 5  # parts of a note
NOTABLE = 0.01  # share of outputs that were cut
SPREADS = {"sd": "standard deviation", "sem": "standard error", "ci95": "95 % interval"}
EXPLAINED = (  # columns, by key, and what they are
    (
        ["oracle_length"],
        "oracle length, EOS forbidden: exact match if no output can end before the length of the target, where it is "
        "stopped; not the share of outputs that are right up to that length, with what follows cut off",
    ),
    (["L90", "L50"], "L90, L50: longest length up to which 90 % and 50 % are correct, median over seeds"),
)
# kinds of notes; warnings, and what is left out, are shown under every table
MEAN, TESTS, CONDITIONS, COLUMNS, PUBLISHED, RUNS, WARNING, LEFT_OUT = (
    "mean", "tests", "conditions", "columns", "published", "runs", "warning", "left out",
)  # fmt: skip


class Note(NamedTuple):
    """A line under a table."""

    kind: str
    text: str


def table_notes(
    study: Study, conditions: "pd.DataFrame", pairs: "pd.DataFrame", columns: Collection[str],
    quoted: Sequence[Quotation],
) -> list[Note]:  # fmt: skip
    """Return the notes under a table of these conditions with these columns, by key, and these published figures."""
    rows = rows_of(conditions)
    runs = list({run.path: run for one in rows for run in (*one.runs, *one.diverged)}.values())
    metrics = list(dict.fromkeys(conditions["metric"]))
    single = "none for a single seed"
    if "exact_match" in metrics:
        single = "for a single seed, or seeds with equal results, the Wilson interval over test examples"
    mean = (
        f"{several(map(metric_name, metrics))} on test sets, in percent: mean over seeds with its 95 % confidence "
        f"interval (Student's t; {single})"
    )
    about = [*_trivial_systems(rows, metrics), *_cut_outputs(rows), *_presets(rows)]
    explained = [text for keys, text in EXPLAINED if {*keys} & {*columns}]
    if "seconds" in columns:
        devices = several(run.result.device for run in runs)
        machine = "comparable only on the same, otherwise idle machine"
        explained.append(f"seconds: training time on {devices}, median over runs; {machine}")
    sources = source_notes(quoted)
    if quoted:
        sources.insert(
            0,
            "published: same metric, test set and kind of network, one figure of each paper (under the settings of a "
            "preset if it has one, else its highest)",
        )
    kinds = {
        MEAN: [mean], TESTS: _tests(rows, pairs, "difference" in columns), CONDITIONS: about, COLUMNS: explained,
        PUBLISHED: sources,
    }  # fmt: skip
    notes = [Note(kind, text) for kind, texts in kinds.items() for text in texts]
    return [*notes, *_terms(rows), *_runs(runs, rows), *(Note(LEFT_OUT, text) for text in study.left_out_notes())]


def first_notes(first: str, notes: Sequence[Note], quoted: Sequence[Quotation]) -> list[str]:
    """Return at most four notes: what the numbers are, what is wrong with runs, which are left out, and the sources."""
    warnings = [note.text for note in notes if note.kind == WARNING]
    sources = sorted({f"[{one.figure.paper}] {one.figure.citation}" for one in quoted})
    untested = [note.text for note in notes if note.kind == TESTS and note.text.startswith(UNTESTED)]
    left_out = [note.text for note in notes if note.kind == LEFT_OUT]
    lines = [first, "; ".join([*untested, *warnings]), "; ".join(left_out), "; ".join([*sign_notes(quoted), *sources])]
    return list(filter(None, lines))


def sign_notes(quoted: Sequence[Quotation]) -> list[str]:
    """Return what the sign of other settings means, if a published figure has it."""
    return [SIGN_NOTE] * any(not one.same_settings for one in quoted)


def first_note(rows: "pd.DataFrame", with_letters: bool = True) -> str:
    """Return what the numbers of a table with these rows are."""
    seeds = count_range([len(runs) for runs in rows["runs"]], "seed")
    metrics = several(map(metric_name, rows["metric"]))
    shared = (
        "; conditions on the same examples that share a letter do not differ significantly (q < .05), bold: the best"
    )
    letters = shared * (with_letters and any(rows["letters"]))
    q = "; q: p adjusted for the number of comparisons (Benjamini-Hochberg)" * any(rows["baseline"])
    return f"{metrics} in percent, mean over {seeds} [95 % interval]{letters}{q}"


def _tests(rows: Sequence[Condition], pairs: "pd.DataFrame", with_differences: bool) -> list[str]:
    tested = pairs[pairs["tested"].astype(bool)]
    if tested.empty:
        return [f"{UNTESTED}: {A_TEST_NEEDS}"] if len(pairs) else []
    first = [rows[index] for index in tested["first"]]
    several_amounts = len({one.family for one in first}) > len({one.place for one in first})
    amount = " and with the same amount of training data" * several_amounts
    lines = [
        f"group: conditions on the same examples{amount} that share a letter do not differ significantly "
        f"({several(tested['method'])}, two-sided, q < .05: p adjusted for {plural(len(tested), 'comparison')} by "
        "Benjamini-Hochberg); bold: not significantly different from the best, on test sets where others are"
    ]
    if with_differences:
        lines.append("differences: with plain 95 % intervals; a verdict goes by q, which counts all comparisons")
    return lines


def _runs(runs: Sequence[RunRecord], rows: Sequence[Condition]) -> list[Note]:
    """Return how the runs were trained and evaluated, and as warnings which diverged and which are outdated."""
    results, finished = [run.result for run in runs], [run for run in runs if run.finished]
    reads = [count for run in finished for count in run.test_reads().values()]
    read_note = "each test set was evaluated once per run" if reads else "number of test evaluations unknown"
    if repeated := sum(count > 1 for count in reads):
        read_note = (
            f"{repeated} of {len(reads)} test sets were evaluated up to {max(reads)} times (after a stop or on request)"
        )
    tests = sum(scores.role == "test" for run in finished for scores in run.result.splits.values())
    overlaps = sum(run.result.overlap.get(name, 0) for run in finished for name in run.result.splits)
    overlap = (
        f"{'WARNING: ' * bool(overlaps)}held-out examples whose source occurs in training: {overlaps:,} "
        f"(in {plural(tests, 'evaluated test set')})"
    )
    hours = sum(r.seconds for r in results) / 3600
    used = [environment.versions for run in runs for environment in run.environments]
    versions = {f"{name} {one[name]}" for one in used for name in ("torch", "lightning") if name in one}
    # the signature of each metric; where corpora differ, each signature with its corpora
    signatures: dict[str, dict[str, set[str]]] = {}
    for result in results:
        for name, signature in result.signatures.items():
            signatures.setdefault(name, {}).setdefault(signature, set()).add(result.corpus or result.split)
    of_all = f"of {plural(len(runs), 'run')}"
    # outdated and current runs are different conditions
    outdated = Counter(filter(None, ("; ".join(run.outdated()) for run in runs)))
    missing = Counter(filter(None, (run.missing_plugin() for run in runs)))
    diverged = len(runs) - len(finished)
    texts = {
        RUNS: [
            f"checkpoint: {several(r.checkpoint for r in results)}; decoding: "
            f"{several(r.decode.method for r in results)}, free-running until EOS; {read_note}",
            *([] if overlaps else [overlap]),
            f"{plural(len(runs), 'run')}, {count_range([len(one.runs) for one in rows], 'seed')} per condition; "
            f"{several(r.device for r in results)}; {hours:.1f} device hours of training and evaluation; "
            + (", ".join(sorted(versions, reverse=True)) or "versions unknown"),
            *(
                f"{name}: " + "; ".join(text + f" ({several(where)})" * (len(own) > 1) for text, where in own.items())
                for name, own in signatures.items()
            ),
        ],
        WARNING: [
            *([overlap] if overlaps else []),
            *([f"{plural(diverged, 'run')} diverged, without results; {A_TEST_NEEDS}"] if diverged else []),
            *(f"{n} {of_all} outdated: {reason} (`tfstudy result RUN --changes`)" for reason, n in outdated.items()),
            *(f"{n} {of_all} not compared with the current code: {plugin}" for plugin, n in missing.items()),
        ],
    }
    return [Note(kind, text) for kind, own in texts.items() for text in own]


def source_notes(quoted: Iterable[Quotation]) -> list[str]:
    """Return a line for each paper: its key, authors, year, where its figures are printed, and what follows their ±."""
    places: dict[str, dict[str, None]] = {}
    for figure in (one.figure for one in quoted):
        arxiv = f", arXiv {figure.arxiv}" * bool(figure.arxiv)
        quoted_in = f", quoted in {figure.quoted_from}" * bool(figure.quoted_from)
        place = figure.place
        if figure.spread is not None:
            seeds = f" of {plural(figure.n, 'seed')}" if figure.n else ""
            place += f" (±: {SPREADS.get(figure.spread_kind, 'not explained')}{seeds})"
        elif figure.value_kind == "single":
            place += " (one run)"
        places.setdefault(f"[{figure.paper}] {figure.citation}{arxiv}{quoted_in}", {})[place] = None
    return [f"{citation}: {'; '.join(places[citation])}" for citation in sorted(places)]


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
        share = sum(one.limit_hits for one in scores) / max(1, sum(one.n for one in scores))
        if share > NOTABLE:
            cut.append(f"{names[row.place]} {row.label} {100 * share:.0f} %")
    return [f"outputs cut at the maximum number of tokens: {_first(cut)}"] if cut else []


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
    return [f"settings that differ from today's presets, beside those in the names: {_first(parts)}"] if parts else []


def _first(listed: Sequence[str]) -> str:
    """Return the first of these texts, and how many more there are."""
    more = f"; and {len(listed) - MAX_LISTED} more" if len(listed) > MAX_LISTED else ""
    return "; ".join(listed[:MAX_LISTED]) + more
