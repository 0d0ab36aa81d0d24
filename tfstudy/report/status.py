"""The progress of studies, as lines for the terminal and as values. Reads run folders only, without torch."""

import time
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import mean
from typing import Any

from rich.text import Text

from tfstudy.analysis import labels
from tfstudy.experiment.code_versions import missing_plugin, outdated_because
from tfstudy.report.markup import duration, plural
from tfstudy.report.terminal import coloured, columns
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
SHORTEST_NAME = 7  # characters of a study or experiment on a narrow terminal
LEFT = (PENDING, INTERRUPTED, FAILED)  # states of runs that no process works on and that have no result
OTHERS = 100  # runs with which the listed ones are compared
SHOWN = {RUNNING: 40, FAILED: 20}  # runs that have a line of their own, at most


def status_lines(root: Path, name: str = "") -> list[Text]:
    """Return the lines of a study, or a line for each study; `UserError` for an unknown name."""
    if name:
        folder = find_study(root, name)
        return study_lines(folder, study_runs(folder))
    listed = {study: runs for study in studies(root) if (runs := study_runs(root / study))}
    if not listed:
        return [Text(f"no studies in {root}")]
    shown = _states(run for runs in listed.values() for run in runs)
    rows = [("study", f"{_header(shown)}  last hour")]
    rows += [(study, f"{_counts(runs, shown)}  {finished_last_hour(runs):9}") for study, runs in listed.items()]
    return _table(rows)


def status_values(root: Path, name: str = "") -> list[dict[str, Any]]:
    """Return for each study, or for one with its runs, the number of runs in each state and the seconds left."""
    out = []
    for study in [find_study(root, name)] if name else [root / study for study in studies(root)]:
        runs = study_runs(study)
        if not runs and not name:
            continue
        counts = Counter(run.state for run in runs)
        values: dict[str, Any] = {"study": study.name, "counts": {state: counts[state] for state in STATES}}
        values |= {"finished_last_hour": finished_last_hour(runs), "seconds_left": seconds_left(runs)}
        out.append(values | ({"runs": _run_values(runs)} if name else {}))
    return out


def _run_values(runs: Sequence[RunStatus]) -> list[dict[str, Any]]:
    keys = ("name", "state", "step", "steps", "seconds", "seconds_left", "reason")
    settings = labels.of_runs([run.path for run in runs])
    return [
        {"path": str(run.path), "settings": varied, **{key: getattr(run, key) for key in keys}}
        for run, varied in zip(runs, settings, strict=True)
    ]


def study_lines(study: Path, runs: Sequence[RunStatus]) -> list[Text]:
    """Return a study's runs counted by state, the running and failed ones one by one, and what is left to do."""
    if not runs:
        return [Text(f"{study.name}: no runs")]
    groups: dict[tuple[str, str], list[RunStatus]] = {}
    for run in runs:
        groups.setdefault((run.path.parts[-3], run.path.parts[-2]), []).append(run)
    shown = _states(runs)
    rows = [(study.name, f"{'architecture':12}  {_header(shown)}")]
    rows += [(experiment, f"{arch:12}  {_counts(some, shown)}") for (experiment, arch), some in sorted(groups.items())]
    rows.append(("all", f"{'':12}  {_counts(runs, shown)}"))
    notes = columns([line] for line in [*_summary(study, runs), *_outdated(runs)])
    return [*_table(rows), *_listed(runs), Text(), *map(Text, notes)]


def finished_last_hour(runs: Iterable[RunStatus]) -> int:
    """Return the number of runs whose recorded end is in the last hour."""
    return sum(run.ended is not None and time.time() - run.ended < HOUR for run in runs)


def seconds_left(runs: Sequence[RunStatus]) -> float | None:
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


def _table(rows: Sequence[tuple[str, str]]) -> list[Text]:
    """Return a line for each row, the first in bold; long names are shortened on a narrow terminal."""
    head, *lines = map(Text, columns(rows, cut=(0,), shortest=SHORTEST_NAME))
    head.stylize("bold")
    return [head, *lines]


def _states(runs: Iterable[RunStatus]) -> list[str]:
    """Return the states that are shown: finished, and those that a run has."""
    found = {run.state for run in runs}
    return [state for state in STATES if state == FINISHED or state in found]


def _header(states: Sequence[str]) -> str:
    return "  ".join(f"{state:>{max(5, len(state))}}" for state in states)


def _counts(runs: Iterable[RunStatus], states: Sequence[str]) -> str:
    counts = Counter(run.state for run in runs)
    return "  ".join(f"{counts[state] or '.':>{max(5, len(state))}}" for state in states)


def _listed(runs: Sequence[RunStatus]) -> list[Text]:
    """Return a line for each run that is running or failed, with what it differs in, after an empty line."""
    by_state = {state: [run for run in runs if run.state == state] for state in SHOWN}
    shown = [run for state, found in by_state.items() for run in found[: SHOWN[state]]]
    others = [run.path for run in runs[:OTHERS] if run not in shown]
    settings = labels.of_runs([*(run.path for run in shown), *others])
    texts = [_progress(run) if run.state == RUNNING else run.reason for run in shown]
    rows = zip((run.state for run in shown), (run.name for run in shown), settings, texts, strict=False)
    left_out = {state: len(found[SHOWN[state] :]) for state, found in by_state.items()}
    more = [Text(f"and {count} more {state}") for state, count in left_out.items() if count]
    return [*([Text()] if shown else []), *map(coloured, columns(rows, cut=(2, 1))), *more]


def _progress(run: RunStatus) -> str:
    if not run.steps:
        return "starting"
    if run.step >= run.steps:
        return "trained, evaluating"
    left = f", {duration(run.seconds_left)} left" if run.seconds_left is not None else ""
    return f"step {run.step:,} of {run.steps:,}{left}"


def _summary(study: Path, runs: Sequence[RunStatus]) -> list[str]:
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


def _outdated(runs: Sequence[RunStatus]) -> list[str]:
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
