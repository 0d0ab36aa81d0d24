"""The notes under a table: what its numbers are, how they were tested, and how the runs were trained and evaluated."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence

from tfstudy.analysis.collection import RunRecord, Study
from tfstudy.analysis.comparisons import A_TEST_NEEDS, Comparison
from tfstudy.analysis.conditions import Condition
from tfstudy.report.condition_notes import condition_notes
from tfstudy.report.markup import count_range, plural, several
from tfstudy.report.quotations import SIGN_NOTE, Quotation, source_notes
from tfstudy.runs.metrics import metric_name
from tfstudy.runs.reader import read_environments
from tfstudy.runs.schema import Result

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
    runs = list({id(run): run for condition in conditions for run in (*condition.runs, *condition.diverged)}.values())
    diverged = sum(not run.finished for run in runs)
    names = several(metric_name(metric) for metric in metrics.values())
    return [
        f"{names} on test sets, in percent: mean over seeds with the 95 % confidence interval of this mean alone "
        f"(Student's t for fewer than 10 seeds, studentised bootstrap otherwise; {_single(metrics.values())})",
        *_test_notes(comparisons, "difference" in columns),
        *condition_notes(conditions, metrics),
        *(text for keys, text in EXPLAINED if {*keys} & {*columns}),
        *_seconds_note(runs, columns),
        *_published_notes(quoted),
        *_run_notes(runs, conditions),
        *([f"{plural(diverged, 'run')} diverged, without results; {A_TEST_NEEDS}"] * bool(diverged)),
        *_outdated_notes(runs),
        *study.left_out_notes(),
    ]


def _single(metrics: Collection[str]) -> str:
    """Return what a condition has whose seeds do not vary."""
    if "exact_match" in metrics:
        return "for a single seed, or seeds with equal results, the Wilson interval over test examples"
    return "none for a single seed"


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
    return [*lines, *_normality_note(tested)]


def _normality_note(tested: Sequence[Comparison]) -> list[str]:
    """Return how many tests assume normally distributed results, and for how many there was no other."""
    normal = [comparison.difference for comparison in tested if comparison.difference.assumes_normality]
    limited = sum(bool(difference.note) for difference in normal)
    few = "with so few seeds" + " and so many comparisons" * (len(tested) > 1)
    which = "no test" if limited == len(normal) else f"in {limited} of them no test"
    reason = f": {few}, {which} without this assumption could find a difference" * bool(limited)
    count = f"{len(normal)} of {plural(len(tested), 'test')}" if len(tested) > 1 else "the test"
    assume = "assume" + "s" * (len(tested) == 1)
    return [f"{count} {assume} normally distributed results{reason}"] if normal else []


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


def _run_notes(runs: Sequence[RunRecord], conditions: Sequence[Condition]) -> list[str]:
    results, seeds = [run.result for run in runs], [len(condition.runs) for condition in conditions]
    finished = [run for run in runs if run.finished]
    reads = [count for run in finished for count in run.test_reads().values()]
    tests = sum(scores.role == "test" for run in finished for scores in run.result.splits.values())
    overlaps = sum(run.result.overlap.get(name, 0) for run in finished for name in run.result.splits)
    hours = sum(r.seconds for r in results) / 3600
    return [
        f"checkpoint: {several(r.checkpoint for r in results)}; decoding: "
        f"{several(r.decode.method for r in results)}, free-running until EOS; {_read_note(reads)}",
        f"{'WARNING: ' * bool(overlaps)}held-out examples whose source occurs in training: {overlaps:,} "
        f"(in {plural(tests, 'evaluated test set')})",
        f"{plural(len(runs), 'run')}, {count_range(seeds, 'seed')} per condition; "
        f"{several(r.device for r in results)}; {hours:.1f} device hours of training and evaluation; {versions(runs)}",
        *_signature_notes(results),
    ]


def _signature_notes(results: Sequence[Result]) -> list[str]:
    """Return the signature of each metric; where corpora differ, each signature with its corpora."""
    found: dict[str, dict[str, dict[str, None]]] = {}
    for result in results:
        for name, signature in result.signatures.items():
            found.setdefault(name, {}).setdefault(signature, {})[result.corpus or result.split] = None
    return [
        f"{name}: " + "; ".join(f"{text}{f' ({several(places)})' * (len(own) > 1)}" for text, places in own.items())
        for name, own in found.items()
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
