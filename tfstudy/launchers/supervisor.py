"""What runs next, what is tried again, what is given up: the same for every engine."""

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from tfstudy.launchers import End, Executor
from tfstudy.launchers.job import BUSY, DISK, DONE, MEMORY, REFUSED, Job
from tfstudy.runs.files import held
from tfstudy.runs.writer import note_failure

ATTEMPTS = 2
ELSEWHERE = 2.0  # seconds between two looks at runs that another process makes
WAITING, RUNNING, RETRYING, FINISHED, GIVEN_UP, OTHERS = "waiting", "running", "retrying", "done", "failed", "elsewhere"


class Event(NamedTuple):
    """A job that changed its state."""

    job: Job
    state: str
    seconds: float = 0.0  # how long its process worked
    reason: str = ""


class Summary(NamedTuple):
    """What became of all jobs."""

    done: list[Job]
    failed: dict[str, str]  # its path to the reason
    left: list[Job]  # never ended, since the first failure ended all


def supervise(
    jobs: Sequence[Job],
    engine: Executor,
    watch: Callable[[Event | None], None] = lambda _: None,
    fail_fast: bool = False,
) -> Summary:
    """Makes every job, in their order. A job that fails is tried once more, alone on its device, after the others.

    A job that another process holds is waited for. `watch` gets every change, and None some times a second. However
    this ends, the engine is stopped.
    """
    return _Supervisor(jobs, engine, watch, fail_fast).work()


class _Supervisor:
    def __init__(
        self, jobs: Sequence[Job], engine: Executor, watch: Callable[[Event | None], None], fail_fast: bool
    ) -> None:
        self.engine, self.watch, self.fail_fast = engine, watch, fail_fast
        self.waiting, self.again, self.others = [*jobs], list[Job](), list[Job]()
        self.running: dict[str, tuple[Job, float]] = {}  # by path: the job, and when it began
        self.attempts: dict[str, int] = {}
        self.summary = Summary([], {}, [])
        self._looked = 0.0

    def work(self) -> Summary:
        try:
            while self.waiting or self.again or self.others or self.running:
                if self.fail_fast and self.summary.failed:
                    running = [job for job, _ in self.running.values()]
                    self.summary.left.extend([*running, *self.waiting, *self.again, *self.others])
                    break
                self._start()
                for end in self.engine.wait(0.2):
                    self._ended(end)
                self._look_elsewhere()
                self.watch(None)
        finally:
            self.engine.stop()
        return self.summary

    def _start(self) -> None:
        while self.waiting and self.engine.room(self.waiting[0], False):
            self._begin(self.waiting.pop(0), False)
        while self.again and not self.waiting and self.engine.room(self.again[0], True):
            self._begin(self.again.pop(0), True)

    def _begin(self, job: Job, alone: bool) -> None:
        self.attempts[job.path] = self.attempts.get(job.path, 0) + 1
        self.running[job.path] = job, time.monotonic()
        self.watch(Event(job, RUNNING))
        self.engine.start(job, alone)

    def _ended(self, end: End) -> None:
        job, began = self.running.pop(end.job.path)
        seconds = time.monotonic() - began
        finished = (Path(job.path) / "result.json").exists()
        if finished and end.code not in (BUSY, REFUSED):  # a result is whole, however its process ended
            self.summary.done.append(job)
            self.watch(Event(job, FINISHED, seconds))
        elif end.code == BUSY:
            self.attempts[job.path] -= 1
            self.others.append(job)
            self.watch(Event(job, OTHERS))
        elif end.code != REFUSED and self.attempts[job.path] < ATTEMPTS:
            self.again.append(job)
            self.watch(Event(job, RETRYING, seconds, why(end)))
        else:
            self._give_up(job, why(end), seconds)

    def _give_up(self, job: Job, reason: str, seconds: float) -> None:
        self.summary.failed[job.path] = reason
        try:
            note_failure(Path(job.path), reason, self.attempts[job.path])
        except OSError as error:  # such as a full disk: the grid still goes on and tells it at the end
            reason = f"{reason}; {error.strerror}"
        self.watch(Event(job, GIVEN_UP, seconds, reason))

    def _look_elsewhere(self) -> None:
        if not self.others or time.monotonic() - self._looked < ELSEWHERE:
            return
        self._looked = time.monotonic()
        for job in list(self.others):
            if (Path(job.path) / "result.json").exists():
                self.others.remove(job)
                self.summary.done.append(job)
                self.watch(Event(job, FINISHED))
            elif not held(Path(job.path)):
                self.others.remove(job)
                self.waiting.append(job)
                self.watch(Event(job, WAITING))


def why(end: End) -> str:
    """In words, how a process failed."""
    if end.reason:
        return end.reason
    known = {
        MEMORY: "out of memory",
        DISK: "no space left on the disk",
        DONE: "it ended without a result",
        REFUSED: "refused: see its log",
    }
    if end.code in known:
        return known[end.code]
    return f"ended by signal {-end.code}" if end.code < 0 else f"exit code {end.code}"
