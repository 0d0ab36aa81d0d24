"""How far studies are, in lines for the terminal. Reads run folders alone, and loads no torch."""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from tfstudy.runs.progress import (
    DIVERGED,
    DONE,
    FAILED,
    INTERRUPTED,
    RUNNING,
    STATES,
    WAITING,
    Run,
    find_study,
    runs_of,
    studies,
)

HOUR = 3600.0
RESULTS = Path("results")
EVERY = 2.0  # seconds between two drawings
MOST = {RUNNING: 40, FAILED: 20}  # runs that are told one by one


def status(root: Path, name: str = "") -> list[str]:
    """What to print of a study, or one line on each if none is named; `UserError` if there is none of that name."""
    if name:
        study = find_study(root, name)
        return told(study.name, runs_of(study), root)
    names = studies(root)
    if not names:
        return [f"no study in {root} yet"]
    width = max(len("study"), *map(len, names))
    lines = [f"{'study':{width}}  {_heads()}  last hour"]
    for study_name in names:
        runs = runs_of(root / study_name)
        lines.append(f"{study_name:{width}}  {_counts(run.state for run in runs)}  {per_hour(runs):9}")
    return lines


def watch(lines: Callable[[], Sequence[str]]) -> None:
    """Draws the lines anew every 2 seconds, until Ctrl-C."""
    from rich.live import Live
    from rich.text import Text

    try:
        with Live(auto_refresh=False) as live:
            live.console.show_cursor(True)  # a killed process could not show it again
            while True:
                live.update(Text("\n".join(lines()), no_wrap=True, overflow="crop"), refresh=True)
                time.sleep(EVERY)
    except KeyboardInterrupt:
        return


def told(name: str, runs: Sequence[Run], root: Path = RESULTS) -> list[str]:
    """A study's runs by experiment and architecture; those at work and those given up one by one."""
    if not runs:
        return [f"{name}: no runs"]
    groups: dict[tuple[str, str], list[str]] = {}
    for run in runs:
        experiment, arch = run.path.parts[-3:-1]
        groups.setdefault((experiment, arch), []).append(run.state)
    width = max(len(name), *(len(experiment) for experiment, _ in groups))
    lines = [f"{name:{width}}  {'architecture':12}  {_heads()}"]
    for (experiment, arch), states in sorted(groups.items()):
        lines.append(f"{experiment:{width}}  {arch:12}  {_counts(states)}")
    lines += [f"{'all':{width}}  {'':12}  {_counts(run.state for run in runs)}", *_each(runs, RUNNING, _at_work)]
    return [*lines, *_each(runs, FAILED, lambda run: run.reason), "", *_outlook(name, runs, root)]


def per_hour(runs: Iterable[Run]) -> int:
    """Runs that ended in the last hour."""
    now = time.time()
    return sum(now - run.ended < HOUR for run in runs)


def _heads() -> str:
    return "  ".join(f"{state:>{max(5, len(state))}}" for state in STATES)


def _counts(states: Iterable[str]) -> str:
    counts = Counter(states)
    return "  ".join(f"{counts[state] or '.':>{max(5, len(state))}}" for state in STATES)


def _each(runs: Sequence[Run], state: str, words: Callable[[Run], str]) -> list[str]:
    chosen = [run for run in runs if run.state == state]
    if not chosen:
        return []
    shown = chosen[: MOST[state]]
    width = max(len(run.name) for run in shown)
    more = [f"  and {len(chosen) - len(shown)} more"] if len(chosen) > len(shown) else []
    return ["", f"{state}:", *(f"  {run.name:{width}}  {words(run)}" for run in shown), *more]


def _at_work(run: Run) -> str:
    if not run.steps:
        return "begun just now"
    left = f", about {duration(run.left)} of training left" if run.left is not None else ""
    return f"step {run.step:,} of {run.steps:,}{left}" if run.step < run.steps else "trained, is being evaluated"


def _outlook(name: str, runs: Sequence[Run], root: Path) -> list[str]:
    """The pace and what it means for the rest; what could be made again."""
    counts = Counter(run.state for run in runs)
    pace, rest = per_hour(runs), counts[RUNNING] + counts[WAITING]
    lines = [f"{counts[DONE] + counts[DIVERGED]} of {len(runs)} runs have ended, {pace} of them in the last hour"]
    if pace and rest:
        lines[0] += f"; at that pace about {duration(rest / pace * HOUR)} for the {rest} running and waiting"
    elif counts[WAITING] and not counts[RUNNING]:
        lines.append("nothing is at work: the grid's own command goes on with what is waiting")
    if again := counts[FAILED] + counts[INTERRUPTED]:
        elsewhere = f" --results {root}" if root != RESULTS else ""
        lines.append(f"`tfstudy retry {name}{elsewhere}` makes the {again} failed and interrupted again")
    return lines


def duration(seconds: float) -> str:
    """`45 s`, `12 min`, `3 h 20 min` or `2 d 4 h`."""
    minutes = round(seconds / 60)
    if seconds < 90:
        return f"{seconds:.0f} s"
    if minutes < 90:
        return f"{minutes} min"
    if minutes < 48 * 60:
        return f"{minutes // 60} h {minutes % 60} min"
    return f"{minutes // 1440} d {minutes % 1440 // 60} h"
