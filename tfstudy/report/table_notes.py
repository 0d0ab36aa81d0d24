"""The notes under a table: what its numbers are, how they were tested, how the runs were trained and evaluated.

And on its conditions: trivial systems, outputs that were cut, sizes, and settings that differ from the presets.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from tfstudy import models, tasks
from tfstudy.analysis.comparisons import A_TEST_NEEDS, Comparison
from tfstudy.analysis.conditions import Condition, preset_beside_label, preset_text, test_set_label
from tfstudy.analysis.counterparts import SIGN_NOTE, Quotation
from tfstudy.analysis.frame import RunRecord, Study
from tfstudy.config.presets import preset
from tfstudy.report.markup import count_range, plural, several
from tfstudy.runs.display import metric_name
from tfstudy.runs.reader import read_environments
from tfstudy.runs.schema import SplitScores

TOLERANCE = 0.05  # relative difference of parameters up to which sizes count as equal
MAX_LISTED = 5  # parts of a note
MAX_TEST_SETS = 8  # that have a note of their own on trivial systems
NOTABLE = 0.01  # share of outputs that were cut
SPREADS = {"sd": "standard deviation", "sem": "standard error", "ci95": "95 % interval"}
EXPLAINED = (  # columns, by key, and what they are
    (["oracle_length"], "oracle length: exact match of outputs that are stopped at the length of the target"),
    (["L90", "L50"], "L90, L50: longest length up to which 90 % and 50 % are correct, median over seeds"),
)


def table_notes(
    study: Study,
    conditions: Sequence[Condition],
    metrics: Mapping[str, str],
    comparisons: Sequence[Comparison],
    columns: Collection[str],
    quoted: Sequence[Quotation],
) -> list[str]:
    """Return the notes under a table with these columns, by key, and these published figures."""
    runs = list({id(run): run for condition in conditions for run in condition.every_run}.values())
    names = several(metric_name(metric) for metric in metrics.values())
    single = "none for a single seed"
    if "exact_match" in metrics.values():
        single = "for a single seed, or seeds with equal results, the Wilson interval over test examples"
    notes = [
        f"{names} on test sets, in percent: mean over seeds with the 95 % confidence interval of this mean alone "
        f"(Student's t for fewer than 10 seeds, studentised bootstrap otherwise; {single})",
        *_test_notes(comparisons, "difference" in columns),
        *_trivial_notes(conditions, metrics),
        *_limit_note(conditions),
        *_size_note(conditions),
        *_preset_notes(conditions),
        *(text for keys, text in EXPLAINED if {*keys} & {*columns}),
    ]
    if "seconds" in columns:
        devices = several(run.result.device for run in runs)
        notes.append(
            f"seconds: training time on {devices}, median over runs; comparable only on the same, otherwise idle "
            "machine"
        )
    if quoted:
        signed = f"; {SIGN_NOTE}" * any(not one.same_settings for one in quoted)
        notes.append(
            "published: same metric, test set and kind of network, one figure of each paper (under the settings of a "
            f"preset if it has one, else its highest){signed}"
        )
    notes += [*source_notes(quoted), *_run_notes(runs, conditions)]
    if diverged := sum(not run.finished for run in runs):
        notes.append(f"{plural(diverged, 'run')} diverged, without results; {A_TEST_NEEDS}")
    # outdated and current runs are different conditions
    outdated = Counter(filter(None, ("; ".join(run.outdated()) for run in runs)))
    missing = Counter(filter(None, (run.missing_plugin() for run in runs)))
    of_all = f"of {plural(len(runs), 'run')}"
    notes += [f"{n} {of_all} outdated: {reason} (`tfstudy result RUN --changes`)" for reason, n in outdated.items()]
    notes += [f"{n} {of_all} not compared with the current code: {plugin}" for plugin, n in missing.items()]
    return [*notes, *study.left_out_notes()]


def _test_notes(comparisons: Sequence[Comparison], with_differences: bool) -> list[str]:
    tested = [comparison for comparison in comparisons if comparison.tested]
    if not tested:
        return [f"nothing is tested: {A_TEST_NEEDS}"] if comparisons else []
    methods = several(comparison.difference.method for comparison in tested)
    several_amounts = len({c.first.comparison_key for c in tested}) > len({c.first.examples_key for c in tested})
    amount = " and with the same amount of training data" * several_amounts
    lines = [
        f"group: conditions on the same examples{amount} that share a letter do not differ significantly "
        f"({methods}, two-sided, p < .05 after Bonferroni correction for {plural(len(tested), 'comparison')}); bold: "
        "not significantly different from the best, on test sets where others are"
    ]
    if with_differences:
        lines.append(
            "differences: with simultaneous 95 % intervals, corrected like p, so that an interval excludes 0 if and "
            "only if p < .05"
        )
    normal = [comparison.difference for comparison in tested if comparison.difference.assumes_normality]
    if normal:
        limited = sum(bool(difference.note) for difference in normal)  # for so many there was no other test
        few = "with so few seeds" + " and so many comparisons" * (len(tested) > 1)
        which = "no test" if limited == len(normal) else f"in {limited} of them no test"
        reason = f": {few}, {which} without this assumption could find a difference" * bool(limited)
        who = f"{len(normal)} of {plural(len(tested), 'test')} assume" if len(tested) > 1 else "the test assumes"
        lines.append(f"{who} normally distributed results{reason}")
    return lines


def _run_notes(runs: Sequence[RunRecord], conditions: Sequence[Condition]) -> list[str]:
    results, seeds = [run.result for run in runs], [len(condition.runs) for condition in conditions]
    finished = [run for run in runs if run.finished]
    reads = [count for run in finished for count in run.test_reads().values()]
    read_note = "number of test evaluations unknown"
    if reads:
        repeated, most = sum(count > 1 for count in reads), max(reads)
        read_note = (
            f"{repeated} of {len(reads)} test sets were evaluated up to {most} times (after a stop or on request)"
            if repeated
            else "each test set was evaluated once per run"
        )
    tests = sum(scores.role == "test" for run in finished for scores in run.result.splits.values())
    overlaps = sum(run.result.overlap.get(name, 0) for run in finished for name in run.result.splits)
    hours = sum(r.seconds for r in results) / 3600
    used = [environment.versions for run in runs for environment in read_environments(run.path)]
    versions = {f"{name} {one[name]}" for one in used for name in ("torch", "lightning") if name in one}
    versions_note = ", ".join(sorted(versions, reverse=True)) or "versions unknown"
    # the signature of each metric; where corpora differ, each signature with its corpora
    signatures: dict[str, dict[str, dict[str, None]]] = {}
    for result in results:
        for name, signature in result.signatures.items():
            signatures.setdefault(name, {}).setdefault(signature, {})[result.corpus or result.split] = None
    return [
        f"checkpoint: {several(r.checkpoint for r in results)}; decoding: "
        f"{several(r.decode.method for r in results)}, free-running until EOS; {read_note}",
        f"{'WARNING: ' * bool(overlaps)}held-out examples whose source occurs in training: {overlaps:,} "
        f"(in {plural(tests, 'evaluated test set')})",
        f"{plural(len(runs), 'run')}, {count_range(seeds, 'seed')} per condition; "
        f"{several(r.device for r in results)}; {hours:.1f} device hours of training and evaluation; {versions_note}",
        *(
            f"{name}: " + "; ".join(f"{text}{f' ({several(places)})' * (len(own) > 1)}" for text, places in own.items())
            for name, own in signatures.items()
        ),
    ]


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


def _trivial_notes(conditions: Sequence[Condition], metrics: Mapping[str, str]) -> list[str]:
    """Return the metrics of trivial systems that the runs recorded, for each test set, or their ranges over many."""
    recorded = [
        (test_set_label(condition, conditions), scores.baselines)
        for condition in conditions
        for scores in condition.results_by_seed().values()
        if isinstance(scores, SplitScores) and scores.baselines
    ]
    labels = {label for label, _ in recorded}
    found: dict[str, dict[str, list[Mapping[str, float]]]] = {}
    for label, systems in recorded:
        place = label if len(labels) <= MAX_TEST_SETS else f"{len(labels)} test sets"
        for name, measured in systems.items():
            found.setdefault(place, {}).setdefault(name, []).append(measured)
    shown = list(dict.fromkeys([*metrics.values(), "chrf"]))
    return [
        f"trivial systems on {label}: "
        + "; ".join(f"{name} {_ranges(values, shown)}" for name, values in systems.items())
        for label, systems in found.items()
    ]


def _ranges(measured: Sequence[Mapping[str, float]], metrics: Sequence[str]) -> str:
    """Return each metric in percent, such as `BLEU 1.2, chrF 20.3`; a range where it differs between training sets."""
    texts = []
    for metric in metrics:
        if values := sorted({f"{100 * one[metric]:.1f}" for one in measured if metric in one}, key=float):
            texts.append(f"{metric_name(metric)} {'-'.join(dict.fromkeys((values[0], values[-1])))}")
    return ", ".join(texts)


def _limit_note(conditions: Sequence[Condition]) -> list[str]:
    """Return which conditions had more than 1 % of their outputs cut at the maximum number of tokens."""
    cut = []
    for condition in conditions:
        scores = [scores for scores in condition.results_by_seed().values() if isinstance(scores, SplitScores)]
        share = sum(one.limit_hits for one in scores) / max(1, sum(one.n for one in scores))
        if share > NOTABLE:
            cut.append(f"{test_set_label(condition, conditions)} {condition.label} {100 * share:.0f} %")
    return [f"outputs cut at the maximum number of tokens: {_first(cut)}"] if cut else []


def _size_note(conditions: Sequence[Condition]) -> list[str]:
    """Return a warning if conditions that are compared differ in parameters by more than 5 %."""
    sizes: dict[tuple[str, ...], dict[str, int]] = {}
    for condition in conditions:
        if condition.runs and (parameters := condition.runs[0].result.parameters):
            sizes.setdefault(condition.comparison_key, {})[condition.label] = parameters
    splits_by_difference: dict[str, dict[str, None]] = {}  # the difference, and the split schemes that it is on
    for (task, split, corpus, *_), by_label in sizes.items():
        small, large = min(by_label, key=lambda name: by_label[name]), max(by_label, key=lambda name: by_label[name])
        if by_label[large] > (1 + TOLERANCE) * by_label[small]:
            excess = by_label[large] / by_label[small] - 1
            text = f"{large} ({by_label[large]:,}) vs {small} ({by_label[small]:,}), +{100 * excess:.0f} %,"
            splits_by_difference.setdefault(text, {})[f"{task} {split} {corpus}".strip()] = None
    if not splits_by_difference:
        return []
    listed = [f"{text} on {', '.join(splits)}" for text, splits in splits_by_difference.items()]
    return [f"compared conditions differ in parameters by more than 5 %: {_first(listed)}"]


def _preset_notes(conditions: Sequence[Condition]) -> list[str]:
    """Return what differs from the presets as they are now (in older runs, or by other settings), and what has none.

    Of what differs, settings in the names of conditions are left out.
    """
    differing: dict[str, list[Condition]] = {}  # by their settings
    without: dict[str, list[Condition]] = {}
    for condition in conditions:
        plain = f"preset {condition.preset}"
        if _has_no_preset(condition):
            settings = preset_text(condition).removeprefix(plain).removeprefix(" with ") or "default settings"
            without.setdefault(settings, []).append(condition)
        elif (text := preset_beside_label(condition)) != plain:
            differing.setdefault(text, []).append(condition)
    beside = ", beside those in the names" if any(condition.settings for condition in conditions) else ""
    notes = (
        [f"settings that differ from today's presets{beside}: {_listed(differing, conditions)}"] if differing else []
    )
    if without:
        listed = _listed(without, conditions, named=True)
        scaled = "unless a width is set, the widths of such an architecture are scaled to the size of the Transformer"
        notes.append(f"no preset for this task: {listed}; {scaled}")
    return notes


def _has_no_preset(condition: Condition) -> bool:
    """Whether its architecture has no default preset for its task, as far as this installation knows both."""
    c = condition
    known = c.task in tasks.names() and c.arch in models.names()
    return known and c.preset == "default" and not preset(c.task, c.arch)


def _listed(
    by_settings: Mapping[str, Sequence[Condition]], conditions: Sequence[Condition], named: bool = False
) -> str:
    """Return the settings, each after the shortest names that distinguish its conditions from the others.

    With `named`, the names include at least the architecture.
    """
    place = _place(conditions)
    ways: list[Callable[[Condition], str]] = [
        lambda condition: condition.arch,
        lambda condition: f"{condition.arch} on {place(condition)}",
        lambda condition: condition.label,
        lambda condition: f"{condition.label} on {place(condition)}",
    ]
    if not named:
        ways = [lambda condition: "", place, *ways]
    settings = {id(condition): text for text, members in by_settings.items() for condition in members}

    def distinguishes(way: Callable[[Condition], str]) -> bool:
        return len({(way(c), settings.get(id(c))) for c in conditions}) == len({way(c) for c in conditions})

    way = next((way for way in ways if distinguishes(way)), ways[-1])
    names = {text: ", ".join(dict.fromkeys(map(way, members))) for text, members in by_settings.items()}
    return _first([f"{name}: {text}" if name else text for text, name in names.items()])


def _place(conditions: Sequence[Condition]) -> Callable[[Condition], str]:
    """Return a function that gives the task, split scheme and corpus of a condition, where they differ."""
    parts = ("task", "split", "corpus")
    differing = [part for part in parts if len({getattr(condition, part) for condition in conditions}) > 1]
    return lambda condition: " ".join(filter(None, (getattr(condition, part) for part in differing)))


def _first(listed: Sequence[str]) -> str:
    """Return the first of these texts, and how many more there are."""
    more = f"; and {len(listed) - MAX_LISTED} more" if len(listed) > MAX_LISTED else ""
    return "; ".join(listed[:MAX_LISTED]) + more
