"""The progress of studies. Reads run folders only, without torch."""

import time
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import mean
from typing import Any

from tfstudy.analysis import labels
from tfstudy.experiment.code_versions import missing_plugin, outdated_because
from tfstudy.report.markup import duration, plural
from tfstudy.report.render import STYLES, Cells, Listing
from tfstudy.runs.files import resume_study_command
from tfstudy.runs.find import find_study, studies
from tfstudy.runs.status import (
    DIVERGED,
    FAILED,
    FINISHED,
    INTERRUPTED,
    PENDING,
    RUNNING,
    STATES,
    RunStatus,
    study_runs,
)

HOUR = 3600.0
LEFT = (PENDING, INTERRUPTED, FAILED)  # states of runs that no process works on and that have no result
OTHERS = 100  # runs with which the listed ones are compared
SHOWN = {RUNNING: 40, FAILED: 20}  # runs that have a line of their own, at most
Runs = Sequence[RunStatus]


def status(root: Path, name: str = "") -> Listing:
    """Return the number of runs in each state of all studies, or of one with its runs; `UserError` for an unknown name.

    Of a study the table has a row for each experiment and architecture. The running and failed runs are listed, and
    what is left to do.
    """
    folders = [find_study(root, name)] if name else [root / study for study in studies(root)]
    listed = {folder: runs for folder in folders if (runs := study_runs(folder)) or name}

    def values() -> list[dict[str, Any]]:
        return [_values(folder, runs, bool(name)) for folder, runs in listed.items()]

    if not name:
        names = {"study": [folder.name for folder in listed]}
        hour = {"last hour": [str(finished_last_hour(runs)) for runs in listed.values()]}
        table = _counts(names, list(listed.values()), hour)
        return Listing([table] if listed else [f"no studies in {root}"], (), values)
    [(study, runs)] = listed.items()
    if not runs:
        return Listing([f"{study.name}: no runs"], (), values)
    of_arch: dict[tuple[str, str], list[RunStatus]] = {}
    for run in runs:
        of_arch.setdefault((run.path.parts[-3], run.path.parts[-2]), []).append(run)
    rows = [*sorted(of_arch.items()), (("all", ""), runs)]
    names = {study.name: [key[0] for key, _ in rows], "architecture": [key[1] for key, _ in rows]}
    table = _counts(names, [own for _, own in rows])
    lines = [*_summary(study, runs), *_outdated(runs)]
    return Listing([table, *_listed(runs), "", *lines], (), values)


def _values(study: Path, runs: Runs, each: bool) -> dict[str, Any]:
    counts = Counter(run.state for run in runs)
    values: dict[str, Any] = {"study": study.name, "counts": {state: counts[state] for state in STATES}}
    values |= {"finished_last_hour": finished_last_hour(runs), "seconds_left": seconds_left(runs)}
    if each:
        keys = ("name", "state", "step", "steps", "seconds", "seconds_left", "reason")
        settings = labels.of_runs([run.path for run in runs])
        values["runs"] = [
            {"path": str(run.path), "settings": varied, **{key: getattr(run, key) for key in keys}}
            for run, varied in zip(runs, settings, strict=True)
        ]
    return values


def finished_last_hour(runs: Iterable[RunStatus]) -> int:
    """Return the number of runs whose recorded end is in the last hour."""
    return sum(run.ended is not None and time.time() - run.ended < HOUR for run in runs)


def seconds_left(runs: Runs) -> float | None:
    """Return the seconds until all runs that are left finish, with as many in parallel as now.

    A run counts as the mean of finished runs of the same architecture on the same data, or of all finished runs, an
    interrupted one by the steps that it has left; None if no run finished.
    """
    finished = [run for run in runs if run.state == FINISHED and run.seconds]
    if not finished:
        return None
    by_group: dict[tuple[str, ...], list[float]] = {}
    for run in finished:
        by_group.setdefault(run.path.parts[-3:-1], []).append(run.seconds)
    overall = mean(run.seconds for run in finished)
    waiting = sum(
        mean(by_group.get(run.path.parts[-3:-1], [overall])) * (1 - run.step / run.steps if run.steps else 1)
        for run in runs
        if run.state in LEFT
    )
    running = [run.seconds_left or 0.0 for run in runs if run.state == RUNNING]
    return max([(waiting + sum(running)) / max(1, len(running)), *running])


