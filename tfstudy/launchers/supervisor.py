"""The order in which jobs run, what is retried and what is given up: the same for every executor."""

import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from tfstudy.errors import UserError, quoted
from tfstudy.launchers import Executor, JobExit
from tfstudy.launchers.job import BUSY, DISK_FULL, ERROR, INTERRUPTED, REFUSED, SUCCEEDED, Job
from tfstudy.runs.files import is_locked
from tfstudy.runs.find import FAILED, FINISHED, RUNNING
from tfstudy.runs.store import last_lines, write_failure

ATTEMPTS = 2
POLL_SECONDS = 2.0  # between two checks of runs that another process executes
RETRYING, ELSEWHERE = "retrying", "running elsewhere"  # states of a job besides those of its run
REASONS = {
    DISK_FULL: "no space left on the disk",
    INTERRUPTED: "interrupted",
    SUCCEEDED: "the process ended without a result",
}


class Event(NamedTuple):
    """A job that changed its state."""

    job: Job
    state: str  # pending, running, finished or failed, as of a run; RETRYING or ELSEWHERE
    seconds: float = 0.0  # that its process ran
    reason: str = ""


Watch = Callable[[Event], None]


def supervise(jobs: Sequence[Job], executor: Executor, watch: Watch = lambda _: None) -> dict[str, str]:
    """Run all jobs in order, and return why runs failed, by their paths.

    A failed job is retried once, with no other run on its device, after all others. If another process holds a run's
    lock, wait for it. `watch` is called with each change of state. The executor is always stopped on exit.
    """
    pending, retries, elsewhere = [*jobs], list[Job](), list[Job]()
    running: dict[str, float] = {}  # by path: the start time
    attempts, failures, polled = Counter[str](), dict[str, str](), 0.0

    def start(job: Job, exclusive: bool) -> None:
        attempts[job.path] += 1
        running[job.path] = time.monotonic()
        watch(Event(job, RUNNING))
        executor.start(job, exclusive)

    def end(job: Job, code: int, reason: str) -> None:
        seconds = time.monotonic() - running.pop(job.path)
        if job.finished and code not in (BUSY, REFUSED):  # a result is whole, however its process ended
            watch(Event(job, FINISHED, seconds))
        elif code == BUSY:
            attempts[job.path] -= 1
            elsewhere.append(job)
            watch(Event(job, ELSEWHERE))
        elif code != REFUSED and attempts[job.path] < ATTEMPTS:
            retries.append(job)
            watch(Event(job, RETRYING, seconds, reason))
        else:
            failures[job.path] = reason
            try:
                write_failure(Path(job.path), reason, attempts[job.path])
            except (OSError, UserError) as error:  # a full disk, or a link: the other jobs continue
                reason = f"{reason}; {getattr(error, 'strerror', None) or error}"
            watch(Event(job, FAILED, seconds, reason))

    try:
        while pending or retries or elsewhere or running:
            while pending and executor.has_room(False):
                start(pending.pop(0), False)
            while retries and executor.has_room(True):  # and so none is pending
                start(retries.pop(0), True)
            for ended in executor.wait(0.2):
                end(ended.job, ended.code, reason_of(ended))
            if elsewhere and time.monotonic() - polled > POLL_SECONDS:
                polled, looked_at = time.monotonic(), list(elsewhere)
                for job in looked_at:
                    if job.finished or not is_locked(Path(job.path)):
                        elsewhere.remove(job)
                        watch(Event(job, FINISHED)) if job.finished else pending.append(job)
    finally:
        executor.stop()
    return failures


def reason_of(job_exit: JobExit) -> str:
    """Return why a process failed, in words; if nothing else says it, it is the last error in the run's log."""
    code, known = job_exit.code, job_exit.reason or REASONS.get(job_exit.code)
    if known or code < 0:
        return known or f"ended by signal {-code}"
    errors = [line.removeprefix(ERROR) for line in last_lines(Path(job_exit.job.path)) if line.startswith(ERROR)]
    why = quoted(errors[-1], limit=300, marks="") if errors else "see its log"
    return f"refused: {why}" if code == REFUSED else why
