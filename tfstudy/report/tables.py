"""Tables: a line for each condition."""

import math
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from tasks.errors import UserError, one_of
from tfstudy.analysis import statistics
from tfstudy.analysis.collection import RunRecord, Study, read_finished
from tfstudy.analysis.comparisons import Verdict, groups, spread, verdicts
from tfstudy.analysis.conditions import Condition, conditions, main_metrics, order
from tfstudy.analysis.metrics import NAMES
from tfstudy.analysis.published import of_same_kind
from tfstudy.runs.reader import environments
from tfstudy.runs.schema import Lengths

OVER = "token accuracy, mean over lengths"
BY = ("task", "split", "arch", "preset")  # what rows are put in order by, beside a tag
Interval = tuple[float, float]


class Line(NamedTuple):
    """A row of the table; shares in per cent, nan and None where nothing is known."""

    row: Condition
    metric: str
    mean: float
    interval: Interval | None
    method: str  # of the interval: t, bootstrap, or Wilson (within a run)
    group: str  # letters: rows of the same examples that share one do not differ significantly
    top: bool  # of the best group, where there are several
    against: Verdict | None  # the difference to the baseline
    oracle: float
    over_lengths: float
    chrf: float
    reaches: dict[str, str]  # L90 and L50
    parameters: int
    seconds: float  # of training, the median of its runs
    published: list[dict[str, str]]  # of the same metric, on the same split, by the same kind of network
    published_oracle: list[dict[str, str]]
    published_over: list[dict[str, str]]


class Table(NamedTuple):
    """Lines, and what a reader must know of how they came about."""

    lines: list[Line]
    verdicts: list[Verdict]
    baseline: str
    notes: list[str]


def table(study: Path, by: str = "", metric: str = "", baseline: str = "") -> Table:
    """The table of a study, or of all studies under a folder.

    `by` names what rows are in order by: `split,arch`, or a tag such as `length`, which makes a row of each of its
    values. `baseline`, which the others are set against, is an architecture or a row's label (`lstm train.steps=600`).
    `UserError` if there is no finished run, or for names that do not occur.
    """
    found = read_finished(study)
    keys = [key.strip() for key in by.split(",") if key.strip()]
    if not set(keys) <= set(BY):
        tags = _tags(found.runs)
        for key in keys:
            one_of("--by", key, (*BY, *tags))
    chosen = [key for key in keys if key not in BY]
    if len(chosen) > 1:
        raise UserError(f"--by may have one tag, but has {' and '.join(chosen)}")
    return of_rows(found, in_order(conditions(found.runs, "".join(chosen)), keys), metric, baseline)


def of_rows(study: Study, found: Sequence[Condition], metric: str = "", baseline: str = "") -> Table:
    """The table of these rows of a study."""
    metrics = main_metrics(found, metric)
    judged = verdicts(found, metrics)
    letters = groups(found, judged, metrics)
    if baseline:
        one_of("--baseline", baseline, sorted({name for row in found for name in (row.label, row.arch)}))
    several = {row.where for row, group in zip(found, letters, strict=True) if group and "a" not in group}
    base = to_baseline(judged, baseline)
    lines = [
        line(row, metrics[row.task], group, group == "a" and row.where in several, base.get(id(row)))
        for row, group in zip(found, letters, strict=True)
    ]
    quoted = any(one.published or one.published_oracle or one.published_over for one in lines)
    return Table(lines, judged, baseline, footer(study, found, judged, quoted))


def to_baseline(judged: Sequence[Verdict], baseline: str) -> dict[int, Verdict]:
    """Each row's verdict against the first row of this label, or of this architecture, among those of its examples."""
    out: dict[int, Verdict] = {}
    for verdict in judged:
        for one in (verdict, turned(verdict)):
            if one.second.label == baseline or (one.second.arch == baseline and one.first.arch != baseline):
                out.setdefault(id(one.first), one)
    return out


def turned(verdict: Verdict) -> Verdict:
    """The same verdict, the other way round."""
    found = verdict.found
    other = found._replace(mean=-found.mean, low=-found.high, high=-found.low, effect=-found.effect)
    return verdict._replace(first=verdict.second, second=verdict.first, found=other)


def line(row: Condition, metric: str, group: str, top: bool, against: Verdict | None) -> Line:
    """What stands in a row."""
    found = spread(row, metric)
    results = [run.result for run in row.runs]
    whole = not row.tag and row.test == "test"
    reaches = [r.lengths for r in results if r.lengths] if whole else []
    return Line(
        row=row,
        metric=metric,
        mean=found.mean,
        interval=None if math.isnan(found.low) else (found.low, found.high),
        method=found.method,
        group=group,
        top=top,
        against=against,
        oracle=_mean(row.values("oracle_length_exact_match")),
        over_lengths=_mean(row.values("token_accuracy", "mean_over_lengths")) if not row.tag else math.nan,
        chrf=_mean(row.values("chrf")),
        reaches={name: reach(reaches, name) for name in ("L90", "L50")} if reaches else {},
        parameters=results[0].parameters if results else 0,
        seconds=median(r.train_seconds for r in results) if results else math.nan,
        published=of_same_kind(row, NAMES.get(metric, metric)),
        published_oracle=of_same_kind(row, NAMES["oracle_length_exact_match"]),
        published_over=of_same_kind(row, OVER),
    )


