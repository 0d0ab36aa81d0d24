"""The status of a run: finished, diverged, running, failed, interrupted or pending; and its log. Imports no torch.

A run is finished (or diverged) if it has a sound `result.json`, running while a process holds its `.lock`, failed if a
grid gave it up or one of its files is damaged, pending if a grid planned it and it has not started, and otherwise
interrupted.
"""

import os
import time
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

import msgspec

from tfstudy.errors import UserError
from tfstudy.runs.files import BrokenError, is_locked, open_file
from tfstudy.runs.find import find_runs
from tfstudy.runs.schema import Progress, Result
from tfstudy.runs.store import UNREADABLE, Run, failure_of, last_lines, open_run, read_progress
from tfstudy.runs.studyfile import exists, read_file

STATES = ("finished", "diverged", "running", "failed", "interrupted", "pending")
FINISHED, DIVERGED, RUNNING, FAILED, INTERRUPTED, PENDING = STATES
PLANS = ".plans"  # the folder of a study with the runs that its grids planned
MAX_PLAN = 1 << 24  # bytes


class Plan(msgspec.Struct):
    """A file in `PLANS`: the runs of a grid."""

    runs: dict[str, str]  # name and preset


PLAN = msgspec.json.Decoder(Plan)


class RunStatus(NamedTuple):
    """The state of a run, and how far it is."""

    path: Path
    state: str
    ended: float | None = None  # when it finished, in seconds since 1970; None if that is not recorded
    seconds: float = 0.0  # of training and evaluation, if it finished
    step: int = 0  # as last reported
    steps: int = 0  # planned; 0 if unknown
    seconds_left: float | None = None  # of training, if it is running and its speed is known
    reason: str = ""  # of a failure
    task: str = ""  # if it finished

    @property
    def name(self) -> str:
        """The folder within the study: `scan-length/lstm/s0-1a2b3c4d`."""
        return "/".join(self.path.parts[-3:])


def study_runs(study: Path) -> list[RunStatus]:
    """Every run of a study: those that started, by name, then those that a grid planned and that have not started."""
    started = [run for run in map(run_status, find_runs(study)) if run]
    names = {run.name for run in started}
    return started + [RunStatus(study / name, PENDING) for name in planned_runs(study) if name not in names]


def planned_runs(study: Path) -> dict[str, str]:
    """The runs that the study's grids planned: name and preset. Damaged plans are ignored."""
    planned: dict[str, str] = {}
    for path in sorted((study / PLANS).glob("*.json")):
        with suppress(OSError, BrokenError, *UNREADABLE):
            planned |= PLAN.decode(read_file(path, MAX_PLAN)).runs
    return planned


def run_status(path: Path) -> RunStatus | None:
    """The state of the run in this folder; None if it has not started."""
    return status_and_result(path)[0]


def status_and_result(path: Path) -> tuple[RunStatus | None, Result | None]:
    """The state of the run in this folder and its result, if it has one that is sound; both from one reading."""
    run = open_run(path)
    if run.result:
        return _finished(path, run.result), run.result
    return _unfinished(run), None


def _unfinished(run: Run) -> RunStatus | None:
    path, progress = run.path, read_progress(run.path) or Progress(steps=0)
    if is_locked(path):
        return RunStatus(path, RUNNING, step=progress.step, steps=progress.steps, seconds_left=seconds_left(progress))
    if failure := run.broken or failure_of(run):
        return RunStatus(path, FAILED, step=progress.step, steps=progress.steps, reason=str(failure))
    if run.config:
        return RunStatus(path, INTERRUPTED, step=progress.step, steps=progress.steps)
    return None


def _finished(path: Path, result: Result) -> RunStatus:
    state = DIVERGED if result.status == DIVERGED else FINISHED
    return RunStatus(path, state, _seconds(result.finished), result.seconds, result.step, result.step, task=result.task)


def _seconds(text: str) -> float | None:
    try:
        return datetime.fromisoformat(text).timestamp()
    except ValueError:
        return None


def seconds_left(progress: Progress) -> float | None:
    """Seconds until training ends, at the speed of the process that trains; None if that is unknown."""
    if progress.seconds_per_step is None:
        return None
    seconds = (progress.steps - progress.step) * progress.seconds_per_step
    return max(0.0, seconds - (time.time() - progress.updated))


def log_text(path: Path, count: int = 20, follow_run: bool = False) -> Iterator[str]:
    """Yield the last lines of the log, with `follow_run` what is added to it, and why the run failed if it did.

    `UserError` if there is nothing to yield: no log, no failure, and no process that `follow_run` could wait for.
    """
    log = path / "train.log"
    failure = failure_of(open_run(path))
    if not (exists(log) or failure or (follow_run and is_locked(path))):
        raise UserError(f"{path} has no log")
    size = log.lstat().st_size if os.path.lexists(log) else 0
    yield from (f"{line}\n" for line in last_lines(path, count))
    if follow_run:
        yield from follow(path, size)
    if failure := failure_of(open_run(path)):
        yield f"failed: {failure}\n"


def follow(path: Path, size: int, interval: float = 0.5) -> Iterator[str]:
    """Yield what is added to the log after its first `size` bytes, until no process works on the run.

    `interval` is in seconds.
    """
    while True:
        working = is_locked(path)  # checked before reading: a process that ends now has already written its last lines
        try:
            with open_file(path / "train.log") as file:
                file.seek(size)
                added = file.read()
        except (OSError, BrokenError):
            added = b""
        if added:
            size += len(added)
            yield added.decode(errors="replace")
        if not working:
            return
        time.sleep(interval)
