"""Tables of studies: a line for each condition."""

import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from tasks.errors import UserError, one_of
from tfstudy.analysis.collection import RunRecord, Study, read_finished_runs
from tfstudy.analysis.comparisons import Comparison, compare_conditions, group_letters, mean_interval
from tfstudy.analysis.conditions import Condition, conditions, main_metrics, sort_key
from tfstudy.analysis.intervals import median_length
from tfstudy.analysis.published import Figure, best_known, of_same_kind
from tfstudy.report.table_notes import table_notes
from tfstudy.runs.schema import Lengths

OVER_LENGTHS = "token accuracy over lengths"
ORDER_KEYS = ("task", "split", "arch", "preset")  # what `--by` may name besides a tag


class Line(NamedTuple):
    """A line of the table; metrics in percent, nan where nothing is known."""

    condition: Condition
    metric: str
    mean: float
    low: float
    high: float
    method: str  # of the interval: t, bootstrap, or Wilson (within a run)
    group: str  # letters: lines on the same examples that share one do not differ significantly
    best: bool  # in the best group, where there are several
    against: Comparison | None  # with the baseline
    oracle: float
    over_lengths: float
    chrf: float
    thresholds: dict[str, str]  # L90 and L50
    parameters: int
    seconds: float  # of training, the median over runs
    published: list[Figure]  # of the same metric, test set and kind of network
    published_oracle: list[Figure]
    published_over_lengths: list[Figure]

    @property
    def is_quoted(self) -> bool:
        """Whether any published result stands beside it."""
        return bool(self.published or self.published_oracle or self.published_over_lengths)


class Table(NamedTuple):
    """The lines of a table, the comparisons behind them, and notes on how the numbers were obtained."""

    lines: list[Line]
    comparisons: list[Comparison]
    baseline: str
    notes: list[str]


def table(study: Path, by: str = "", metric: str = "", baseline: str = "") -> Table:
    """Return the table of a study, or of all studies under a folder.

    `by` sets the order, such as `split,arch`; a tag such as `length` in it makes a line for each of its values.
    `baseline`, with which the others are compared, is an architecture or a label (`lstm train.steps=600`).
    `UserError` if there is no finished run, or for unknown names.
    """
    finished = read_finished_runs(study)
    keys = [key.strip() for key in by.split(",") if key.strip()]
    if not set(keys) <= set(ORDER_KEYS):
        tags = _tags(finished.runs)
        for key in keys:
            one_of("tag or split", key, (*ORDER_KEYS, *tags))
    tags = [key for key in keys if key not in ORDER_KEYS]
    if len(tags) > 1:
        raise UserError(f"--by takes at most one tag, got {' and '.join(tags)}")
    return build_table(finished, sort_conditions(conditions(finished.runs, "".join(tags)), keys), metric, baseline)


def build_table(study: Study, conditions: Sequence[Condition], metric: str = "", baseline: str = "") -> Table:
    """Return the table of these conditions of a study."""
    metrics = main_metrics(conditions, metric)
    comparisons = compare_conditions(conditions, metrics)
    letters = group_letters(conditions, comparisons, metrics)
    if baseline:
        one_of("baseline", baseline, sorted({name for c in conditions for name in (c.label, c.arch)}))
    # the best group is marked only where another group is significantly worse
    lettered = list(zip(conditions, letters, strict=True))
    several_groups = {condition.examples_key for condition, group in lettered if group and "a" not in group}
    against = _against_baseline(comparisons, baseline)
    lines = [
        build_line(c, metrics[c.task], group, group == "a" and c.examples_key in several_groups, against.get(id(c)))
        for c, group in lettered
    ]
    notes = table_notes(study, conditions, metrics, comparisons, any(line.is_quoted for line in lines))
    return Table(lines, comparisons, baseline, notes)


def _against_baseline(comparisons: Sequence[Comparison], baseline: str) -> dict[int, Comparison]:
    """Return each condition's comparison with the first one of this label or architecture on the same examples."""
    out: dict[int, Comparison] = {}
    for comparison in comparisons:
        for one in (comparison, comparison.swapped()):
            if one.second.label == baseline or (one.second.arch == baseline and one.first.arch != baseline):
                out.setdefault(id(one.first), one)
    return out


def build_line(condition: Condition, metric: str, group: str, best: bool, against: Comparison | None) -> Line:
    """Return the line of a condition."""
    interval = mean_interval(condition, metric)
    results = [run.result for run in condition.runs]
    whole = not condition.tag and condition.test_set == "test"
    lengths = [r.lengths for r in results if r.lengths] if whole else []
    return Line(
        condition=condition,
        metric=metric,
        mean=interval.mean,
        low=interval.low,
        high=interval.high,
        method=interval.method,
        group=group,
        best=best,
        against=against,
        oracle=_mean(condition.values("oracle_length_exact_match")),
        over_lengths=_mean(list(condition.means_over_lengths("token_accuracy").values())),
        chrf=_mean(condition.values("chrf")),
        thresholds={name: length_threshold(lengths, name) for name in ("L90", "L50")} if lengths else {},
        parameters=results[0].parameters if results else 0,
        seconds=median(r.train_seconds for r in results) if results else math.nan,
        published=best_known(of_same_kind(condition, metric)),
        published_oracle=best_known(of_same_kind(condition, "oracle_length_exact_match")),
        published_over_lengths=best_known(of_same_kind(condition, "token_accuracy_over_lengths")),
    )


def sort_conditions(conditions: Sequence[Condition], keys: Sequence[str]) -> list[Condition]:
    """Return the conditions, ordered by these keys first."""

    def key(c: Condition) -> tuple[Any, ...]:
        usual = sort_key(c)
        own = {"task": usual[:1], "split": usual[1:5], "arch": (c.arch,), "preset": (c.preset, c.settings)}
        return tuple(own.get(name, usual[5:6]) for name in keys)

    return sorted(conditions, key=key) if keys else list(conditions)


def length_threshold(lengths: Sequence[Lengths], name: str) -> str:
    """Return the median of L90 or L50 over seeds: `>=15` if it is the longest length tested, `none` if no length is."""
    measured = [(getattr(run, name), run.longest_tested) for run in lengths]
    length, censored = median_length([(length or 0, length == longest) for length, longest in measured])
    return "none" if not length else f">={length}" if censored else str(length)


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values) if values else math.nan


def _tags(runs: Iterable[RunRecord]) -> list[str]:
    """Return the tags of test examples, from one run of each experiment."""
    first: dict[str, RunRecord] = {}
    for run in runs:
        first.setdefault(run.result.experiment, run)
    splits = (scores for run in first.values() for scores in run.result.splits.values() if scores.role == "test")
    return sorted({tag for scores in splits for tag in scores.slices})
