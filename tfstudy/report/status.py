"""The progress of studies, as lines for the terminal. Reads run folders only, without torch."""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from statistics import mean

from tfstudy.experiment.code_versions import outdated_because
from tfstudy.report.markup import plural
from tfstudy.report.slurm_jobs import queue_lines
from tfstudy.runs.find import find_study, studies
from tfstudy.runs.progress import (
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
RESULTS = Path("results")
INTERVAL = 2.0  # seconds between two updates
SHOWN = {RUNNING: 40, FAILED: 20}  # runs that have a line of their own, at most


def status(root: Path, name: str = "") -> list[str]:
    """Return the lines of a study, or a line for each study; `UserError` for an unknown name."""
    if name:
        study = find_study(root, name)
        return study_lines(study.name, study_runs(study), root)
    listed = {study_name: runs for study_name in studies(root) if (runs := study_runs(root / study_name))}
    if not listed:
        return [f"no studies in {root}"]
    width = max(len("study"), *map(len, listed))
    lines = [f"{'study':{width}}  {_header()}  last hour"]
    for study_name, runs in listed.items():
        lines.append(f"{study_name:{width}}  {_counts(run.state for run in runs)}  {finished_last_hour(runs):9}")
    return lines


def watch(lines: Callable[[], Sequence[str]]) -> None:
    """Show the lines and update them every two seconds, until Ctrl-C."""
    from rich.live import Live
    from rich.text import Text

    from tfstudy.report.terminal import Terminal

    try:
        with Live(console=Terminal(), auto_refresh=False) as live:
            live.console.show_cursor(True)  # if the process is killed, nothing else would
            while True:
                live.update(Text("\n".join(lines()), no_wrap=True, overflow="crop"), refresh=True)
                time.sleep(INTERVAL)
    except KeyboardInterrupt:
        return


def study_lines(name: str, runs: Sequence[RunStatus], root: Path = RESULTS) -> list[str]:
    """Return a study's runs counted by state, the running and failed ones one by one, and what is left to do."""
    if not runs:
        return [f"{name}: no runs"]
    groups: dict[tuple[str, str], list[str]] = {}
    for run in runs:
        arch_folder = run.path.parent
        groups.setdefault((arch_folder.parent.name, arch_folder.name), []).append(run.state)
    width = max(len(name), *(len(experiment) for experiment, _ in groups))
    lines = [f"{name:{width}}  {'architecture':12}  {_header()}"]
    for (experiment, arch), states in sorted(groups.items()):
        lines.append(f"{experiment:{width}}  {arch:12}  {_counts(states)}")
    lines.append(f"{'all':{width}}  {'':12}  {_counts(run.state for run in runs)}")
    lines += _listed(runs, RUNNING, _progress)
    lines += _listed(runs, FAILED, lambda run: run.reason)
    return [*lines, "", *_summary(name, runs, root), *_outdated(runs)]


def finished_last_hour(runs: Iterable[RunStatus]) -> int:
    """Return the number of runs whose recorded end is in the last hour."""
    return sum(run.ended is not None and time.time() - run.ended < HOUR for run in runs)


def seconds_left(runs: Sequence[RunStatus]) -> float | None:
    """Return the seconds until all running and pending runs finish, with as many in parallel as now.

    Pending runs count as the mean of finished runs of the same architecture on the same data, or of all finished runs;
    None if no run finished.
    """
    finished = [run for run in runs if run.state == FINISHED and run.seconds]
    if not finished:
        return None
    by_group: dict[tuple[str, ...], list[float]] = {}
    for run in finished:
        by_group.setdefault(run.path.parts[-3:-1], []).append(run.seconds)
    overall = mean(run.seconds for run in finished)
    pending = sum(mean(by_group.get(run.path.parts[-3:-1], [overall])) for run in runs if run.state == PENDING)
    running = [run.seconds_left or 0.0 for run in runs if run.state == RUNNING]
    return max([(pending + sum(running)) / max(1, len(running)), *running])


def _header() -> str:
    return "  ".join(f"{state:>{max(5, len(state))}}" for state in STATES)


def _counts(states: Iterable[str]) -> str:
    counts = Counter(states)
    return "  ".join(f"{counts[state] or '.':>{max(5, len(state))}}" for state in STATES)


def _listed(runs: Sequence[RunStatus], state: str, text: Callable[[RunStatus], str]) -> list[str]:
    in_state = [run for run in runs if run.state == state]
    if not in_state:
        return []
    shown = in_state[: SHOWN[state]]
    width = max(len(run.name) for run in shown)
    more = [f"  and {len(in_state) - len(shown)} more"] if len(in_state) > len(shown) else []
    return ["", f"{state}:", *(f"  {run.name:{width}}  {text(run)}" for run in shown), *more]


def _progress(run: RunStatus) -> str:
    if not run.steps:
        return "starting"
    if run.step >= run.steps:
        return "trained, evaluating"
    left = f", about {duration(run.seconds_left)} of training left" if run.seconds_left is not None else ""
    return f"step {run.step:,} of {run.steps:,}{left}"


def _summary(name: str, runs: Sequence[RunStatus], root: Path) -> list[str]:
    counts = Counter(run.state for run in runs)
    ended, left = counts[FINISHED] + counts[DIVERGED], counts[RUNNING] + counts[PENDING]
    diverged = f", {counts[DIVERGED]} of them diverged" if counts[DIVERGED] else ""
    lines = [f"{ended} of {len(runs)} runs finished{diverged} ({finished_last_hour(runs)} in the last hour)"]
    seconds = seconds_left(runs)
    if left and seconds is not None:
        lines.append(f"{plural(left, 'run')} left: about {duration(seconds)}, {counts[RUNNING] or 1} in parallel")
    lines += (queue := queue_lines(root / name))
    if counts[PENDING] and not counts[RUNNING] and not queue:
        lines.append("nothing is running: repeat the grid's command to start the pending runs")
    if unsuccessful := counts[FAILED] + counts[INTERRUPTED]:
        option = f" --results {root}" if root != RESULTS else ""
        lines.append(f"`tfstudy retry {name}{option}` reruns the {unsuccessful} failed and interrupted runs")
    return lines


def _outdated(runs: Sequence[RunStatus]) -> list[str]:
    """A line for each reason why finished runs are outdated."""
    ended = [run for run in runs if run.state in (FINISHED, DIVERGED)]
    reasons = Counter(
        "; ".join(outdated_because(run.path, run.task, run.path.parent.name)) for run in ended if run.task
    )
    return [
        f"{count} of {len(ended)} finished runs are outdated: {reason} (details: `tfstudy why RUN`)"
        for reason, count in reasons.items()
        if reason
    ]


def duration(seconds: float) -> str:
    """Return `45 s`, `12 min`, `3 h 20 min` or `2 d 4 h`."""
    minutes = round(seconds / 60)
    if seconds < 90:
        return f"{seconds:.0f} s"
    if minutes < 90:
        return f"{minutes} min"
    if minutes < 48 * 60:
        return f"{minutes // 60} h {minutes % 60} min"
    return f"{minutes // 1440} d {minutes % 1440 // 60} h"
