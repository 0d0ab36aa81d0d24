"""The progress of studies. Reads run folders only, without torch."""

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import groupby
from pathlib import Path
from statistics import mean
from typing import Any

from tfstudy import models, tasks
from tfstudy.analysis import labels
from tfstudy.report.markup import duration, plural
from tfstudy.report.render import STYLES, Cells, Listing
from tfstudy.runs.files import resume_study_command
from tfstudy.runs.find import (
    DIVERGED,
    FAILED,
    FINISHED,
    INTERRUPTED,
    PENDING,
    RUNNING,
    STATES,
    RunStatus,
    find_study,
    studies,
    study_runs,
)
from tfstudy.runs.store import open_run

LEFT = (PENDING, INTERRUPTED, FAILED)  # states of runs that no process works on and that have no result
OTHERS = 100  # runs with which the listed ones are compared
SHOWN = 40  # running and failed runs that have a line of their own, at most
Runs = Sequence[RunStatus]


def status(root: Path, name: str = "") -> Listing:
    """Return the number of runs in each state of all studies, or of one with its runs; `UserError` for an unknown name.

    Of a study the table has a row for each experiment and architecture. The running and failed runs are listed, and
    what is left to do.
    """
    folders = [find_study(root, name)] if name else [root / study for study in studies(root)]
    found = {folder: runs for folder in folders if (runs := study_runs(folder)) or name}

    def values() -> list[dict[str, Any]]:
        return [_values(folder, runs, bool(name)) for folder, runs in found.items()]

    if not any(found.values()):
        return Listing([f"{name}: no runs" if name else f"no studies in {root}"], (), values)
    if not name:
        return Listing([_counts(["study"], {(folder.name,): runs for folder, runs in found.items()})], (), values)
    [(study, runs)] = found.items()
    groups = {key: list(own) for key, own in groupby(sorted(runs, key=_group), _group)} | {("all", ""): runs}
    table = _counts([study.name, "architecture"], groups)
    return Listing([table, *_listed(runs), "", *summary(study, runs)], (), values)


def _group(run: RunStatus) -> tuple[str, ...]:
    """Return the experiment and the architecture of a run."""
    return run.path.parts[-3:-1]


def _counts(heads: Sequence[str], groups: Mapping[tuple[str, ...], Runs]) -> Cells:
    """Return a table with the number of runs of each group in each state that a run has."""
    counts = [Counter(run.state for run in runs) for runs in groups.values()]
    shown = [state for state in STATES if state == FINISHED or any(one[state] for one in counts)]
    numbers = {state: [str(one[state] or ".") for one in counts] for state in shown}
    names = dict(zip(heads, map(list, zip(*groups, strict=True)), strict=True))
    return Cells(names | numbers, left=heads, folded=frozenset(heads), names=len(heads))


def _values(study: Path, runs: Runs, each: bool) -> dict[str, Any]:
    counts = Counter(run.state for run in runs)
    values: dict[str, Any] = {"study": study.name, "counts": {state: counts[state] for state in STATES}}
    values["seconds_left"] = seconds_left(runs)
    if each:
        values["runs"] = [{"name": run.name, **run._asdict(), "path": str(run.path)} for run in runs]
    return values


def seconds_left(runs: Runs) -> float | None:
    """Return the seconds until all runs that are left finish, with as many in parallel as now; None if unknown.

    A run counts as the mean of finished runs of the same architecture on the same data, or of all finished runs, an
    interrupted one by the steps that it has left.
    """
    seconds: dict[tuple[str, ...], list[float]] = {}
    for run in (run for run in runs if run.state == FINISHED and run.seconds):
        seconds.setdefault(_group(run), []).append(run.seconds)
    if not seconds:
        return None
    overall = [value for own in seconds.values() for value in own]
    running = [run.seconds_left or 0.0 for run in runs if run.state == RUNNING]
    waiting = [
        mean(seconds.get(_group(run), overall)) * (1 - run.step / run.steps if run.steps else 1.0)
        for run in runs
        if run.state in LEFT
    ]
    return time_left([*waiting, *running], len(running)) or 0.0


def time_left(costs: Sequence[float | None], parallel: int) -> float | None:
    """Return the seconds that runs of these costs take, so many in parallel: at least those of the longest one.

    An unknown cost counts as the mean of the others; None if none is known.
    """
    known = [cost for cost in costs if cost is not None]
    return max(max(known), mean(known) * len(costs) / max(1, parallel)) if known else None


def _listed(runs: Runs) -> list[Cells | str]:
    """Return a table of the runs that are running or failed, with what they differ in."""

    def progress(run: RunStatus) -> str:
        at = f"step {run.step:,} of {run.steps:,}" if run.steps else "starting"
        return run.reason or (at if run.seconds_left is None else f"{at}, {duration(run.seconds_left)} left")

    found = [run for state in (RUNNING, FAILED) for run in runs if run.state == state]
    if not (shown := found[:SHOWN]):
        return []
    frame = {
        "state": [run.state for run in shown],
        "run": [run.name for run in shown],
        "settings": labels.of_runs([run.path for run in (*shown, *runs[:OTHERS])])[: len(shown)],
        "progress": [progress(run) for run in shown],
    }
    frame = {key: texts for key, texts in frame.items() if any(texts)}
    cells = Cells(frame, left=list(frame), folded=frozenset(frame), headless=True, styles=STYLES)
    return [cells, *([f"and {len(found) - SHOWN} more"] if len(found) > SHOWN else [])]


def summary(study: Path, runs: Runs) -> list[str]:
    """Return how many runs of a study finished, the time that is left, and how to run what no process works on."""
    counts = Counter(run.state for run in runs)
    ended, seconds = counts[FINISHED] + counts[DIVERGED], seconds_left(runs)
    left = f"; about {duration(seconds)} left, {counts[RUNNING] or 1} in parallel" if seconds else ""
    line = f"{study}: {ended} of {len(runs)} runs finished{left}"
    nothing, resume = "" if counts[RUNNING] else "nothing is running; ", resume_study_command(study)
    damaged = sum(run.state == FAILED and open_run(run.path).broken is not None for run in runs)
    stopped = counts[FAILED] - damaged + counts[INTERRUPTED] + counts[PENDING] * (not counts[RUNNING])
    plugin = any(run.state in LEFT and _is_foreign(run) for run in runs)
    return [
        line,
        *([f"{nothing}to run what is left: {resume}{' --plugin FILE' * plugin}"] if stopped else []),
        *([f"{plural(damaged, 'run')} damaged: its own command with --restart runs it again"] if damaged else []),
    ]


def _is_foreign(run: RunStatus) -> bool:
    """Return whether a run has a task or an architecture that is unknown here: its plug-in has to be named."""
    experiment, arch, _ = run.path.parts[-3:]
    return arch not in models.names() or not any(experiment.startswith(f"{name}-") for name in tasks.names())
