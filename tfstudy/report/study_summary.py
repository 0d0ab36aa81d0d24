"""What was studied, in one or two sentences: tasks, split schemes, architectures, seeds, sizes, steps and dates."""

import contextlib
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from tfstudy.analysis.collection import RunRecord, Study
from tfstudy.analysis.conditions import Condition, main_metrics, trained_steps
from tfstudy.config.trees import Tree, flatten
from tfstudy.errors import UserError
from tfstudy.grids.spec import grid_names, read_grid
from tfstudy.report.markup import count_range, listed, plural
from tfstudy.report.plots.captions import short_number
from tfstudy.runs.metrics import metric_name
from tfstudy.runs.reader import read_environments

MAX_NAMED = 8  # tasks, split schemes or architectures
VARIED: dict[str, Callable[[RunRecord], str]] = {
    "task": lambda run: run.result.task,
    "data.split": lambda run: run.result.split,
    "arch": lambda run: run.result.arch,
}


def summarize_study(study: Study, conditions: Sequence[Condition]) -> list[str]:
    """Return sentences on what was studied: what the grid's file says of it, then the facts of the records."""
    about = grid_about(study)
    return [*([about] if about else []), _facts(study.runs, conditions)]


def grid_about(study: Study) -> str:
    """Return what the grid of a study is for, `Grid scan: ...`, from its file; empty if no grid of tfstudy made it.

    The grid is the one that the commands of the runs name, else the one with the name of the study's folder if its
    task, split schemes and architectures are those of the study.
    """
    known = grid_names()
    commands = (entry.arguments for run in study.runs for entry in read_environments(run.path)[:1])
    used = {words[1] for words in commands if words[:1] == ["grid"] and len(words) > 1 and words[1] in known}
    folder = study.root.resolve().name
    with contextlib.suppress(UserError):
        if len(used) == 1 or (folder in known and not used and _covers(read_grid(folder), study.runs)):
            name = used.pop() if used else folder
            about = " ".join(str(read_grid(name).get("about") or "").replace("`", "").split())
            return f"Grid {name}: {about.rstrip('.')}." if about else ""
    return ""


def _covers(grid: Tree, runs: Sequence[RunRecord]) -> bool:
    """Whether the split schemes and architectures that a grid varies are exactly those of these runs."""
    settings = flatten(grid.get("base") or {}) | (grid.get("axes") or {})
    measured = {key: set(_distinct(runs, value)) for key, value in VARIED.items()}
    return all(set(_values(settings.get(key))) == names for key, names in measured.items())


def _values(setting: Any) -> list[str]:
    return list(map(str, setting)) if isinstance(setting, list) else [str(setting)]


def _facts(runs: Sequence[RunRecord], conditions: Sequence[Condition]) -> str:
    """Return `60 runs of scan on 4 split schemes (...): 3 architectures (...), 5 seeds per condition, 3,000 steps`."""
    metrics = main_metrics(conditions)
    parts = [
        f"{plural(len(runs), 'run')} of {listed(_distinct(runs, lambda run: run.result.task), MAX_NAMED)}",
        _named("split scheme", _distinct(runs, lambda run: run.result.split)),
        _named("architecture", _distinct(runs, lambda run: run.result.arch)) + _sizes(runs),
        f"{count_range([len(condition.runs) for condition in conditions], 'seed')} per condition",
        _range([trained_steps(condition) for condition in conditions], "training step"),
        _range([run.result.train_examples for run in runs], "training example"),
        _dates(runs),
    ]
    measured = listed(dict.fromkeys(map(metric_name, metrics.values())), MAX_NAMED)
    return f"{'; '.join(filter(None, parts))}. Results are {measured} on test sets, from 0 to 100."


def _distinct(runs: Iterable[RunRecord], value: Callable[[RunRecord], str]) -> list[str]:
    return sorted({value(run) for run in runs})


def _named(noun: str, names: Sequence[str]) -> str:
    """Return `split scheme length`, or `2 split schemes (length, simple)`."""
    return f"{noun} {names[0]}" if len(names) == 1 else f"{plural(len(names), noun)} ({listed(names, MAX_NAMED)})"


def _sizes(runs: Sequence[RunRecord]) -> str:
    """Return ` of 0.66M to 0.67M parameters`; empty in records without sizes."""
    sizes = sorted({run.result.parameters for run in runs} - {0})
    ends = dict.fromkeys(short_number(size) for size in (sizes[0], sizes[-1])) if sizes else {}
    return f" of {' to '.join(ends)} parameters" if ends else ""


def _range(counts: Sequence[int], noun: str) -> str:
    known = [count for count in counts if count]
    return count_range(known, noun) if known else ""


def _dates(runs: Sequence[RunRecord]) -> str:
    """Return `run from 2026-01-31 to 2026-02-02`; empty in records without dates."""
    days = sorted({day[:10] for run in runs for day in (run.result.started, run.result.finished) if day})
    if not days:
        return ""
    return f"run on {days[0]}" if len(days) == 1 else f"run from {days[0]} to {days[-1]}"
