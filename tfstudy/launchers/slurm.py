"""Slurm, by way of submitit: jobs are submitted as arrays, and go on although this process ends.

What Slurm takes from a node (pre-emption, a lost node, `scontrol requeue`) it runs again, and the run goes on from its
last checkpoint. Ctrl-C cancels the jobs. If the launcher is killed, they go on, and a second launcher waits for those
that are at work. All nodes must see the same folders; a study's `.slurm` holds what submitit leaves.
"""

import contextlib
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tasks.errors import UserError, one_of
from tfstudy.launchers import End, Executor, ExecutorSettings
from tfstudy.launchers.job import DONE, FAILED, MEMORY, Job
from tfstudy.launchers.subprocess_job import make

ARRAY = 1000  # jobs of one array: Slurm's own limit, unless a cluster sets another
LIMITS = 10  # times that a run may come to its time limit and go on
LOSSES = 10  # times that a job is submitted again since the cluster ended it, before that counts as its failure
LOOK, ASK = 1.0, 5.0  # seconds between two looks at the folder, and at Slurm's queue
MISSED = 3  # times that Slurm is asked, after which a job that it doesn't know and that left nothing is gone
TAKEN = ("NODE_FAIL", "PREEMPTED", "BOOT_FAIL", "REVOKED")  # states of jobs that end by no fault of theirs
ENDED = (*TAKEN, "COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "DEADLINE", "OUT_OF_MEMORY")
STOPPED = (-signal.SIGTERM, -signal.SIGUSR2)  # by which Slurm ends all that is in a job
LATE = 2.0  # seconds that a signal may come later to one process of a job than to another
PATIENCE = 600.0  # seconds that Slurm gets to end a job that it has told to end


class Work(NamedTuple):
    """What submitit runs on a node. It is tried again there if Slurm says that time is up."""

    job: Job
    folder: str
    timeout: float

    def __call__(self) -> tuple[int, str]:
        told: list[int] = []
        signal.signal(signal.SIGTERM, lambda number, _: told.append(number))
        code, reason = make(*self)
        if code != DONE:
            time.sleep(LATE)  # submitit answers another signal that says that time is up, and this goes no further
        if told or code in STOPPED:
            time.sleep(PATIENCE)  # Slurm runs it again, or not; a result would count as the run's failure
            os._exit(128 + signal.SIGTERM)
        return code, reason

    def checkpoint(self) -> Any:
        """The same again: a run goes on from what is in its folder."""
        from submitit.helpers import DelayedSubmission

        return DelayedSubmission(self)


class Flight(NamedTuple):
    """A job that Slurm has; `handle` is submitit's."""

    job: Job
    handle: Any
    missed: int = 0


def slurm(settings: ExecutorSettings) -> tuple["Slurm", int]:
    """The cluster's engine, and the threads that a process of a run has; `UserError` where Slurm or submitit is not."""
    one_of("accelerator", settings.accelerator, ("auto", "cpu", "cuda"))
    if settings.per_device != "auto":
        raise UserError(
            "--per-device is not for Slurm: runs share a GPU by --slurm.gres shard:1, if the cluster has it"
        )
    try:
        import submitit as library
    except ImportError:
        raise UserError(
            "--launcher slurm needs submitit, which is not installed: pip install 'tfstudy[slurm]'"
        ) from None
    if absent := [name for name in ("sbatch", "srun", "squeue", "scancel") if not shutil.which(name)]:
        raise UserError(f"--launcher slurm: there is no {absent[0]} here; start it where jobs are submitted")
    asked = settings.slurm
    if 0 < asked.cpus < settings.devices and settings.accelerator == "cpu":
        raise UserError(f"--slurm.cpus must be at least --devices ({settings.devices}), but is {asked.cpus}")
    return Slurm(library, settings), max(1, asked.cpus // settings.devices)


def parameters(settings: ExecutorSettings) -> dict[str, Any]:
    """What submitit is to ask of Slurm for each job."""
    asked, more = settings.slurm, {"requeue": True}
    gres = asked.gres or (f"gpu:{settings.devices}" if settings.accelerator == "cuda" else "")
    return {
        "name": "tfstudy",
        "timeout_min": asked.minutes,
        "cpus_per_task": asked.cpus or settings.devices,
        "slurm_array_parallelism": asked.at_once,
        "slurm_additional_parameters": more,
        **({"slurm_partition": asked.partition} if asked.partition else {}),
        **({"slurm_gres": gres} if gres else {}),
    }


class Slurm(Executor):
    """Jobs in Slurm's queue. Judged by what they leave and by `squeue`: without accounting submitit knows no states."""

    def __init__(self, library: Any, settings: ExecutorSettings) -> None:
        self._library, self._settings = library, settings
        self._collected: list[Job] = []
        self._flights: dict[str, Flight] = {}  # by Slurm's number
        self._losses: dict[str, int] = {}
        self._executor: Any = None
        self._looked = self._asked = self._refused = float("-inf")

    @property
    def at_once(self) -> int:
        return self._settings.slurm.at_once

    def describe(self) -> str:
        where = self._settings.slurm.partition
        return f"Slurm{f', partition {where}' if where else ''}, {self.at_once} runs at once"

    def room(self, job: Job, alone: bool) -> bool:
        """All at first, since an array limits itself; then as many as may run at once."""
        count = len(self._collected) + len(self._flights)
        return count < (self.at_once if self._flights else ARRAY)

    def start(self, job: Job, alone: bool) -> None:
        self._collected.append(job)

    def wait(self, seconds: float) -> Sequence[End]:
        if self._collected and time.monotonic() - self._refused > ASK:
            self._submit()
        time.sleep(seconds)
        if not self._flights or time.monotonic() - self._looked < LOOK:
            return []
        self._looked = time.monotonic()
        return self._ended()

    def stop(self) -> None:
        if self._flights:
            subprocess.run(["scancel", *self._flights], check=False, capture_output=True)
        self._flights.clear()

    def _submit(self) -> None:
        """Submits all that is collected as one array."""
        first, jobs = self._executor is None, self._collected
        try:
            executor = self._executor or self._open(Path(jobs[0].root) / jobs[0].study / ".slurm")
            work = [Work(job, os.getcwd(), self._settings.timeout) for job in jobs]
            with executor.batch():
                handles = [executor.submit(one) for one in work]
        except (self._library.core.utils.FailedJobError, self._library.core.utils.FailedSubmissionError) as error:
            if first:
                raise UserError(f"--launcher slurm: {_last_line(error)}") from None
            self._refused = time.monotonic()  # Slurm may be away for a while; what it has goes on meanwhile
            return
        self._executor, self._collected = executor, []
        self._flights |= {handle.job_id: Flight(job, handle) for job, handle in zip(jobs, handles, strict=True)}
        self._asked = time.monotonic()

    def _open(self, folder: Path) -> Any:
        folder = folder.resolve()
        executor = self._library.AutoExecutor(folder=folder, cluster="slurm", slurm_max_num_timeout=LIMITS)
        executor.update_parameters(**parameters(self._settings))
        return executor

    def _ended(self) -> list[End]:
        folder = next(iter(self._flights.values())).handle.paths.folder
        there = {path.name for path in folder.glob("*_result.pkl")}
        left = {n: flight for n, flight in self._flights.items() if flight.handle.paths.result_pickle.name in there}
        ends: dict[str, End | None] = {number: _told(flight) for number, flight in left.items()}
        states = self._states()
        for number, flight, state in self._gone(states) if states is not None else []:
            ends.setdefault(number, self._judged(flight, state))
        for number, end in ends.items():
            flight = self._flights.pop(number)
            _tidy(flight, end)
            if end is None:
                self._collected.append(flight.job)
        return [end for end in ends.values() if end]

    def _gone(self, states: Mapping[str, str]) -> list[tuple[str, Flight, str]]:
        """The jobs that Slurm has not counted among the living for some time; what they leave may come late."""
        for number, flight in self._flights.items():
            state = states.get(number, "")
            self._flights[number] = flight._replace(missed=flight.missed + 1 if not state or state in ENDED else 0)
        gone = [(number, flight) for number, flight in self._flights.items() if flight.missed >= MISSED]
        return [(number, flight, states.get(number, "")) for number, flight in gone]

    def _judged(self, flight: Flight, state: str) -> End | None:
        """The end of a job that left nothing; None if it is to be submitted again."""
        job = flight.job
        if (Path(job.path) / "result.json").exists():
            return End(job, DONE)
        if state == "OUT_OF_MEMORY":
            return End(job, MEMORY)
        self._losses[job.path] = self._losses.get(job.path, 0) + 1
        if state in TAKEN and self._losses[job.path] <= LOSSES:
            return None
        return End(job, FAILED, f"Slurm: {state or 'no longer in the queue'}; see {flight.handle.paths.stderr}")

    def _states(self) -> dict[str, str] | None:
        """Slurm's word for each job that it knows; None if it was asked just now, or doesn't answer."""
        if time.monotonic() - self._asked < ASK:
            return None
        self._asked = time.monotonic()
        arrays = ",".join(dict.fromkeys(number.split("_")[0] for number in self._flights))
        words = ["squeue", "--noheader", "--array", "--states=all", "--format=%i %T", f"--jobs={arrays}"]
        done = subprocess.run(words, check=False, capture_output=True, text=True)
        if done.returncode and "Invalid job id" not in done.stderr:
            return None
        return dict(line.split() for line in done.stdout.splitlines() if len(line.split()) == 2)


def _told(flight: Flight) -> End:
    """The end that a job left itself."""
    error = flight.handle.exception()
    if error:
        return End(flight.job, FAILED, f"submitit: {_last_line(error)}; see {flight.handle.paths.stderr}")
    return End(flight.job, *flight.handle.result())


def _tidy(flight: Flight, end: End | None) -> None:
    """Removes what submitit keeps for a job; the log of one that failed stays."""
    paths = flight.handle.paths
    logs = [paths.stdout, paths.stderr] if end and end.code == DONE else []
    for path in [paths.submitted_pickle, paths.result_pickle, *logs]:
        with contextlib.suppress(OSError):
            path.unlink(missing_ok=True)


def _last_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip(" -")]
    return lines[-1] if lines else type(error).__name__
