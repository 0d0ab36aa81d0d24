"""The progress of studies, read without torch; what a grid would run; a line for each run that ends."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from statistics import mean
from typing import TYPE_CHECKING, Any

from rich.text import Text

from tfstudy import models, tasks
from tfstudy.analysis import labels
from tfstudy.errors import UserError
from tfstudy.report.markup import duration, plural
from tfstudy.report.render import STYLES, Cells, Listing
from tfstudy.runs import find
from tfstudy.runs.files import resume_study_command, study_zips
from tfstudy.runs.store import open_run, read_result

if TYPE_CHECKING:
    from tfstudy.launchers.batch import Batch
    from tfstudy.launchers.supervisor import Event

LEFT = (find.PENDING, find.INTERRUPTED, find.FAILED)  # states of runs that no process works on and that have no result
OTHERS = 100  # runs with which the listed ones are compared
SHOWN = 40  # running and failed runs that have a line of their own, at most
Runs = Sequence[find.RunStatus]


def status(root: Path, study: Path | None = None) -> Listing:
    """Return the number of runs in each state of all studies, or of one with its runs.

    Of a study the table has a row for each experiment and architecture. The running and failed runs are listed, and
    what is left to do. `UserError` without runs for a damaged zip file of runs.
    """
    folders = [study] if study else [root / name for name in find.studies(root)]
    found = {folder: runs for folder in folders if (runs := find.study_runs(folder)) or study}
    for folder in () if any(found.values()) else folders:
        study_zips(folder, strict=True)
    values = [_values(folder, runs, bool(study)) for folder, runs in found.items()]
    if not any(found.values()):
        return Listing([f"{study.name}: no runs" if study else f"no studies in {root}"], (), values)
    if not study:
        return Listing([_counts(["study"], {(folder.name,): runs for folder, runs in found.items()})], (), values)
    [runs] = found.values()
    groups = {key: list(own) for key, own in groupby(sorted(runs, key=_group), _group)} | {("all", ""): runs}
    table = _counts([study.name, "architecture"], groups)
    return Listing([table, *_listed(runs), "", *summary(study, runs)], (), values)


def _group(run: find.RunStatus) -> tuple[str, ...]:
    """Return the experiment and the architecture of a run."""
    return run.path.parts[-3:-1]


def _counts(heads: Sequence[str], groups: Mapping[tuple[str, ...], Runs]) -> Cells:
    """Return a table with the number of runs of each group in each state that a run has."""
    counts = [Counter(run.state for run in runs) for runs in groups.values()]
    shown = [state for state in find.STATES if state == find.FINISHED or any(one[state] for one in counts)]
    numbers = {state: [str(one[state] or ".") for one in counts] for state in shown}
    names = dict(zip(heads, map(list, zip(*groups, strict=True)), strict=True))
    return Cells(names | numbers, left=heads, folded=heads, names=len(heads))


def _values(study: Path, runs: Runs, each: bool) -> dict[str, Any]:
    counts = Counter(run.state for run in runs)
    values: dict[str, Any] = {"study": study.name, "counts": {state: counts[state] for state in find.STATES}}
    values["seconds_left"] = seconds_left(runs)
    if each:
        values["runs"] = [{"name": run.name, **run._asdict(), "path": str(run.path)} for run in runs]
    return values


def _listed(runs: Runs) -> list[Cells | str]:
    """Return a table of the runs that are running or failed, with what they differ in."""

    def progress(run: find.RunStatus) -> str:
        at = f"step {run.step:,} of {run.steps:,}" if run.steps else "starting"
        return run.reason or (at if run.seconds_left is None else f"{at}, {duration(run.seconds_left)} left")

    found = [run for state in (find.RUNNING, find.FAILED) for run in runs if run.state == state]
    if not (shown := found[:SHOWN]):
        return []
    opened = [open_run(run.path) for run in (*shown, *runs[:OTHERS])]
    frame = {
        "state": [run.state for run in shown],
        "run": [run.name for run in shown],
        "settings": labels.of_runs(opened)[: len(shown)],
        "progress": [progress(run) for run in shown],
    }
    more = [f"and {len(found) - SHOWN} more"] if len(found) > SHOWN else []
    return [Cells.listed(frame, folded=frame, styles=STYLES), *more]


def summary(study: Path, runs: Runs) -> list[str]:
    """Return how many runs of a study finished, the time that is left, and how to run what no process works on."""
    counts = Counter(run.state for run in runs)
    ended, seconds = counts[find.FINISHED] + counts[find.DIVERGED], seconds_left(runs)
    left = f"; about {duration(seconds)} left, {counts[find.RUNNING] or 1} in parallel" if seconds else ""
    nothing, resume = "" if counts[find.RUNNING] else "nothing is running; ", resume_study_command(study)
    damaged = sum(run.state == find.FAILED and open_run(run.path).broken is not None for run in runs)
    stopped = (
        counts[find.FAILED] - damaged + counts[find.INTERRUPTED] + counts[find.PENDING] * (not counts[find.RUNNING])
    )
    plugin = False  # whether a task or an architecture is unknown here, so that its plug-in has to be named
    for experiment, arch in {_group(run) for run in runs if run.state in LEFT}:
        plugin |= arch not in models.names() or not experiment.startswith(tuple(f"{name}-" for name in tasks.names()))
    return [
        f"{study}: {ended} of {len(runs)} runs finished{left}",
        *([f"{nothing}to run what is left: {resume}{' --plugin FILE' * plugin}"] if stopped else []),
        *([f"{plural(damaged, 'run')} damaged: move its folder away and repeat its command"] if damaged else []),
    ]


# The time that is left


def seconds_left(runs: Runs) -> float | None:
    """Return the seconds until all runs that are left finish, with as many in parallel as now; None if unknown.

    A run counts as the mean of finished runs of the same architecture on the same data, or of all finished runs, an
    interrupted one by the steps that it has left.
    """
    seconds: dict[tuple[str, ...], list[float]] = {}
    for run in (run for run in runs if run.state == find.FINISHED and run.seconds):
        seconds.setdefault(_group(run), []).append(run.seconds)
    if not seconds:
        return None
    overall = [value for own in seconds.values() for value in own]
    running = [run.seconds_left or 0.0 for run in runs if run.state == find.RUNNING]
    waiting = [
        mean(seconds.get(_group(run), overall)) * (1 - run.step / run.steps if run.steps else 1.0)
        for run in runs
        if run.state in LEFT
    ]
    return time_left([*waiting, *running], len(running)) or 0.0


def time_left(costs: Sequence[float | None], parallel: int) -> float | None:
    """Return the seconds that runs of these costs take, so many in parallel: at least those of the longest one.

    An unknown cost counts as the mean of the others; None if none is known.
    """
    known = [cost for cost in costs if cost is not None]
    return max(max(known), mean(known) * len(costs) / max(1, parallel)) if known else None


# A grid


class BatchProgress:
    """Prints a line for each run that ends: its result, and the estimated time until all have ended.

    `tfstudy status` shows the runs that have not ended.
    """

    def __init__(self, batch: "Batch", max_parallel: Callable[[], int]) -> None:
        self._max_parallel, self._estimates = max_parallel, batch.seconds
        self._open = {job.path for job in batch.pending}
        self._total = len(self._open)
        self._took: dict[str, float] = {}  # path of a job that finished here to its seconds

    def __call__(self, event: "Event") -> None:
        from tfstudy.launchers.supervisor import ELSEWHERE, RETRYING

        words = {RETRYING: "will be retried", ELSEWHERE: "is running in another process"}
        took = f" in {duration(event.seconds)}" if event.seconds else ""
        job, outcome, left = event.job, f" {words.get(event.state, event.state)}{took}", 0.0
        if event.state == find.RUNNING:
            return
        if event.state in (find.FINISHED, find.FAILED):
            self._open.discard(job.path)
        if event.reason:
            outcome += f": {event.reason}"
        if event.state == find.FINISHED:
            try:
                result = read_result(Path(job.path))
                outcome = f": {result.headline}{took}"
                if event.seconds:  # 0 if another process ran it; what ran before it was resumed counts too
                    self._took[job.path] = max(event.seconds, result.seconds)
            except UserError as error:
                outcome = f": {error}"
            left = self.seconds_left() or 0.0
        time_left = f"; about {duration(left)} left" if left >= 1 else ""
        print(f"[{self._total - len(self._open)}/{self._total}] {job.name}{outcome}{time_left}", flush=True)

    def seconds_left(self) -> float | None:
        """The seconds until all runs have ended: their estimates, corrected by the runs that have finished.

        A run without an estimate counts as the mean of those that have finished. None if nothing is known.
        """
        own, took = self._estimates, self._took
        both = [(took[path], own[path]) for path in took if path in own]
        rate = sum(real for real, _ in both) / sum(estimate for _, estimate in both) if both else 1.0
        unknown = mean(took.values()) if took else None
        costs = [own[path] * rate if path in own else unknown for path in self._open]
        return time_left(costs, self._max_parallel()) if self._open else 0.0


def forecast(batch: "Batch", parallel: int) -> Listing:
    """Return what a batch would run, with this many runs in parallel, and how long that takes.

    The estimate in seconds is None if no similar run has finished.
    """
    costs = [None if job.finished else batch.seconds.get(job.path) for job in batch.jobs]
    frame = {
        "state": [find.FINISHED if job.finished else find.PENDING for job in batch.jobs],
        "seconds": ["" if cost is None else f"about {duration(cost)}" for cost in costs],
        "run": [job.name for job in batch.jobs],
        "settings": labels.of_configs([job.config for job in batch.jobs]),
    }
    finished, pending = frame["state"].count(find.FINISHED), frame["state"].count(find.PENDING)
    left = time_left([cost for job, cost in zip(batch.jobs, costs, strict=True) if not job.finished], parallel)
    estimate = ["no estimate: no similar run has finished yet"] if pending else []
    if left is not None:
        runs = f"{plural(pending, 'run')}, {parallel} in parallel"
        estimate = [f"about {duration(left)} for {runs} (estimated from finished runs)"]
    notes = [*batch.unequal]
    each = [
        {"name": job.name, "path": job.path, "state": state, "settings": varied, "seconds": cost}
        for job, state, varied, cost in zip(batch.jobs, frame["state"], frame["settings"], costs, strict=True)
    ]
    values = {"runs": each, "total": len(each), "finished": finished, "pending": pending}
    values |= {"parallel": parallel, "seconds": left, "notes": notes}
    total = Text(f"{plural(len(costs), 'run')}, {finished} finished", "bold")
    cells = Cells.listed(frame, folded=("run", "settings"), styles=STYLES)
    return Listing([cells, "", total, *notes, *estimate], (), values)
