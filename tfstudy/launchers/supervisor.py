"""The order in which jobs run, what is retried and what is given up: the same for every executor."""

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from tfstudy.errors import quoted
from tfstudy.launchers import Executor, JobExit
from tfstudy.launchers.job import BUSY, DISK_FULL, ERROR, OUT_OF_MEMORY, REFUSED, SUCCEEDED, Job
from tfstudy.runs.files import is_locked
from tfstudy.runs.status import FAILED, FINISHED, PENDING, RUNNING
from tfstudy.runs.store import last_lines
from tfstudy.runs.writer import write_failure

ATTEMPTS = 2
POLL_SECONDS = 2.0  # between two checks of runs that another process executes
RETRYING, ELSEWHERE = "retrying", "running elsewhere"  # states of a job besides those of its run
REASONS = {
    OUT_OF_MEMORY: "out of memory",
    DISK_FULL: "no space left on the disk",
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


Watch = Callable[[Event | None], None]


def supervise(jobs: Sequence[Job], executor: Executor, watch: Watch = lambda _: None) -> Summary:
    """Run all jobs in order. A failed job is retried once, with no other run on its device, after all others.

    If another process holds a run's lock, wait for it. `watch` is called with each change of state, and with None a
    few times per second. The executor is always stopped on exit.
    """
    supervisor = _Supervisor(jobs, executor, watch)
    try:
        while supervisor.open_jobs():
            supervisor.step()
    finally:
        executor.stop()
    return supervisor.summary


class _Supervisor:
    def __init__(self, jobs: Sequence[Job], executor: Executor, watch: Watch) -> None:
        self.executor, self.watch = executor, watch
        self.pending, self.retries, self.elsewhere = [*jobs], list[Job](), list[Job]()
        self.running: dict[str, tuple[Job, float]] = {}  # by path: the job and its start time
        self.attempts: dict[str, int] = {}
        self.summary = Summary([], {})
        self._polled = 0.0

    def open_jobs(self) -> list[Job]:
        return [*(job for job, _ in self.running.values()), *self.pending, *self.retries, *self.elsewhere]

    def step(self) -> None:
        """Start what has room, then handle the jobs that end within 0.2 s."""
        while self.pending and self.executor.has_room(self.pending[0], False):
            self._start(self.pending.pop(0), False)
        while self.retries and not self.pending and self.executor.has_room(self.retries[0], True):
            self._start(self.retries.pop(0), True)
        for job_exit in self.executor.wait(0.2):
            self._handle(job_exit)
        self._poll_elsewhere()
        self.watch(None)

    def _start(self, job: Job, exclusive: bool) -> None:
        self.attempts[job.path] = self.attempts.get(job.path, 0) + 1
        self.running[job.path] = job, time.monotonic()
        self.watch(Event(job, RUNNING))
        self.executor.start(job, exclusive)

    def _handle(self, job_exit: JobExit) -> None:
        job, started = self.running.pop(job_exit.job.path)
        seconds = time.monotonic() - started
        if job.finished and job_exit.code not in (BUSY, REFUSED):  # a result is whole, however its process ended
            self._finish(job, seconds)
        elif job_exit.code == BUSY:
            self.attempts[job.path] -= 1
            self.elsewhere.append(job)
            self.watch(Event(job, ELSEWHERE))
        elif job_exit.code != REFUSED and self.attempts[job.path] < ATTEMPTS:
            self.retries.append(job)
            self.watch(Event(job, RETRYING, seconds, reason_of(job_exit)))
        else:
            self._give_up(job, reason_of(job_exit), seconds)

    def _finish(self, job: Job, seconds: float = 0.0) -> None:
        self.summary.finished.append(job)
        self.watch(Event(job, FINISHED, seconds))

    def _give_up(self, job: Job, reason: str, seconds: float) -> None:
        self.summary.failed[job.path] = reason
        try:
            write_failure(Path(job.path), reason, self.attempts[job.path])
        except OSError as error:  # such as a full disk: the other jobs continue, and the summary has the reason
            reason = f"{reason}; {error.strerror}"
        self.watch(Event(job, FAILED, seconds, reason))

    def _poll_elsewhere(self) -> None:
        if not self.elsewhere or time.monotonic() - self._polled < POLL_SECONDS:
            return
        self._polled = time.monotonic()
        for job in list(self.elsewhere):
            if job.finished:
                self.elsewhere.remove(job)
                self._finish(job)
            elif not is_locked(Path(job.path)):
                self.elsewhere.remove(job)
                self.pending.append(job)
                self.watch(Event(job, PENDING))


def refusal(path: Path) -> str:
    """Return why a run was refused: the last error in its log."""
    errors = [line.removeprefix(ERROR) for line in last_lines(path) if line.startswith(ERROR)]
    return f"refused: {quoted(errors[-1], limit=300, marks='') if errors else 'see its log'}"


def reason_of(job_exit: JobExit) -> str:
    """Return why a process failed, in words."""
    code = job_exit.code
    reason = job_exit.reason or (refusal(Path(job_exit.job.path)) if code == REFUSED else REASONS.get(code, ""))
    return reason or (f"ended by signal {-code}" if code < 0 else f"exit code {code}")
