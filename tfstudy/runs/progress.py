"""How far runs are: finished, at work, given up, stopped, or only planned. Reads little of each, and loads no torch.

A run is finished when `result.json` is there, at work while a process holds `.lock`, given up by a grid when
`failed.json` is there, and else interrupted.
"""

import json
import os
import re
import time
from pathlib import Path
from typing import NamedTuple

from tasks.errors import UserError, one_of
from tfstudy.runs.files import held, tail
from tfstudy.runs.reader import find_runs

STATES = ("done", "diverged", "running", "failed", "interrupted", "waiting")
DONE, DIVERGED, RUNNING, FAILED, INTERRUPTED, WAITING = STATES
PLANS = ".plans"  # a study's folder of what its grids planned
HEAD = 4096  # bytes of a result in which its status is looked for first
LAST = 4096  # bytes that hold the last row of metrics.csv
STATUS = re.compile(rb'^ "status": "(\w+)"', re.MULTILINE)


class Run(NamedTuple):
    """How far a run is."""

    path: Path
    state: str
    ended: float = 0.0  # when its result was written, in seconds since 1970
    step: int = 0
    steps: int = 0  # 0 if not known
    left: float | None = None  # seconds of training, if it trains now and its speed is known
    reason: str = ""  # of a failure

    @property
    def name(self) -> str:
        """The folder within the study: `scan-length/lstm/s0-1a2b3c4d`."""
        return "/".join(self.path.parts[-3:])


def studies(root: Path) -> list[str]:
    """The studies of these results."""
    try:
        return sorted(e.name for e in os.scandir(root) if e.is_dir() and not e.name.startswith("."))
    except OSError:
        return []


def find_study(root: Path, name: str) -> Path:
    """The folder of a study; `UserError` if there is none of that name."""
    there = studies(root)
    if not there:
        raise UserError(f"there is no study in {root}; --results names the folder of all results")
    if (Path(name) / "config.yaml").exists():
        raise UserError(f"{name} is a run, not a study; `tfstudy result {name}` tells what it measured")
    return root / one_of("study", name.rstrip("/"), there)


def runs_of(study: Path) -> list[Run]:
    """Every run of a study: those that were begun, in order, then those that a grid planned and did not begin."""
    begun = [run for run in map(read_run, find_runs(study)) if run]
    names = {run.name for run in begun}
    return begun + [Run(study / name, WAITING) for name in plans(study) if name not in names]


def plans(study: Path) -> dict[str, str]:
    """What the study's grids planned: each run's name, with the name of its preset."""
    out: dict[str, str] = {}
    for path in sorted((study / PLANS).glob("*.json")):
        try:
            out |= {str(name): str(preset) for name, preset in json.loads(path.read_text())["runs"].items()}
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            continue  # a damaged plan tells nothing, and hides no run
    return out


def read_run(path: Path) -> Run | None:
    """How far the run of this folder is; None if it was not begun."""
    if finished := _finished(path / "result.json"):
        return Run(path, *finished)
    step, steps = last_step(path), planned_steps(path)
    if held(path):
        return Run(path, RUNNING, step=step, steps=steps, left=_seconds_left(path, step, steps))
    if (path / "failed.json").exists():
        return Run(path, FAILED, step=step, steps=steps, reason=failure(path))
    return Run(path, INTERRUPTED, step=step, steps=steps) if (path / "config.yaml").exists() else None


def _finished(path: Path) -> tuple[str, float] | None:
    """A result's state and time; of its text only as much is read as is needed."""
    try:
        with path.open("rb") as file:
            text, ended = file.read(HEAD), os.fstat(file.fileno()).st_mtime
            found = STATUS.search(text) or STATUS.search(text + file.read())
    except OSError:
        return None
    return (DIVERGED if found and found[1] == b"diverged" else DONE), ended


def last_step(path: Path) -> int:
    """The step of the last whole row of `metrics.csv`; 0 without one."""
    rows = tail(path / "metrics.csv", LAST).split("\n")[:-1]  # a last line without its end is half-written
    found = re.match(r"(\d+),", rows[-1]) if rows else None
    return int(found[1]) if found else 0


def planned_steps(path: Path) -> int:
    """`train.steps` of `config.yaml`, found without reading all of it as YAML, which takes milliseconds; else 0."""
    try:
        text = (path / "config.yaml").read_text(errors="replace")
    except OSError:
        return 0
    found = re.search(r"^train:\n(?: .*\n)*? +steps: (\d+)$", text, re.MULTILINE)
    return int(found[1]) if found else 0


def _seconds_left(path: Path, step: int, steps: int) -> float | None:
    """By the speed since this process began, which is when it added itself to `env.json`."""
    try:
        began, row = (path / "env.json").stat().st_mtime, (path / "metrics.csv").stat().st_mtime
    except OSError:
        return None
    resumed = re.findall(r"^resumed after step (\d+)$", tail(path / "train.log", 1_000_000), re.MULTILINE)
    first = int(resumed[-1]) if resumed else 0
    if step <= first or row <= began or not steps:
        return None
    return max(0.0, (steps - step) * (row - began) / (step - first) - (time.time() - row))


def failure(path: Path) -> str:
    """Why a run was given up, in a line; empty if it was not."""
    try:
        note = json.loads((path / "failed.json").read_text())
        times = f" (tried {note['attempts']} times)" if note["attempts"] > 1 else ""
        return f"{note['reason']}{times}"
    except FileNotFoundError:
        return ""
    except (OSError, ValueError, KeyError, TypeError):
        return "its failed.json can't be read"
