"""The progress of a batch of jobs: a live table on a terminal, elsewhere a line for each run that ends."""

import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from statistics import mean
from types import TracebackType

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from tfstudy.errors import UserError
from tfstudy.launchers import Job
from tfstudy.launchers.batch import Batch
from tfstudy.launchers.supervisor import ELSEWHERE, RETRYING, Event
from tfstudy.report.markup import duration
from tfstudy.report.status import HOUR
from tfstudy.report.terminal import Terminal
from tfstudy.runs.display import headline
from tfstudy.runs.reader import read_progress, read_result
from tfstudy.runs.schema import Progress
from tfstudy.runs.status import FAILED, FINISHED, PENDING, RUNNING

REDRAW_SECONDS = 0.5
RESERVED_LINES = 8  # of the terminal that are not running jobs
WORDS = {RETRYING: "will be retried", ELSEWHERE: "is running in another process"}


class BatchProgress:
    """Prints every run that ends, the number of runs left and the estimated time. A context manager.

    On exit the terminal is restored, however the batch ends.
    """

    def __init__(
        self,
        batch: Batch,
        max_parallel: Callable[[], int],
        write: Callable[[str], None] = print,
        console: Console | None = None,
    ) -> None:
        jobs = batch.pending
        self._write, self._console, self._max_parallel = write, console or Terminal(), max_parallel
        self._estimates = {job.path: batch.seconds[job.path] for job in jobs if job.path in batch.seconds}
        self._took: dict[str, float] = {}  # path of a job that finished here to its seconds
        self._open = {job.path: job for job in jobs}
        self._running: dict[str, float] = {}  # path to start time
        self._total, self._failed = len(jobs), 0
        self._ends: deque[float] = deque()  # within the last hour
        self._last: deque[str] = deque(maxlen=3)
        self._started, self._drawn = time.monotonic(), float("-inf")
        self._live: Live | None = None

    def __enter__(self) -> "BatchProgress":
        if self._total and self._console.is_terminal and not self._console.is_dumb_terminal:
            self._live = Live(console=self._console, auto_refresh=False)
            self._live.start()
            self._console.show_cursor(True)  # a killed process could not show it again
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        if self._live:
            self._live.update(Group(*self._summary()), refresh=True)
            self._live.stop()
            self._live = None

    def __call__(self, event: Event | None) -> None:
        if event:
            self._count(event)
            if event.state not in (RUNNING, PENDING):
                self._print(event)
        if self._live and time.monotonic() - self._drawn > REDRAW_SECONDS:
            self._live.update(Group(*self._summary(), *self._table()), refresh=True)
            self._drawn = time.monotonic()

    def _count(self, event: Event) -> None:
        path = event.job.path
        if event.state == RUNNING:
            self._running[path] = time.monotonic()
            return
        self._running.pop(path, None)
        if event.state in (FINISHED, FAILED) and path in self._open:
            del self._open[path]
            self._failed += event.state == FAILED
        if event.state == FINISHED:
            self._ends.append(time.monotonic())
            if seconds := _whole_seconds(event):
                self._took[path] = seconds

    def _print(self, event: Event) -> None:
        line = f"[{self._total - len(self._open)}/{self._total}] {_event_line(event)}"
        if not self._live:
            self._write(line + (self._time_left() if event.state == FINISHED else ""))
        elif event.state == FINISHED:
            self._last.append(line)
        else:  # stays on the screen, above the table
            self._live.console.print(Text(line))

    def seconds_left(self) -> float | None:
        """The seconds until all runs have ended: their estimates, corrected by the runs that have finished.

        A run without an estimate counts as the mean of the others. None if nothing is known.
        """
        known = [path for path in self._took if path in self._estimates]
        estimated = sum(self._estimates[path] for path in known)
        correction = sum(self._took[path] for path in known) / estimated if estimated else 1.0
        if not (given := self._took or self._estimates):
            return None
        average, now, parallel = mean(given.values()), time.monotonic(), max(1, self._max_parallel())
        costs = {
            path: self._estimates[path] * correction if path in self._estimates else average for path in self._open
        }
        left = [max(0.0, cost - now + self._running.get(path, now)) for path, cost in costs.items()]
        return max(max(left), sum(left) / parallel) if left else 0.0

    def _time_left(self) -> str:
        seconds = self.seconds_left()
        return f"; about {duration(seconds)} left" if seconds is not None and seconds >= 1 else ""

    def _summary(self) -> list[Text]:
        now = time.monotonic()
        while self._ends and now - self._ends[0] > HOUR:
            self._ends.popleft()
        hours = min(now - self._started, HOUR) / HOUR
        pace = f"; {len(self._ends) / hours:,.0f} runs per hour" if self._ends and hours else ""
        finished = self._total - len(self._open) - self._failed
        counts = f"{finished} finished, {self._failed} failed, {len(self._open)} left of {self._total}"
        lines = (*self._last, f"{counts}{self._time_left()}{pace}")
        return [Text(line, no_wrap=True, overflow="ellipsis") for line in lines]

    def _table(self) -> list[Text | Table]:
        """The running jobs, as many as the terminal has lines for."""
        table = Table(box=None, pad_edge=False, show_header=False)
        lines = max(1, self._console.height - RESERVED_LINES)
        now = time.monotonic()
        for path, started in list(self._running.items())[:lines]:
            job = self._open[path]
            report = read_progress(Path(path)) or Progress(job.config["train"]["steps"])
            trained = 0 < report.steps <= report.step
            step = "trained, evaluating" if trained else f"step {report.step:,} of {report.steps:,}"
            table.add_row(job.name, step, duration(now - started))
        more = len(self._running) - lines
        return [table, *([Text(f"and {more} more")] if more > 0 else [])]


def _event_line(event: Event) -> str:
    seconds = f" in {duration(event.seconds)}" if event.seconds else ""
    if event.state == FINISHED:
        return f"{event.job.name}: {_outcome(event.job)}{seconds}"
    reason = f": {event.reason}" if event.reason else ""
    return f"{event.job.name} {WORDS.get(event.state, event.state)}{reason}{seconds}"


def _whole_seconds(event: Event) -> float:
    """Return the seconds of a finished run, those before it was resumed included; 0 if another process ran it."""
    try:
        return max(event.seconds, read_result(Path(event.job.path)).seconds) if event.seconds else 0.0
    except UserError:
        return event.seconds


def _outcome(job: Job) -> str:
    try:
        return headline(read_result(Path(job.path)))
    except UserError as error:
        return str(error)
