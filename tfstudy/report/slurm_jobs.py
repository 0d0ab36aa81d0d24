"""The jobs of a study in the queue of Slurm, as lines for the terminal. Imports no torch."""

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from tfstudy.launchers import Detached
from tfstudy.launchers.slurm_queue import array_of, queued_jobs, recorded_jobs
from tfstudy.report.markup import plural
from tfstudy.runs.commands import results_option

MAX_ARRAYS = 5  # whose numbers a line names


def queue_lines(study: Path) -> list[str]:
    """Return how many jobs of a study are in the queue and how to cancel them; nothing if there are none."""
    queued = queued_jobs(study)
    if queued is None:
        jobs = recorded_jobs(study).values()
        return [f"{plural(len(jobs), 'run')} submitted to Slurm (job {arrays(jobs)}); squeue does not answer here"]
    if not queued:
        return []
    states = Counter(state.lower() for _, state in queued.values())
    counts = ", ".join(f"{count} {state}" for state, count in sorted(states.items()))
    listed = arrays(number for number, _ in queued.values())
    return [f"{plural(len(queued), 'run')} in the queue of Slurm: {counts} (job {listed})"]


def detached_lines(detached: Detached, study: Path) -> list[str]:
    """Return what was submitted and left, and how to watch and cancel it."""
    numbers = [*detached.submitted, *detached.queued]
    lines = [f"{plural(len(detached.submitted), 'run')} submitted to Slurm{_as_job(detached.submitted)}"]
    if detached.queued:
        lines.append(f"{plural(len(detached.queued), 'run')} already in the queue{_as_job(detached.queued)}")
    if numbers:
        lines.append(f"to watch:  tfstudy status {study.name}{results_option(study.parent)}")
        lines.append("to wait:   the same command without --detach")
        lines.append(f"to cancel: scancel {arrays(numbers, ' ')}")
    return lines


def _as_job(numbers: Iterable[str]) -> str:
    listed = arrays(numbers)
    return f" as job {listed}" if listed else ""


def arrays(numbers: Iterable[str], separator: str = ", ") -> str:
    """Return the numbers of the arrays of some jobs; the first of many."""
    found: Sequence[str] = list(dict.fromkeys(map(array_of, numbers)))
    more = [f"and {len(found) - MAX_ARRAYS} more"] if len(found) > MAX_ARRAYS and separator != " " else []
    return separator.join([*(found if separator == " " else found[:MAX_ARRAYS]), *more])