def in_order(found: Sequence[Condition], keys: Sequence[str]) -> list[Condition]:
    """The rows, ordered by these first."""

    def key(row: Condition) -> tuple[Any, ...]:
        usual = order(row)
        own = {"task": usual[:1], "split": usual[1:5], "arch": (row.arch,), "preset": (row.preset, row.settings)}
        return tuple(own.get(name, usual[5:6]) for name in keys)

    return sorted(found, key=key) if keys else list(found)


def reach(lengths: Sequence[Lengths], name: str) -> str:
    """The median of L90 or L50 over seeds: `>=` if it is no less than the longest tested, `none` if no length holds."""
    length, censored = statistics.reach(
        [(getattr(one, name) or 0, getattr(one, name) == one.longest) for one in lengths]
    )
    return "none" if not length else f">={length}" if censored else str(length)


def footer(study: Study, found: Sequence[Condition], judged: Sequence[Verdict], quoted: bool) -> list[str]:
    """The protocol: what the numbers are, how they were tested, what they were made with; `quoted` beside others'."""
    runs = list({id(run): run for row in found for run in (*row.runs, *row.diverged)}.values())
    results = [run.result for run in runs]
    ended = [run for run in runs if run.finished]
    reads = [times for run in ended for times in run.test_reads().values()]
    tests = [name for run in ended for name, part in run.result.splits.items() if part.role == "test"]
    overlaps = sum(run.result.overlap.get(name, 0) for run in ended for name in run.result.splits)
    hours = sum(r.train_seconds * (not r.trained_in) + r.evaluate_seconds for r in results) / 3600
    reached = [row for row in found if any(run.result.lengths for run in row.runs)]
    lines = [
        "per cent on test, mean over seeds [95 % interval]: Student's below 10 seeds, studentised bootstrap from 10; "
        "with one seed, or where all have the same figure, Wilson's within a run",
        *_tested(judged),
        *(["L90, L50: the length up to which 90 and 50 % are right, the median of seeds"] if reached else []),
        *(["published: the same metric and kind of network; what its ± is, its paper says"] if quoted else []),
        f"checkpoint: {several(r.checkpoint for r in results)}; decoding: "
        f"{several(r.decode.method for r in results)}, free-running to EOS; {_scored(reads)}",
        f"examples of held-out splits whose source occurs in train: {overlaps:,} in {len(tests)} scored splits",
        f"{len(runs)} runs, {_range([len(row.runs) for row in found])} a row; {several(r.device for r in results)}; "
        f"{hours:.1f} device hours of training and evaluation; {made_with(runs)}",
        *(f"{name}: {signature}" for name, signature in signatures(results).items()),
    ]
    diverged = sum(not run.finished for run in runs)
    return [*lines, *([f"{diverged} runs diverged and measured nothing"] if diverged else []), *study.told()]


def _tested(judged: Sequence[Verdict]) -> list[str]:
    tested = [v for v in judged if not math.isnan(v.p)]
    if not tested:
        return ["no two rows of the same examples have 2 finished seeds each, so nothing is tested"] if judged else []
    methods = several(v.found.method for v in tested)
    lines = [
        f"group: rows of the same examples that share a letter do not differ significantly ({methods}, two-sided, Holm "
        f"over {len(tested)} pair{'s' * (len(tested) != 1)}, .05); bold: the best group, where there are several"
    ]
    limits = [v for v in tested if v.found.note]
    if limits:
        lines.append(
            f"{len(limits)} of {len(tested)} tests take the figures of seeds for normally distributed: with so few "
            "seeds and so many tests, none without that assumption could find anything"
        )
    return lines


def _scored(reads: Collection[int]) -> str:
    """How often test splits were looked at."""
    if not reads:
        return "how often test splits were scored is not known"
    if max(reads) == 1:
        return "each test split was scored once"
    often = sum(times > 1 for times in reads)
    return f"{often} of {len(reads)} test splits of runs were scored up to {max(reads)} times, when stopped or by hand"


def _range(counts: Collection[int]) -> str:
    least, most = min(counts), max(counts)
    return f"{least} to {most} seeds" if least < most else f"{most} seed{'s' * (most != 1)}"


def made_with(runs: Iterable[RunRecord]) -> str:
    """The versions of torch and lightning that runs were made with."""
    made = (one.versions for run in runs for one in environments(run.path))
    found = {f"{name} {versions[name]}" for versions in made for name in ("torch", "lightning") if name in versions}
    return ", ".join(sorted(found, reverse=True)) or "versions unknown"


def signatures(results: Iterable[Any]) -> dict[str, str]:
    """How metrics such as BLEU were computed."""
    return {name: signature for result in results for name, signature in result.signatures.items()}


def several(values: Iterable[object]) -> str:
    """The different values, in order."""
    return ", ".join(sorted({str(value) for value in values}))


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values) if values else math.nan


def _tags(runs: Iterable[RunRecord]) -> list[str]:
    """The tags that examples of test splits have, by one run of each experiment."""
    seen: dict[str, RunRecord] = {}
    for run in runs:
        seen.setdefault(run.result.experiment, run)
    parts = (part for run in seen.values() for part in run.result.splits.values() if part.role == "test")
    return sorted({tag for part in parts for tag in part.by})
