"""The notes under a table: what its numbers are, how they were tested, and how the runs were trained and evaluated."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence

from tfstudy import models, tasks
from tfstudy.analysis.collection import RunRecord, Study
from tfstudy.analysis.comparisons import Comparison
from tfstudy.analysis.conditions import Condition, test_set_label
from tfstudy.analysis.metrics import metric_name
from tfstudy.analysis.settings_text import preset_text
from tfstudy.config.presets import preset
from tfstudy.report.markup import count_range, plural, several
from tfstudy.report.quotations import SIGN_NOTE, Quotation, source_notes
from tfstudy.runs.reader import read_environments
from tfstudy.runs.schema import SplitScores

TOLERANCE = 0.05  # relative difference of parameters up to which sizes count as equal
MAX_LISTED = 5  # differences of size
NOTABLE = 0.01  # share of outputs that were cut


def table_notes(
    study: Study,
    conditions: Sequence[Condition],
    metrics: Mapping[str, str],
    comparisons: Sequence[Comparison],
    columns: Collection[str],
    quoted: Sequence[Quotation],
) -> list[str]:
    """Return the notes under a table with these columns, by key, and these published figures."""
    runs = list({id(run): run for condition in conditions for run in (*condition.runs, *condition.diverged)}.values())
    diverged = sum(not run.finished for run in runs)
    names = several(metric_name(metric) for metric in metrics.values())
    return [
        f"{names} on test sets, in percent: mean over seeds with the 95 % confidence interval of this mean alone "
        "(Student's t for fewer than 10 seeds, studentised bootstrap otherwise; for a single seed, or seeds with equal "
        "results, the Wilson interval over test examples)",
        *_test_notes(comparisons, "difference" in columns),
        *_baseline_notes(conditions, metrics),
        *_limit_note(conditions),
        *_size_note(conditions),
        *_preset_notes(conditions),
        *(
            ["L90, L50: longest length up to which 90 % and 50 % are correct, median over seeds"]
            * bool({"L90", "L50"} & {*columns})
        ),
        *_seconds_note(runs, columns),
        *_published_notes(quoted),
        *_run_notes(runs, conditions),
        *([f"{plural(diverged, 'run')} diverged, without results"] * bool(diverged)),
        *_outdated_notes(runs),
        *study.left_out_notes(),
    ]


def _test_notes(comparisons: Sequence[Comparison], with_differences: bool) -> list[str]:
    tested = [comparison for comparison in comparisons if comparison.tested]
    if not tested:
        return ["no test: no two conditions on the same examples have 2 finished seeds each"] if comparisons else []
    methods = several(comparison.difference.method for comparison in tested)
    lines = [
        "group: conditions on the same examples that share a letter do not differ significantly "
        f"({methods}, two-sided, p < .05 after Bonferroni correction for {plural(len(tested), 'comparison')}); bold: "
        "not significantly different from the best, on test sets where others are"
    ]
    if with_differences:
        lines.append(
            "differences: with simultaneous 95 % intervals, corrected like p, so that an interval excludes 0 if and "
            "only if p < .05"
        )
    limited = [comparison for comparison in tested if comparison.difference.note]
    if limited:
        lines.append(
            f"{len(limited)} of {plural(len(tested), 'test')} assume normally distributed results: with so few seeds "
            "and so many comparisons, no test without this assumption could find a difference"
        )
    return lines


def _seconds_note(runs: Sequence[RunRecord], columns: Collection[str]) -> list[str]:
    devices = several(run.result.device for run in runs)
    text = f"seconds: training time on {devices}, median over runs; comparable only on the same, otherwise idle machine"
    return [text] if "seconds" in columns else []


def _published_notes(quoted: Sequence[Quotation]) -> list[str]:
    if not quoted:
        return []
    signed = f"; {SIGN_NOTE}" * any(not one.same_settings for one in quoted)
    return [
        "published: same metric, test set and kind of network, one figure of each paper (under the settings of a "
        f"preset if it has one, else its highest){signed}",
        *source_notes(quoted),
    ]


def _baseline_notes(conditions: Sequence[Condition], metrics: Mapping[str, str]) -> list[str]:
    """Return, for each test set, the metrics of trivial systems that the runs recorded: means over different data."""
    found: dict[str, dict[str, list[Mapping[str, float]]]] = {}
    for condition in conditions:
        for scores in condition.results_by_seed().values():
            for name, measured in scores.baselines.items() if isinstance(scores, SplitScores) else ():
                found.setdefault(test_set_label(condition, conditions), {}).setdefault(name, []).append(measured)
    shown = list(dict.fromkeys([*metrics.values(), "chrf"]))
    return [
        f"trivial systems on {label}: "
        + "; ".join(f"{name} {_ranges(values, shown)}" for name, values in names.items())
        for label, names in found.items()
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
    more = f"; and {len(cut) - MAX_LISTED} more" if len(cut) > MAX_LISTED else ""
    return [f"outputs cut at the maximum number of tokens: {'; '.join(cut[:MAX_LISTED])}{more}"] if cut else []


def _size_note(conditions: Sequence[Condition]) -> list[str]:
    """Return a warning if conditions on the same examples differ in parameters by more than 5 %."""
    sizes: dict[tuple[str, ...], dict[str, int]] = {}
    for condition in conditions:
        if condition.runs and (parameters := condition.runs[0].result.parameters):
            sizes.setdefault(condition.examples_key, {})[condition.label] = parameters
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
    more = f"; and {len(listed) - MAX_LISTED} more" if len(listed) > MAX_LISTED else ""
    return [f"compared conditions differ in parameters by more than 5 %: {'; '.join(listed[:MAX_LISTED])}{more}"]


def _preset_notes(conditions: Sequence[Condition]) -> list[str]:
    """Return what differs from the presets as they are now (in older runs, or by other settings), and what has none."""
    differing: dict[str, list[Condition]] = {}  # by their settings
    without: dict[str, list[Condition]] = {}
    for condition in conditions:
        text, plain = preset_text(condition), f"preset {condition.preset}"
        if _has_no_preset(condition):
            settings = text.removeprefix(plain).removeprefix(" with ") or "default settings"
            without.setdefault(settings, []).append(condition)
        elif text != plain:
            differing.setdefault(text, []).append(condition)
    notes = [f"settings that differ from today's presets: {_listed(differing)}"] if differing else []
    if without:
        notes.append(
            f"no preset for this task: {_listed(without)}; unless a width is set, the widths of such an architecture "
            "are scaled to the Transformer's number of parameters"
        )
    return notes


def _has_no_preset(condition: Condition) -> bool:
    """Whether its architecture has no default preset for its task, as far as this installation knows both."""
    c = condition
    known = c.task in tasks.names() and c.arch in models.names()
    return known and c.preset == "default" and not preset(c.task, c.arch)


def _listed(by_settings: Mapping[str, Sequence[Condition]]) -> str:
    """Return each of the settings after the architectures that have them.

    Where an architecture has several, its conditions are distinguished by their labels, or else by their splits.
    """
    every = [condition for members in by_settings.values() for condition in members]
    several_tasks = len({condition.task for condition in every}) > 1
    archs = Counter(arch for members in by_settings.values() for arch in {c.arch for c in members})
    labels = Counter(label for members in by_settings.values() for label in {c.label for c in members})

    def name(condition: Condition) -> str:
        place = f" on {f'{condition.task} ' * several_tasks}{condition.split}" * (labels[condition.label] > 1)
        return condition.label + place if archs[condition.arch] > 1 else condition.arch

    listed = [
        f"{', '.join(dict.fromkeys(name(condition) for condition in members))}: {text}"
        for text, members in by_settings.items()
    ]
    more = f"; and {len(listed) - MAX_LISTED} more" if len(listed) > MAX_LISTED else ""
    return "; ".join(listed[:MAX_LISTED]) + more


def _run_notes(runs: Sequence[RunRecord], conditions: Sequence[Condition]) -> list[str]:
    results, seeds = [run.result for run in runs], [len(condition.runs) for condition in conditions]
    finished = [run for run in runs if run.finished]
    reads = [count for run in finished for count in run.test_reads().values()]
    tests = sum(scores.role == "test" for run in finished for scores in run.result.splits.values())
    overlaps = sum(run.result.overlap.get(name, 0) for run in finished for name in run.result.splits)
    hours = sum(r.seconds for r in results) / 3600
    signatures = {name: signature for r in results for name, signature in r.signatures.items()}
    return [
        f"checkpoint: {several(r.checkpoint for r in results)}; decoding: "
        f"{several(r.decode.method for r in results)}, free-running until EOS; {_read_note(reads)}",
        f"{'WARNING: ' * bool(overlaps)}held-out examples whose source occurs in training: {overlaps:,} "
        f"(in {plural(tests, 'evaluated test set')})",
        f"{plural(len(runs), 'run')}, {count_range(seeds, 'seed')} per condition; "
        f"{several(r.device for r in results)}; {hours:.1f} device hours of training and evaluation; {versions(runs)}",
        *(f"{name}: {signature}" for name, signature in signatures.items()),
    ]


def _outdated_notes(runs: Sequence[RunRecord]) -> list[str]:
    """Return a line for each reason why runs are outdated. Outdated and current runs are different conditions."""
    reasons = Counter("; ".join(run.outdated()) for run in runs)
    return [
        f"{count} of {plural(len(runs), 'run')} outdated: {reason} (details: `tfstudy why RUN`)"
        for reason, count in reasons.items()
        if reason
    ] + [
        f"{count} of {plural(len(runs), 'run')} not compared with the current code: {missing}"
        for missing, count in Counter(run.missing_plugin() for run in runs).items()
        if missing
    ]


def _read_note(reads: Collection[int]) -> str:
    if not reads:
        return "number of test evaluations unknown"
    if max(reads) == 1:
        return "each test set was evaluated once per run"
    repeated = sum(count > 1 for count in reads)
    return f"{repeated} of {len(reads)} test sets were evaluated up to {max(reads)} times (after a stop or on request)"


def versions(runs: Iterable[RunRecord]) -> str:
    """Return the versions of torch and lightning that the runs used."""
    used = (environment.versions for run in runs for environment in read_environments(run.path))
    names = {f"{name} {packages[name]}" for packages in used for name in ("torch", "lightning") if name in packages}
    return ", ".join(sorted(names, reverse=True)) or "versions unknown"
