"""A run in one line, for lists and logs."""

from pathlib import Path

from tfstudy.runs import display
from tfstudy.runs.progress import FINISHED, RunStatus, status_and_result
from tfstudy.runs.schema import Result


def headline(result: Result) -> str:
    """The status, or the first metric of the first test set if the run finished."""
    return first_metric(result) or FINISHED if result.status == FINISHED else result.status


def describe_run(path: Path) -> str:
    """The state of a run, its first metric, its folder, and what is wrong with it."""
    run, result = status_and_result(path)
    run = run or RunStatus(path, "unknown")
    metric = first_metric(result) if result and run.state == FINISHED else ""
    note = f"  ({run.reason})" if run.reason else ""
    return f"{run.state:12}{metric:22}{path}{note}"


def first_metric(result: Result) -> str:
    """The first metric of the first test set in percent; empty if nothing was measured."""
    tests = [scores for scores in result.splits.values() if scores.role == "test" and scores.n]
    return display.first_metric(tests[0]) if tests else ""
