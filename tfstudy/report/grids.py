"""A grid on the terminal: what it would run and how long that takes, and a line for each run that ends."""

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
from tfstudy.report.status import time_left
from tfstudy.runs.find import FAILED, FINISHED, PENDING, RUNNING
from tfstudy.runs.measurement_record import saved_instruments
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

    def __call__(self, event: Event) -> None:
        job, outcome, left = event.job, f" {WORDS.get(event.state, event.state)}", 0.0
        if event.state == RUNNING:
            return
        if event.state in (FINISHED, FAILED):
            self._open.discard(job.path)
        if event.reason:
            outcome += f": {event.reason}"
        if event.state == FINISHED:
            try:
                result = read_result(Path(job.path))
                outcome = f": {result.headline}"
                if event.seconds:  # 0 if another process ran it; what ran before it was resumed counts too
                    self._took[job.path] = max(event.seconds, result.seconds)
            except UserError as error:
                outcome = f": {error}"
            left = self.seconds_left() or 0.0
        took = f" in {duration(event.seconds)}" if event.seconds else ""
        time_left = f"; about {duration(left)} left" if left >= 1 else ""
        print(f"[{self._total - len(self._open)}/{self._total}] {job.name}{outcome}{took}{time_left}", flush=True)

    def seconds_left(self) -> float | None:
        """The seconds until all runs have ended: their estimates, corrected by the runs that have finished.

        A run without an estimate counts as the mean of those that have finished. None if nothing is known.
        """
        if not self._open:
            return 0.0
        estimated = sum(self._estimates.get(path, 0.0) for path in self._took)
        took = sum(seconds for path, seconds in self._took.items() if path in self._estimates)
        unknown = mean(self._took.values()) if self._took else None
        rate, own = took / estimated if estimated else 1.0, self._estimates
        costs = [own[path] * rate if path in own else unknown for path in self._open]
        return time_left(costs, self._max_parallel())


def forecast(batch: Batch, parallel: int) -> Listing:
    """Return what a batch would run, with this many runs in parallel, and how long that takes.

    The estimate in seconds is None if no similar run has finished.
    """
    costs = [None if job.finished else batch.seconds.get(job.path) for job in batch.jobs]
    settings = labels.of_configs([job.config for job in batch.jobs])
    frame = {
        "state": [FINISHED if job.finished else PENDING for job in batch.jobs],
        "seconds": ["" if cost is None else f"about {duration(cost)}" for cost in costs],
        "run": [job.name for job in batch.jobs],
        "settings": settings,
    }
    shown = {key: texts for key, texts in frame.items() if any(texts)}
    cells = Cells(shown, left=list(shown), folded=frozenset(("run", "settings")), headless=True, styles=STYLES)
    finished, pending = frame["state"].count(FINISHED), frame["state"].count(PENDING)
    left = time_left([cost for job, cost in zip(batch.jobs, costs, strict=True) if not job.finished], parallel)
    estimate = ["no estimate: no similar run has finished yet"] if pending else []
    if left is not None:
        runs = f"{plural(pending, 'run')}, {parallel} in parallel"
        estimate = [f"about {duration(left)} for {runs} (estimated from finished runs)"]
    notes = batch_notes(batch)

    def values() -> dict[str, Any]:
        each = zip(batch.jobs, frame["state"], settings, costs, strict=True)
        runs = [
            {"name": job.name, "path": job.path, "state": state, "settings": varied, "seconds": cost}
            for job, state, varied, cost in each
        ]
        counts = {"total": len(runs), "finished": finished, "pending": pending}
        return {"runs": runs, **counts, "parallel": parallel, "seconds": left, "notes": notes}

    total = Text(f"{plural(len(costs), 'run')}, {finished} finished", "bold")
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
