"""Results as a line of text, and the names of metrics as people read them."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tfstudy.runs.schema import Result, Slice

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


def percent_of(share: float | None) -> str:
    """The share in percent as `12.3`; empty without one."""
    return "" if share is None else f"{100 * share:.1f}"


def one_line(result: "Result") -> str:
    """Return `scan length, lstm, seed 0: exact match 13.1 % on test`; the status if the run diverged."""
    tests = {name: scores for name, scores in result.splits.items() if scores.role == "test" and scores.metrics}
    metric = next((name for scores in tests.values() for name in scores.metrics), "")
    parts = [f"{percent_of(scores.metrics.get(metric))} % on {name}" for name, scores in tests.items()]
    measured = f"{metric_name(metric)} {', '.join(parts)}" if parts else "nothing measured"
    smoke = "smoke run of " if result.smoke else ""
    title = f"{smoke}{result.task} {result.split}, {result.arch}, seed {result.seed}"
    return f"{title}: {measured if result.status == 'finished' else result.status}"


def first_metric(scores: "Slice") -> str:
    """Return `exact match 13.1 %`; empty if nothing was measured."""
    name = next(iter(scores.metrics), "")
    return f"{metric_name(name)} {percent_of(scores.metrics[name])} %" if name else ""


def headline(result: "Result") -> str:
    """Return the first metric of the first test set, or the status if nothing was measured."""
    tests = [scores for scores in result.splits.values() if scores.role == "test" and scores.n]
    return (first_metric(tests[0]) if tests and result.status == "finished" else "") or result.status
