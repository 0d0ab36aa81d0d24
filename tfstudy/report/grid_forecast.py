"""What a grid would run: its runs, their states, what varies between them, and how long the pending ones will take."""

from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

from rich.text import Text

from tfstudy.launchers.batch import Batch
from tfstudy.report.markup import duration, plural
from tfstudy.report.terminal import coloured, columns
from tfstudy.report.varying import varying_settings
from tfstudy.runs.measurement_record import saved_instruments
from tfstudy.runs.status import FINISHED, PENDING


class ForecastRun(NamedTuple):
    """A run of a grid."""

    name: str
    path: str
    state: str  # finished or pending
    settings: str  # that vary between the runs
    seconds: float | None  # estimated; None if it is finished, or without an estimate


class Forecast(NamedTuple):
    """The runs of a grid, and estimates in seconds; None where no similar run has finished."""

    runs: list[ForecastRun]
    pending: int
    parallel: int
    seconds: float | None  # until all pending runs finish
    outdated: list[str]  # lines on finished runs of older code
    unmeasured: list[str]  # lines on finished runs without what --measure names

    def tree(self) -> dict[str, Any]:
        """Return all values for JSON."""
        runs = [run._asdict() for run in self.runs]
        return self._asdict() | {"runs": runs, "total": len(runs), "finished": len(runs) - self.pending}


def forecast(batch: Batch, parallel: int) -> Forecast:
    """Return what a batch would run, with this many runs in parallel."""
    pending = batch.pending
    settings, unfinished = varying_settings([job.config for job in batch.jobs]), {job.path for job in pending}
    runs = [
        ForecastRun(job.name, job.path, PENDING, varied, batch.seconds.get(job.path))
        if job.path in unfinished
        else ForecastRun(job.name, job.path, FINISHED, varied, None)
        for job, varied in zip(batch.jobs, settings, strict=True)
    ]
    estimated = [batch.seconds[job.path] for job in pending if job.path in batch.seconds]
    seconds = max(max(estimated), sum(estimated) / parallel) * len(pending) / len(estimated) if estimated else None
    return Forecast(runs, len(pending), parallel, seconds, outdated_lines(batch), unmeasured_lines(batch))


def forecast_lines(found: Forecast) -> list[Text | str]:
    """Return a line for each run, then how long the pending ones will take."""
    rows = [(run.state, _cost(run), run.name, run.settings) for run in found.runs]
    lines: list[Text | str] = [coloured(line) for line in columns(rows)]
    total = len(found.runs)
    lines += ["", Text(f"{plural(total, 'run')}, {total - found.pending} finished", style="bold")]
    return [
        *lines,
        *columns([line] for line in [*found.outdated, *found.unmeasured, *_estimate(found)] if line),
    ]


def _estimate(found: Forecast) -> list[str]:
    """Return in lines of at most 80 characters how long the pending runs will take."""
    if found.seconds is None:
        return ["no estimate: no similar run has finished yet"] if found.pending else []
    runs = f"{plural(found.pending, 'run')}, {found.parallel} in parallel"
    others = sum(run.state == PENDING and run.seconds is None for run in found.runs)
    note = [f"runs without an estimate, which are counted like the others: {others}"] if others else []
    return [f"about {duration(found.seconds)} for {runs} (estimated from finished runs)", *note]


def _cost(run: ForecastRun) -> str:
    return f"about {duration(run.seconds)}" if run.seconds is not None else ""


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
