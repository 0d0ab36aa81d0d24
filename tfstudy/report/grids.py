"""A grid on the terminal: what it would run and how long that takes, and a line for each run that ends."""

import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from statistics import mean
from typing import Any

from rich.text import Text

from tfstudy.analysis import labels
from tfstudy.errors import UserError
from tfstudy.launchers.batch import Batch
from tfstudy.launchers.supervisor import ELSEWHERE, RETRYING, Event
from tfstudy.report.markup import duration, plural
from tfstudy.report.render import STYLES, Cells, Listing
from tfstudy.runs.measurement_record import saved_instruments
from tfstudy.runs.status import FAILED, FINISHED, PENDING, RUNNING
from tfstudy.runs.store import read_result

WORDS = {RETRYING: "will be retried", ELSEWHERE: "is running in another process"}


class BatchProgress:
    """Prints a line for each run that ends: its result, and the estimated time until all have ended.

    `tfstudy status` shows the runs that have not ended.
    """

    def __init__(self, batch: Batch, max_parallel: Callable[[], int]) -> None:
        self._max_parallel, self._estimates = max_parallel, batch.seconds
        self._open = {job.path for job in batch.pending}
        self._total = len(self._open)
        self._took: dict[str, float] = {}  # path of a job that finished here to its seconds
        self._started: dict[str, float] = {}  # path to the time, of those that are running

    def __call__(self, event: Event) -> None:
        job, path = event.job, event.job.path
        if event.state == RUNNING:
            self._started[path] = time.monotonic()
            return
        self._started.pop(path, None)
        if event.state in (FINISHED, FAILED):
            self._open.discard(path)
        reason = f": {event.reason}" if event.reason else ""
        outcome = f" {WORDS.get(event.state, event.state)}{reason}"
        if event.state == FINISHED:
            try:
                result = read_result(Path(path))
                outcome = f": {result.headline}"
                if event.seconds:  # 0 if another process ran it; what ran before it was resumed counts too
                    self._took[path] = max(event.seconds, result.seconds)
            except UserError as error:
                outcome = f": {error}"
        took = f" in {duration(event.seconds)}" if event.seconds else ""
        left = (self.seconds_left() or 0.0) if event.state == FINISHED else 0.0
        time_left = f"; about {duration(left)} left" if left >= 1 else ""
        print(f"[{self._total - len(self._open)}/{self._total}] {job.name}{outcome}{took}{time_left}", flush=True)

    def seconds_left(self) -> float | None:
        """The seconds until all runs have ended: their estimates, corrected by the runs that have finished.

        A run without an estimate counts as the mean of the others. None if nothing is known.
        """
        known = [path for path in self._took if path in self._estimates]
        estimated = sum(self._estimates[path] for path in known)
        correction = sum(self._took[path] for path in known) / estimated if estimated else 1.0
        if not (given := self._took or self._estimates):
            return None
        average, now = mean(given.values()), time.monotonic()
        own = self._estimates
        costs = {path: own[path] * correction if path in own else average for path in self._open}
        left = [max(0.0, cost - now + self._started.get(path, now)) for path, cost in costs.items()]
        return max(max(left), sum(left) / max(1, self._max_parallel())) if left else 0.0


def forecast(batch: Batch, parallel: int) -> Listing:
    """Return what a batch would run, with this many runs in parallel, and how long that takes.

    The estimate in seconds is None if no similar run has finished.
    """
    states = [FINISHED if job.finished else PENDING for job in batch.jobs]
    pending = states.count(PENDING)
    costs = [None if job.finished else batch.seconds.get(job.path) for job in batch.jobs]
    settings = labels.of_configs([job.config for job in batch.jobs])
    frame = {
        "state": states,
        "seconds": ["" if cost is None else f"about {duration(cost)}" for cost in costs],
        "run": [job.name for job in batch.jobs],
        "settings": settings,
    }
    frame = {key: texts for key, texts in frame.items() if any(texts)}
    cells = Cells(frame, left=list(frame), folded=frozenset(("run", "settings")), headless=True, styles=STYLES)
    estimated = [cost for cost in costs if cost is not None]
    left = max(max(estimated), sum(estimated) / parallel) * pending / len(estimated) if estimated else None
    estimate = ["no estimate: no similar run has finished yet"] if pending else []
    if left is not None:
        runs = f"{plural(pending, 'run')}, {parallel} in parallel"
        estimate = [f"about {duration(left)} for {runs} (estimated from finished runs)"]
    counts, notes = {"total": len(states), "finished": states.count(FINISHED), "pending": pending}, batch_notes(batch)

    def values() -> dict[str, Any]:
        runs = [
            {"name": job.name, "path": job.path, "state": state, "settings": varied, "seconds": cost}
            for job, state, varied, cost in zip(batch.jobs, states, settings, costs, strict=True)
        ]
        return {"runs": runs, **counts, "parallel": parallel, "seconds": left, "notes": notes}

    total = Text(f"{plural(counts['total'], 'run')}, {counts['finished']} finished", "bold")
    return Listing([cells, "", total, *notes, *estimate], (), values)


def batch_notes(batch: Batch) -> list[str]:
    """Return lines on what is unequal between architectures, and not measured as `--measure` asks."""
    missing = Counter(
        name
        for job in batch.jobs
        if job.finished and job.options.measure
        for name in set(job.options.measure).difference(saved_instruments(Path(job.path)))
    )
    return [
        *batch.unequal,
        *(f"{plural(n, 'finished run')} kept without {name}, which is measured during training; to measure it, run "
          "the grid with another --results" for name, n in missing.items()),
    ]  # fmt: skip
