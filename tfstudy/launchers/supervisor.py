"""The order in which jobs run, what is retried and what is given up: the same for every executor."""

import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from tfstudy.errors import UserError, quoted
from tfstudy.launchers import Executor, JobExit
from tfstudy.launchers.job import BUSY, DISK_FULL, ERROR, INTERRUPTED, OUT_OF_MEMORY, REFUSED, SUCCEEDED, Job
from tfstudy.runs.files import is_locked
from tfstudy.runs.find import FAILED, FINISHED, RUNNING
from tfstudy.runs.store import last_lines, write_failure

ATTEMPTS = 2
POLL_SECONDS = 2.0  # between two checks of runs that another process executes
RETRYING, ELSEWHERE = "retrying", "running elsewhere"  # states of a job besides those of its run
REASONS = {
    OUT_OF_MEMORY: "out of memory",
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


class Summary(NamedTuple):
    """The outcome of all jobs."""

    finished: list[Job]
    failed: dict[str, str]  # path of the run to the reason


Watch = Callable[[Event], None]


def supervise(jobs: Sequence[Job], executor: Executor, watch: Watch = lambda _: None) -> Summary:
    """Run all jobs in order. A failed job is retried once, with no other run on its device, after all others.

    If another process holds a run's lock, wait for it. `watch` is called with each change of state. The
    executor is always stopped on exit.
    """
    pending, retries, elsewhere = [*jobs], list[Job](), list[Job]()
    running: dict[str, float] = {}  # by path: the start time
    attempts, summary, polled = Counter[str](), Summary([], {}), 0.0

    def start(job: Job, exclusive: bool) -> None:
        attempts[job.path] += 1
        running[job.path] = time.monotonic()
        watch(Event(job, RUNNING))
        executor.start(job, exclusive)

    def finish(job: Job, seconds: float = 0.0) -> None:
        summary.finished.append(job)
        watch(Event(job, FINISHED, seconds))

    def end(job: Job, code: int, reason: str) -> None:
        seconds = time.monotonic() - running.pop(job.path)
        if job.finished and code not in (BUSY, REFUSED):  # a result is whole, however its process ended
            finish(job, seconds)
        elif code == BUSY:
            attempts[job.path] -= 1
            elsewhere.append(job)
            watch(Event(job, ELSEWHERE))
        elif code != REFUSED and attempts[job.path] < ATTEMPTS:
            retries.append(job)
            watch(Event(job, RETRYING, seconds, reason))
        else:
            summary.failed[job.path] = reason
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
                        finish(job) if job.finished else pending.append(job)
    finally:
        executor.stop()
    return summary


def reason_of(job_exit: JobExit) -> str:
    """Return why a process failed, in words; of a run that was refused it is the last error in its log."""
    code, reason = job_exit.code, job_exit.reason
    if code == REFUSED and not reason:
        lines = last_lines(Path(job_exit.job.path))
        errors = [line.removeprefix(ERROR) for line in lines if line.startswith(ERROR)]
        return f"refused: {quoted(errors[-1], limit=300, marks='') if errors else 'see its log'}"
    return reason or REASONS.get(code) or (f"ended by signal {-code}" if code < 0 else f"exit code {code}")
