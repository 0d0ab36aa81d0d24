"""Results as text and HTML, for the interpreter and for notebooks, and the names of metrics as people read them."""

import html
from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tfstudy.runs.schema import Result, Slice

HEAD = ("", "examples", "metric", "percent")
METRIC_NAMES = {  # in tables and in configs/published.csv
    "exact_match": "exact match",
    "token_accuracy": "token accuracy",
    "oracle_length_exact_match": "exact match, oracle length",
    "teacher_forced_accuracy": "teacher-forced accuracy",
    "bleu": "BLEU",
    "chrf": "chrF",
}


def metric_name(metric: str) -> str:
    """Return the name of a metric as people read it."""
    return METRIC_NAMES.get(metric, metric.replace("_", " "))


def title(result: "Result") -> str:
    """Return `scan length, lstm, seed 0`."""
    smoke = "smoke run of " if result.smoke else ""
    return f"{smoke}{result.task} {result.split}, {result.arch}, seed {result.seed}"


def one_line(result: "Result") -> str:
    """Return `scan length, lstm, seed 0: exact match 13.1 % on test`; the status if the run diverged."""
    tests = {name: scores for name, scores in result.splits.items() if scores.role == "test" and scores.metrics}
    metric = next((name for scores in tests.values() for name in scores.metrics), "")
    parts = [f"{percent_of(scores.metrics.get(metric))} % on {name}" for name, scores in tests.items()]
    measured = f"{metric_name(metric)} {', '.join(parts)}" if parts else "nothing measured"
    return f"{title(result)}: {measured if result.status == 'finished' else result.status}"


def first_metric(scores: "Slice") -> str:
    """Return `exact match 13.1 %`; empty if nothing was measured."""
    name = next(iter(scores.metrics), "")
    return f"{metric_name(name)} {percent_of(scores.metrics[name])} %" if name else ""


def first_test_metric(result: "Result") -> str:
    """Return `exact match 13.1 %`, the first metric of the first test set; empty if nothing was measured."""
    tests = [scores for scores in result.splits.values() if scores.role == "test" and scores.n]
    return first_metric(tests[0]) if tests else ""


def headline(result: "Result") -> str:
    """Return the first metric of the first test set, or the status if nothing was measured."""
    return (first_test_metric(result) if result.status == "finished" else "") or result.status


def scores_text(result: "Result") -> str:
    """Return a title and a line for each metric of each split, in percent."""
    rows = [HEAD, *_rows(result.splits)]
    widths = [max(len(row[i]) for row in rows) for i in range(len(HEAD))]
    lines = [
        f"{split:{widths[0]}}  {n:>{widths[1]}}  {metric:{widths[2]}}  {value:>{widths[3]}}"
        for split, n, metric, value in rows
    ]
    return "\n".join([title(result), *lines]) if result.splits else one_line(result)


def scores_html(result: "Result") -> str:
    """Return a table with a row for each split and a column for each metric, in percent."""
    metrics = list(dict.fromkeys(name for scores in result.splits.values() for name in scores.metrics))
    head = ["percent", "examples", *map(metric_name, metrics)]
    rows = [
        [name, f"{scores.n:,}", *(percent_of(scores.metrics.get(metric)) for metric in metrics)]
        for name, scores in result.splits.items()
    ]
    cells = "".join(f"<tr>{_cells('td', row)}</tr>" for row in rows)
    status = "" if result.status == "finished" else f": {result.status} ({result.reason})"
    caption = f"<caption>{html.escape(title(result) + status)}</caption>"
    return f"<table>{caption}<thead><tr>{_cells('th', head)}</tr></thead><tbody>{cells}</tbody></table>"


def _rows(splits: Mapping[str, "Slice"]) -> list[tuple[str, str, str, str]]:
    return [
        (name if first else "", f"{scores.n:,}" if first else "", metric_name(metric), percent_of(value))
        for name, scores in splits.items()
        for first, (metric, value) in zip([True, *[False] * len(scores.metrics)], scores.metrics.items(), strict=False)
    ]


def _cells(tag: str, texts: list[str]) -> str:
    return "".join(f"<{tag}>{html.escape(text)}</{tag}>" for text in texts)


def percent_of(share: float | None) -> str:
    """The share in percent as `12.3`; empty without one."""
    return "" if share is None else f"{100 * share:.1f}"
