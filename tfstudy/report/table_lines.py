"""The lines of a table: what is known of each condition."""

import math
from collections.abc import Sequence
from statistics import median
from typing import NamedTuple

from tfstudy.analysis.comparisons import Comparison, mean_interval
from tfstudy.analysis.conditions import Condition
from tfstudy.analysis.intervals import median_length
from tfstudy.report.quotations import Quotation, quotations
from tfstudy.runs.schema import Lengths


class Line(NamedTuple):
    """A line of the table; metrics in percent, nan where nothing is known."""

    condition: Condition
    metric: str
    mean: float
    low: float
    high: float
    method: str  # of the interval: t, bootstrap, or Wilson (within a run)
    group: str  # letters: lines on the same examples that share one do not differ significantly
    best: bool  # does not differ significantly from the best, where another one does
    against: Comparison | None  # with the baseline
    oracle: float
    over_lengths: float
    chrf: float
    thresholds: dict[str, str]  # L90 and L50
    parameters: int
    seconds: float  # of training, the median over runs
    published: list[Quotation]  # of the same metric, test set and kind of network
    published_oracle: list[Quotation]
    published_over_lengths: list[Quotation]


class Table(NamedTuple):
    """The lines of a table, the comparisons behind them, and notes on how the numbers were obtained."""

    lines: list[Line]
    comparisons: list[Comparison]
    baseline: str
    notes: list[str]
    columns: Sequence[str] = ()  # the keys of those to show; empty: the default
    seeds: bool = False  # whether to show the result of each seed


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
        published=quotations(condition, metric),
        published_oracle=quotations(condition, "oracle_length_exact_match"),
        published_over_lengths=quotations(condition, "token_accuracy_over_lengths"),
    )


def length_threshold(lengths: Sequence[Lengths], name: str) -> str:
    """Return the median of L90 or L50 over seeds: `>=15` if it is the longest length tested, `none` if no length is."""
    measured = [(getattr(run, name), run.longest_tested) for run in lengths]
    length, censored = median_length([(length or 0, length == longest) for length, longest in measured])
    return "none" if not length else f">={length}" if censored else str(length)


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values) if values else math.nan