def _counts(names: dict[str, list[str]], groups: Sequence[Runs], more: dict[str, list[str]] | None = None) -> Cells:
    """Return a table with the number of runs of each group in each state that a run has, between other columns."""
    counts = [Counter(run.state for run in runs) for runs in groups]
    shown = [state for state in STATES if state == FINISHED or any(one[state] for one in counts)]
    numbers = {state: [str(one[state] or ".") for one in counts] for state in shown}
    return Cells({**names, **numbers, **(more or {})}, left=list(names), folded=frozenset(names))


def _listed(runs: Runs) -> list[Cells | str]:
    """Return a table of the runs that are running or failed, with what they differ in."""
    by_state = {state: [run for run in runs if run.state == state] for state in SHOWN}
    shown = [run for state, found in by_state.items() for run in found[: SHOWN[state]]]
    if not shown:
        return []
    others = [run.path for run in runs[:OTHERS] if run not in shown]
    settings = labels.of_runs([*(run.path for run in shown), *others])[: len(shown)]
    frame = {
        "state": [run.state for run in shown],
        "run": [run.name for run in shown],
        "settings": settings,
        "progress": [_progress(run) if run.state == RUNNING else run.reason for run in shown],
    }
    if not any(settings):
        del frame["settings"]
    more = [f"and {len(found) - SHOWN[state]} more {state}" for state, found in by_state.items()
            if len(found) > SHOWN[state]]  # fmt: skip
    return [Cells(frame, left=list(frame), folded=frozenset((*frame,)), headless=True, styles=STYLES), *more]


def _progress(run: RunStatus) -> str:
    if not run.steps:
        return "starting"
    if run.step >= run.steps:
        return "trained, evaluating"
    left = f", {duration(run.seconds_left)} left" if run.seconds_left is not None else ""
    return f"step {run.step:,} of {run.steps:,}{left}"


def _summary(study: Path, runs: Runs) -> list[str]:
    counts = Counter(run.state for run in runs)
    ended = counts[FINISHED] + counts[DIVERGED]
    diverged = f", {counts[DIVERGED]} of them diverged" if counts[DIVERGED] else ""
    lines = [f"{ended} of {len(runs)} runs finished{diverged} ({finished_last_hour(runs)} in the last hour)"]
    if left := len(runs) - ended:
        waiting = ", ".join(f"{counts[state]} {state}" for state in (RUNNING, *LEFT) if counts[state])
        seconds = seconds_left(runs)
        time_left = f": about {duration(seconds)}, {counts[RUNNING] or 1} in parallel" if seconds is not None else ""
        lines.append(f"{plural(left, 'run')} left ({waiting}){time_left}")
    if left and not counts[RUNNING]:
        lines.append(f"nothing is running; to run what is left: {resume_study_command(study)}")
    elif counts[FAILED] + counts[INTERRUPTED]:
        lines.append(f"to run what failed or was interrupted: {resume_study_command(study)}")
    return lines


def _outdated(runs: Runs) -> list[str]:
    """Return a line for each reason why finished runs are outdated, or can't be compared with the current code."""
    ended = [run for run in runs if run.state in (FINISHED, DIVERGED)]
    known = [(run.path, run.task, run.path.parent.name) for run in ended if run.task]
    old = Counter("; ".join(outdated_because(*one)) for one in known)
    missing = Counter(missing_plugin(*one) for one in known)
    of = f"of {len(ended)} finished runs are"
    return [
        *(f"{n} {of} outdated: {reason} (see `tfstudy result RUN --changes`)" for reason, n in old.items() if reason),
        *(f"{n} {of} not compared with the current code: {reason}" for reason, n in missing.items() if reason),
    ]


def end_line(study: Path) -> str:
    """Return how many runs of a study are in each state."""
    counts = Counter(run.state for run in study_runs(study))
    return f"{study}: {', '.join(f'{counts[state]} {state}' for state in STATES if counts[state]) or 'no runs'}"
