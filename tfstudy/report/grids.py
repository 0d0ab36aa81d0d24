"""A grid on the terminal: what it would run and how long that takes, and its progress while it runs."""

import contextlib
import time
from collections import Counter, deque
from collections.abc import Callable
from pathlib import Path
from statistics import mean
from types import TracebackType
from typing import Any

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table as RichTable
from rich.text import Text

from tfstudy.analysis import labels
from tfstudy.errors import UserError
from tfstudy.launchers import Job
from tfstudy.launchers.batch import Batch
from tfstudy.launchers.supervisor import ELSEWHERE, RETRYING, Event
from tfstudy.report.markup import duration, plural
from tfstudy.report.render import STYLES, Cells, Listing, Terminal, plain_table
from tfstudy.runs.display import first_metric, headline
from tfstudy.runs.measurement_record import saved_instruments
from tfstudy.runs.schema import Progress
from tfstudy.runs.status import FAILED, FINISHED, PENDING, RUNNING
from tfstudy.runs.store import read_progress, read_result

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
        self._last: deque[str] = deque(maxlen=3)
        self._drawn = float("-inf")
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
        if event.state == FINISHED and event.seconds:  # none if another process ran it
            self._took[path] = event.seconds
            with contextlib.suppress(UserError):  # what ran before it was resumed counts too
                self._took[path] = max(event.seconds, read_result(Path(path)).seconds)

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
        finished = self._total - len(self._open) - self._failed
        counts = f"{finished} finished, {self._failed} failed, {len(self._open)} left of {self._total}"
        lines = (*self._last, f"{counts}{self._time_left()}")
        return [Text(line, no_wrap=True, overflow="ellipsis") for line in lines]

    def _table(self) -> list[Text | RichTable]:
        """The running jobs, as many as the terminal has lines for."""
        table = plain_table(show_header=False)
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


def _outcome(job: Job) -> str:
    """Return the first metric of the first test set, or of the validation split for a trial of a search."""
    try:
        result = read_result(Path(job.path))
    except UserError as error:
        return str(error)
    judged = [scores for scores in result.splits.values() if scores.role == "validation" and scores.metrics]
    if job.options.tuning and judged and result.status == FINISHED:
        return f"{first_metric(judged[0])} on validation"
    return headline(result)


def forecast(batch: Batch, parallel: int) -> Listing:
    """Return what a batch would run, with this many runs in parallel, and how long that takes.

    The estimate in seconds is None if no similar run has finished.
    """
    pending = batch.pending
    settings, unfinished = labels.of_configs([job.config for job in batch.jobs]), {job.path for job in pending}
    seconds = {job.path: batch.seconds.get(job.path) for job in pending}
    estimated = [one for one in seconds.values() if one is not None]
    left = max(max(estimated), sum(estimated) / parallel) * len(pending) / len(estimated) if estimated else None
    states = [PENDING if job.path in unfinished else FINISHED for job in batch.jobs]
    costs = [seconds.get(job.path) for job in batch.jobs]
    frame = {
        "state": states,
        "seconds": ["" if cost is None else f"about {duration(cost)}" for cost in costs],
        "run": [job.name for job in batch.jobs],
        "settings": settings,
    }
    frame = {key: texts for key, texts in frame.items() if any(texts)}
    cells = Cells(frame, left=list(frame), folded=frozenset(("run", "settings")), headless=True, styles=STYLES)
    counts = {"pending": len(pending), "total": len(batch.jobs), "finished": len(batch.jobs) - len(pending)}
    outdated, unmeasured = outdated_lines(batch), unmeasured_lines(batch)
    estimate = ["no estimate: no similar run has finished yet"] if pending else []
    if left is not None:
        runs = f"{plural(len(pending), 'run')}, {parallel} in parallel"
        estimate = [f"about {duration(left)} for {runs} (estimated from finished runs)"]
        if others := len(pending) - len(estimated):
            estimate.append(f"runs without an estimate, which are counted like the others: {others}")

    def values() -> dict[str, Any]:
        runs = [
            {"name": job.name, "path": job.path, "state": state, "settings": varied, "seconds": cost}
            for job, state, varied, cost in zip(batch.jobs, states, settings, costs, strict=True)
        ]
        lines = {"unequal": [*batch.unequal], "outdated": outdated, "unmeasured": unmeasured}
        return {"runs": runs, **counts, "parallel": parallel, "seconds": left, **lines}

    total = Text(f"{plural(counts['total'], 'run')}, {counts['finished']} finished", "bold")
    return Listing([cells, "", total, *batch.unequal, *outdated, *unmeasured, *estimate], (), values)


def outdated_lines(batch: Batch) -> list[str]:
    """Return a line for each reason why finished runs of the grid are outdated, and what happens to them."""
    reasons = Counter("; ".join(reasons) for reasons in batch.outdated.values())
    return [
        f"{count} finished runs are outdated: {reason}; the grid keeps them and runs new ones with these settings"
        for reason, count in reasons.items()
    ]


def unmeasured_lines(batch: Batch) -> list[str]:
    """Return a line for each instrument of `--measure` that finished runs were trained without."""
    finished = [job for job in batch.jobs if job.finished]
    missing = Counter(
        name for job in finished for name in job.options.measure if name not in saved_instruments(Path(job.path))
    )
    return [
        f"{plural(count, 'finished run')} kept without {name}, which is measured during training; to measure it, run "
        "the grid with another --results"
        for name, count in missing.items()
    ]
