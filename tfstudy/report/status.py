"""The progress of studies, as lines for the terminal. Reads run folders only, without torch."""

import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from statistics import mean
from typing import Any

from rich.text import Text

from tfstudy import RESULTS
from tfstudy.experiment.code_versions import missing_plugin, outdated_because
from tfstudy.report.markup import duration, plural
from tfstudy.report.slurm_jobs import queue_lines
from tfstudy.report.text_columns import GAP, STYLES, columns, run_lines, shortened_inside, terminal_width
from tfstudy.report.varying import varying_runs
from tfstudy.runs.commands import results_option, retry_command
from tfstudy.runs.find import find_study, studies
from tfstudy.runs.smoke_folder import is_smoke_folder
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
STATE = re.compile(rf"(?<!\S)({'|'.join(STYLES)})(?=[\s:]|$)")
OTHERS = 100  # runs with which the listed ones are compared
INTERVAL = 2.0  # seconds between two updates
SHORTEST_NAME = 7  # characters of a study or experiment on a narrow terminal
SHOWN = {RUNNING: 40, FAILED: 20}  # runs that have a line of their own, at most


def status(root: Path, name: str = "") -> list[str]:
    """Return the lines of a study, or a line for each study; `UserError` for an unknown name."""
    if name:
        folder = find_study(root, name)
        return study_lines(folder.name, study_runs(folder), root)
    listed = {study_name: runs for study_name in studies(root) if (runs := study_runs(root / study_name))}
    if not listed:
        return [f"no studies in {root}"]
    shown = _states(run for runs in listed.values() for run in runs)
    rows = [("study", f"{_header(shown)}  last hour")]
    rows += [(study, f"{_counts(runs, shown)}  {finished_last_hour(runs):9}") for study, runs in listed.items()]
    return _named(rows)


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
    settings = varying_runs([run.path for run in runs])
    return [
        {"path": str(run.path), "settings": varied, **{key: getattr(run, key) for key in keys}}
        for run, varied in zip(runs, settings, strict=True)
    ]


def styled(lines: Iterable[str]) -> list[Text]:
    """Return lines of `status` with a bold head and the states in their colours."""
    texts = [Text(line) for line in lines]
    for text in texts:
        for match in STATE.finditer(text.plain):
            text.stylize(STYLES[match[0]], *match.span())
    if texts:
        texts[0].stylize("bold")
    return texts


def watch(lines: Callable[[], Sequence[str]]) -> None:
    """Show the lines and update them every two seconds, until Ctrl-C."""
    from rich.live import Live

    from tfstudy.report.terminal import Terminal

    try:
        with Live(console=Terminal(), auto_refresh=False) as live:
            live.console.show_cursor(True)  # if the process is killed, nothing else would
            while True:
                text = Text("\n").join(styled(lines()))
                text.no_wrap, text.overflow = True, "crop"
                live.update(text, refresh=True)
                time.sleep(INTERVAL)
    except KeyboardInterrupt:
        return


def study_lines(name: str, runs: Sequence[RunStatus], root: Path = RESULTS) -> list[str]:
    """Return a study's runs counted by state, the running and failed ones one by one, and what is left to do."""
    if not runs:
        return [f"{name}: no runs"]
    groups: dict[tuple[str, str], list[RunStatus]] = {}
    for run in runs:
        arch_folder = run.path.parent
        groups.setdefault((arch_folder.parent.name, arch_folder.name), []).append(run)
    shown = _states(runs)
    rows = [(name, f"{'architecture':12}  {_header(shown)}")]
    rows += [
        (experiment, f"{arch:12}  {_counts(members, shown)}") for (experiment, arch), members in sorted(groups.items())
    ]
    rows.append(("all", f"{'':12}  {_counts(runs, shown)}"))
    lines = [*_named(rows), *_listed(runs, RUNNING, _progress), *_listed(runs, FAILED, lambda run: run.reason)]
    return [*lines, "", *columns([line] for line in [*_summary(name, runs, root), *_outdated(runs)])]


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


def _named(rows: Sequence[tuple[str, str]]) -> list[str]:
    """Return a line for each row; names are shortened where the terminal has no room for them."""
    longest = max(len(name) for name, _ in rows)
    room = terminal_width() - len(GAP) - max(len(text) for _, text in rows)
    width = min(longest, max(SHORTEST_NAME, room)) if terminal_width() else longest
    return [f"{shortened_inside(name, width):{width}}{GAP}{text}" for name, text in rows]


def _states(runs: Iterable[RunStatus]) -> list[str]:
    """Return the states that are shown: finished, and those that a run has."""
    found = {run.state for run in runs}
    return [state for state in STATES if state == FINISHED or state in found]


def _header(states: Sequence[str]) -> str:
    return "  ".join(f"{state:>{max(5, len(state))}}" for state in states)


def _counts(runs: Iterable[RunStatus], states: Sequence[str]) -> str:
    counts = Counter(run.state for run in runs)
    return "  ".join(f"{counts[state] or '.':>{max(5, len(state))}}" for state in states)


def _listed(runs: Sequence[RunStatus], state: str, text: Callable[[RunStatus], str]) -> list[str]:
    in_state = [run for run in runs if run.state == state]
    if not in_state:
        return []
    shown = in_state[: SHOWN[state]]
    others = [run.path for run in runs[:OTHERS] if run not in shown]
    settings = varying_runs([*(run.path for run in shown), *others])
    rows = [(run.name, varied, text(run)) for run, varied in zip(shown, settings, strict=False)]
    more = [f"  and {len(in_state) - len(shown)} more"] if len(in_state) > len(shown) else []
    return ["", f"{state}:", *run_lines(rows, name=0, cut=1), *more]


def _progress(run: RunStatus) -> str:
    if not run.steps:
        return "starting"
    if run.step >= run.steps:
        return "trained, evaluating"
    left = f", {duration(run.seconds_left)} left" if run.seconds_left is not None else ""
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
        lines.append(f"`{retry_command(root / name)}` reruns {plural(unsuccessful, 'failed or interrupted run')}")
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
    ] + [
        f"{count} of {len(ended)} finished runs are not compared with the current code: {missing}"
        for missing, count in Counter(
            missing_plugin(run.path, run.task, run.path.parent.name) for run in ended if run.task
        ).items()
        if missing
    ]


def end_lines(study: Path, results: Path) -> list[Text | str]:
    """Return how many runs of a study are in each state, and the command that shows their results."""
    runs = study_runs(study)
    counts = Counter(run.state for run in runs)
    listed = ", ".join(f"{counts[state]} {state}" for state in STATES if counts[state])
    lines: list[Text | str] = [f"{study}: {listed or 'no runs'}"]
    if counts[FINISHED] and not is_smoke_folder(results):  # tables leave smoke runs out
        lines.append(Text.assemble(("next: ", "bold"), f"tfstudy table {study.name}{results_option(results)}"))
    return lines
