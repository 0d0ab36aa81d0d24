"""Which runs of a study are in the queue of Slurm: a file for each array that was submitted, and the answer of squeue.

The files lie beside those of submitit in `.slurm` of the study. A later command reads them, so that it waits for jobs
that an earlier one submitted instead of submitting them again. Whoever writes or removes them holds `locked_queue`.
Imports no torch.
"""

import fcntl
import os
import shutil
import subprocess
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import msgspec

from tfstudy.errors import UserError
from tfstudy.runs.files import write_atomically

FOLDER = ".slurm"  # of a study
SECONDS = 20.0  # that squeue may take to answer
PREEMPTED = ("NODE_FAIL", "PREEMPTED", "BOOT_FAIL", "REVOKED")  # states of jobs that did not fail by themselves
ENDED = (*PREEMPTED, "COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "DEADLINE", "OUT_OF_MEMORY")
Number = Annotated[str, msgspec.Meta(pattern=r"^[0-9]{1,12}(_[0-9]{1,9})?$")]  # of a job, such as 1234 or 1234_0


class Array(msgspec.Struct):
    """Jobs that were submitted together."""

    runs: dict[str, Number]  # name of the run to the number of its job


def check_private(folder: Path) -> None:
    """Create the folder if it does not exist; `UserError` if somebody else can write to it, and so have code run."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    status = folder.stat()
    if status.st_uid != os.getuid() or status.st_mode & 0o022:
        raise UserError(f"--launcher slurm: {folder} holds pickles, so it must be yours and writable by you only")


@contextmanager
def locked_queue(study: Path) -> Iterator[None]:
    """Keep other commands from submitting jobs of the study within the block; wait while another one does.

    The lock ends with the process that holds it. `UserError` if others can write to the folder.
    """
    check_private(study / FOLDER)
    with (study / FOLDER / ".lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def record_array(study: Path, numbers: Mapping[str, str]) -> None:
    """Write which job has which run, within `locked_queue`; `numbers` are those of one array, by name of the run."""
    number = array_of(next(iter(numbers.values())))
    write_atomically(study / FOLDER / f"jobs-{number}.json", msgspec.json.encode(Array(dict(numbers))))


def recorded_jobs(study: Path) -> dict[str, str]:
    """Return the number of the latest job of each run that was submitted. Damaged files are ignored."""
    jobs: dict[str, str] = {}
    for path in sorted((study / FOLDER).glob("jobs-*.json"), key=lambda path: (len(path.name), path.name)):
        jobs |= _runs(path)
    return jobs


def forget_jobs(study: Path, numbers: Collection[str]) -> None:
    """Remove jobs from the files of their arrays, within `locked_queue`."""
    for array in {array_of(number) for number in numbers}:
        path = study / FOLDER / f"jobs-{array}.json"
        if left := {name: number for name, number in _runs(path).items() if number not in numbers}:
            write_atomically(path, msgspec.json.encode(Array(left)))
        else:
            path.unlink(missing_ok=True)


def _runs(path: Path) -> dict[str, str]:
    try:
        return msgspec.json.decode(path.read_bytes(), type=Array).runs
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        return {}


def array_of(number: str) -> str:
    """Return the number of the array of a job: `1234` of `1234_0`."""
    return number.partition("_")[0]


def job_states(numbers: Iterable[str]) -> dict[str, str] | None:
    """Return Slurm's state of each of these jobs that it still lists; None if it does not answer."""
    arrays = ",".join(dict.fromkeys(map(array_of, numbers)))
    words = ["squeue", "--noheader", "--array", "--states=all", "--format=%i %T", f"--jobs={arrays}"]
    try:
        process = subprocess.run(words, check=False, capture_output=True, text=True, timeout=SECONDS)  # noqa: S603 - fixed words and numbers
    except (OSError, subprocess.TimeoutExpired):
        return None
    if process.returncode and "Invalid job id" not in process.stderr:
        return None
    return dict(line.split() for line in process.stdout.splitlines() if len(line.split()) == 2)


def unread_jobs(study: Path, jobs: Mapping[str, str]) -> dict[str, str]:
    """Return those of these jobs that are in the queue, or whose result nobody has read, by name of the run.

    `UserError` if Slurm does not answer.
    """
    states = job_states(jobs.values()) if jobs else {}
    if states is None:
        raise UserError("--launcher slurm: squeue does not answer, so the jobs submitted earlier are unknown")
    results = {path.name for path in (study / FOLDER).glob("*_result.pkl")}
    alive = {number for number in jobs.values() if states.get(number, "COMPLETED") not in ENDED}
    return {name: number for name, number in jobs.items() if number in alive or f"{number}_0_result.pkl" in results}


def queued_jobs(study: Path) -> dict[str, tuple[str, str]] | None:
    """Return number and state of the job of each run that is in the queue; None if Slurm does not answer."""
    jobs = recorded_jobs(study)
    if not jobs:
        return {}
    states = job_states(jobs.values()) if shutil.which("squeue") else None
    if states is None:
        return None
    alive = {number: state for number, state in states.items() if state not in ENDED}
    return {name: (number, alive[number]) for name, number in jobs.items() if number in alive}
