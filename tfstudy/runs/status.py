"""The status of a run: finished, diverged, running, failed, interrupted or pending; and its log. Imports no torch.

A run is finished (or diverged) if it has a sound `result.json`, running while a process holds its `.lock`, failed if a
grid gave it up or one of its files is damaged, pending if a grid planned it and it has not started, and otherwise
interrupted.
"""

import time
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from tfstudy.config.trees import flat_yaml
from tfstudy.errors import UserError
from tfstudy.runs.files import BrokenError, is_locked
from tfstudy.runs.find import find_runs
from tfstudy.runs.schema import Resumed, Started
from tfstudy.runs.store import METRICS, UNREADABLE, Run, last_lines, open_run, read_metrics
from tfstudy.runs.studyfile import PLANS, read_file, study_zips

STATES = ("finished", "diverged", "running", "failed", "interrupted", "pending")
FINISHED, DIVERGED, RUNNING, FAILED, INTERRUPTED, PENDING = STATES
MAX_PLAN = 1 << 24  # bytes


class Plan(msgspec.Struct):
    """A file in the folder `PLANS` of a study: the runs of a grid, by name."""

    runs: dict[str, str]  # presets
    configs: dict[str, dict[str, Any]] = {}


PLAN = msgspec.json.Decoder(Plan)


class RunStatus(NamedTuple):
    """The state of a run, and how far it is."""

    path: Path
    state: str
    seconds: float = 0.0  # of training and evaluation, if it finished
    step: int = 0  # of its last metrics
    steps: int = 0  # planned; 0 if unknown
    seconds_left: float | None = None  # of training, if it is running and its speed is known
    reason: str = ""  # of a failure

    @property
    def name(self) -> str:
        """The folder within the study: `scan-length/lstm/s0-1a2b3c4d`."""
        return "/".join(self.path.parts[-3:])


def study_runs(study: Path) -> list[RunStatus]:
    """Every run of a study: those that started, by name, then those that a grid planned and that have not started."""
    started = [run for run in map(run_status, map(open_run, find_runs(study))) if run]
    names = {run.name for run in started}
    return started + [RunStatus(study / name, PENDING) for name in read_plan(study).runs if name not in names]


def read_plan(study: Path) -> Plan:
    """What all grids of a study planned. A plan in its folder hides a packed one; damaged ones are ignored."""
    plan = Plan({})
    packed = {name: one for one in reversed(study_zips(study)) for name in one.plans}
    for name in sorted({*packed, *(f"{PLANS}/{path.name}" for path in (study / PLANS).glob("*.json"))}):
        with suppress(OSError, BrokenError, *UNREADABLE):
            own = (study / name).exists()
            found = PLAN.decode(read_file(study / name, MAX_PLAN) if own else packed[name].read(name, MAX_PLAN))
            plan = Plan(plan.runs | found.runs, plan.configs | found.configs)
    return plan


def run_status(run: Run) -> RunStatus | None:
    """The state of a run; None if it has not started."""
    if result := run.result:
        return RunStatus(run.path, result.status, result.seconds, result.step, result.step)
    rows, steps = [(0, "", 0.0)], flat_yaml(run.config).get("train.steps")
    with suppress(UserError):
        rows += read_metrics(run.path)
    status = RunStatus(run.path, INTERRUPTED, step=rows[-1][0], steps=steps if isinstance(steps, int) else 0)
    if is_locked(run.path):
        return status._replace(state=RUNNING, seconds_left=seconds_left(status, run))
    if failure := run.broken or run.failure:
        return status._replace(state=FAILED, reason=str(failure))
    return status if run.config else None


def seconds_left(status: RunStatus, run: Run) -> float | None:
    """Seconds until training ends, at the speed at which the process has written metrics; None before it has."""
    start, first = 0.0, 0
    for event in run.events:
        if isinstance(event, Started):
            with suppress(ValueError):
                start, first = datetime.fromisoformat(event.time).timestamp(), 0
        elif isinstance(event, Resumed):
            first = event.step
    if not start or status.step <= first:
        return None
    written = (status.path / METRICS).stat().st_mtime
    seconds = (status.steps - status.step) * (written - start) / (status.step - first)
    return max(0.0, seconds - (time.time() - written))


def log_text(path: Path) -> str:
    """The last lines of the log, and why the run failed if it did; `UserError` if there is neither."""
    lines, failure = last_lines(path), open_run(path).failure
    if not (lines or failure):
        raise UserError(f"{path} has no log")
    return "\n".join([*lines, *([f"failed: {failure}"] if failure else [])])
