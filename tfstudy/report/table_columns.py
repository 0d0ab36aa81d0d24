"""The lines and columns of a table: what is known of each condition, under which names, and which columns are shown."""

import math
from collections.abc import Callable, Sequence
from statistics import median
from typing import NamedTuple

from tfstudy.analysis.comparisons import Comparison, mean_interval
from tfstudy.analysis.conditions import Condition
from tfstudy.analysis.counterparts import Quotation, quotations
from tfstudy.analysis.intervals import median_length
from tfstudy.errors import UserError, one_of
from tfstudy.report.markup import number, p_value, with_interval
from tfstudy.runs.display import metric_name
from tfstudy.runs.schema import Lengths

Cells = dict[str, str]  # by the head of the column
ON_REQUEST = {"seconds", "seeds"}  # not shown by default
COMPARED = {"difference", "p"}  # need a baseline


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


# Columns


class Column(NamedTuple):
    """A column of a table."""

    key: str  # as in `--columns`
    head: str  # as printed: no two columns have the same
    text: Callable[[Line], str]
    left: bool = False  # aligned to the left
    quoted: Callable[[Line], list[Quotation]] | None = None  # the published figures in it


def all_columns(table: Table) -> list[Column]:
    """Return every column that a table can have, in its order: the result, then the published figures beside it."""
    several_metrics = len({line.metric for line in table.lines}) > 1
    metric, tag = metric_name(table.lines[0].metric), table.lines[0].condition.tag
    result = "value" if several_metrics else metric
    out = [
        Column("task", "task", lambda line: line.condition.task, left=True),
        Column("split", "split", lambda line: line.condition.split_label, left=True),
        Column("arch", "architecture", lambda line: line.condition.arch, left=True),
        Column("preset", "preset", lambda line: line.condition.preset_label, left=True),
        Column("n", "n", _seed_count),
        Column("metric", "metric", lambda line: metric_name(line.metric), left=True),
        Column("result", result, mean_text),
        _published("published", "published", lambda line: line.published),
        Column("difference", f"vs {table.baseline}", _difference),
        Column("p", "p", lambda line: p_value(line.against.p) if line.against else ""),
        Column("group", "group", lambda line: line.group, left=True),
        Column("seeds", f"{result} by seed", _by_seed, left=True),
        Column("chrf", "chrF", lambda line: number(line.chrf)),
        Column("oracle_length", "oracle length", lambda line: number(line.oracle)),
        _published("published_oracle_length", "published, oracle length", lambda line: line.published_oracle),
        Column("over_lengths", "token accuracy over lengths", lambda line: number(line.over_lengths)),
        _published("published_over_lengths", "published, over lengths", lambda line: line.published_over_lengths),
        Column("L90", "L90", lambda line: line.thresholds.get("L90", "")),
        Column("L50", "L50", lambda line: line.thresholds.get("L50", "")),
        Column("parameters", "parameters", lambda line: f"{line.parameters:,}" if line.parameters else ""),
        Column("seconds", "seconds", lambda line: f"{line.seconds:,.0f}" if line.seconds == line.seconds else ""),
    ]
    if tag:
        head = f"tag {tag}" if tag in {column.head for column in out} else tag
        out.insert(2, Column(tag, head, lambda line: line.condition.tag_value))
    return out


def _published(key: str, head: str, quoted: Callable[[Line], list[Quotation]]) -> Column:
    return Column(key, head, lambda line: "; ".join(one.text for one in quoted(line)), True, quoted)


def shown_columns(table: Table) -> list[Column]:
    """Return the requested columns of a table in their order; by default, those that say something.

    `UserError` for unknown names, and for a difference without a baseline.
    """
    known = {column.key: column for column in all_columns(table)}
    if table.columns:
        for key in table.columns:
            one_of("column", key, known, "--columns")
            if key in COMPARED and not table.baseline:
                raise UserError(f"--columns: column '{key}' needs --baseline")
        keys = list(table.columns)
    else:
        keys = [column.key for column in known.values() if _is_default(column, table)]
    return [known[key] for key in keys + ["seeds"] * (table.seeds and "seeds" not in keys)]


def _is_default(column: Column, table: Table) -> bool:
    several = {
        "task": len({line.condition.task for line in table.lines}) > 1,
        "metric": len({line.metric for line in table.lines}) > 1,
        "over_lengths": any(line.published_over_lengths for line in table.lines),
    }
    return (
        column.key not in ON_REQUEST
        and several.get(column.key, True)
        and any(column.text(line) for line in table.lines)
    )


def columns(table: Table) -> list[Cells]:
    """Return each line's text by the head of the column."""
    shown = shown_columns(table)
    return [{column.head: column.text(line) for column in shown} for line in table.lines]


def quoted_figures(table: Table) -> list[Quotation]:
    """Return the published figures in the columns that are shown."""
    cells = (column.quoted(line) for column in shown_columns(table) if column.quoted for line in table.lines)
    return [one for cell in cells for one in cell]


# Cells


def mean_text(line: Line) -> str:
    """Return `41.2 [35.0, 47.1]`; empty if nothing was measured."""
    return with_interval(line.mean, line.low, line.high)


def is_bold(column: Column, line: Line) -> bool:
    """Whether a cell is a result that does not differ significantly from the best, where another one does."""
    return line.best and column.key == "result"


def _seed_count(line: Line) -> str:
    diverged = len(line.condition.diverged)
    return f"{len(line.condition.runs)}" + (f", {diverged} diverged" if diverged else "")


def _difference(line: Line) -> str:
    difference = line.against.difference if line.against else None
    return with_interval(difference.mean, difference.low, difference.high, "+") if difference else ""


def _by_seed(line: Line) -> str:
    return ", ".join(f"{seed}: {number(value)}" for seed, value in line.condition.by_seed(line.metric).items())
