"""The executor of a Slurm cluster, through submitit: jobs are submitted as arrays and survive the launcher.

Slurm requeues what a node loses (pre-emption, a failed node, `scontrol requeue`); such a run resumes from its last
checkpoint. Ctrl-C cancels the jobs. If the launcher is killed, its jobs continue, and a second launcher waits for those
that are running. All nodes must see the same folders; `.slurm` in a study's folder holds the files of submitit. These
are pickles, by which whoever can write to this folder could run code: it must belong to the user and be writable by
nobody else.
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

from tfstudy.experiment.options import ACCELERATORS
from tfstudy.launchers import Executor, ExecutorSettings, JobExit
from tfstudy.launchers.job import FAILED, OUT_OF_MEMORY, SUCCEEDED, Job
from tfstudy.launchers.private_folder import check_private
from tfstudy.launchers.subprocess_job import execute
from tfstudy.tasks.errors import UserError, one_of

MAX_ARRAY = 1000  # jobs of an array: the default limit of Slurm
MAX_TIMEOUTS = 10  # how often a run may reach its time limit and be resumed
MAX_LOSSES = 10  # how often a job that the cluster ended is submitted again, before it counts as failed
POLL_SECONDS = 1.0  # between two listings of the folder of submitit
QUEUE_SECONDS = 5.0  # between two calls of squeue
MAX_MISSED = 3  # calls of squeue without a job that left no result, after which the job is lost
PREEMPTED = ("NODE_FAIL", "PREEMPTED", "BOOT_FAIL", "REVOKED")  # states of jobs that did not fail by themselves
ENDED = (*PREEMPTED, "COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "DEADLINE", "OUT_OF_MEMORY")
STOP_SIGNALS = (-signal.SIGTERM, -signal.SIGUSR2)  # by which Slurm ends all processes of a job
SIGNAL_DELAY = 2.0  # seconds by which a signal may reach one process of a job after another
END_SECONDS = 600.0  # that Slurm may take to end a job after its signal


class Work(NamedTuple):
    """What submitit runs on a node, and runs again there when the time limit is reached."""

    job: Job
    folder: str
    timeout: float

    def __call__(self) -> tuple[int, str]:
        signals: list[int] = []
        signal.signal(signal.SIGTERM, lambda number, _: signals.append(number))
        code, reason = execute(*self)
        if code != SUCCEEDED:
            time.sleep(SIGNAL_DELAY)  # when the time limit is reached, submitit takes over here
        if signals or code in STOP_SIGNALS:
            time.sleep(END_SECONDS)  # Slurm may requeue the job; a returned result would count as a failure
            os._exit(128 + signal.SIGTERM)
        return code, reason

    def checkpoint(self) -> Any:
        """Submit the same work again, which resumes from the run's folder."""
        from submitit.helpers import DelayedSubmission

        return DelayedSubmission(self)


class Submitted(NamedTuple):
    """A job that was submitted; `handle` is submitit's."""

    job: Job
    handle: Any
    missed: int = 0  # calls of squeue since Slurm last listed it as alive


def slurm(settings: ExecutorSettings) -> "Slurm":
    """Return the executor of a Slurm cluster; `UserError` without Slurm or submitit."""
    one_of("accelerator", settings.options.accelerator, ACCELERATORS)
    if settings.per_device != "auto":
        raise UserError("--per-device does not apply to Slurm; to share a GPU, use --slurm.gres shard:1 if available")
    try:
        import submitit as library
    except ImportError:
        raise UserError(
            "--launcher slurm needs submitit, which is not installed: pip install 'tfstudy[slurm]'"
        ) from None
    if missing := [name for name in ("sbatch", "srun", "squeue", "scancel") if not shutil.which(name)]:
        raise UserError(f"--launcher slurm: {missing[0]} not found; run this command where jobs are submitted")
    cpus, options = settings.slurm.cpus, settings.options
    if 0 < cpus < options.devices and options.accelerator == "cpu":
        raise UserError(f"--slurm.cpus must be at least --devices ({options.devices}), but is {cpus}")
    return Slurm(library, settings)


def parameters(settings: ExecutorSettings) -> dict[str, Any]:
    """Return the resources of each job as parameters of submitit."""
    request, options = settings.slurm, settings.options
    gres = request.gres or (f"gpu:{options.devices}" if options.accelerator == "cuda" else "")
    return {
        "name": "tfstudy",
        "timeout_min": request.minutes,
        "cpus_per_task": request.cpus or options.devices,
        "slurm_array_parallelism": request.max_parallel,
        "slurm_additional_parameters": {"requeue": True},
        **({"slurm_partition": request.partition} if request.partition else {}),
        **({"slurm_gres": gres} if gres else {}),
    }


class Slurm(Executor):
    """Jobs in the queue of Slurm; their states come from result files and `squeue`.

    submitit itself reports states only where Slurm's accounting is installed.
    """

    def __init__(self, library: Any, settings: ExecutorSettings) -> None:
        self.threads = max(1, settings.slurm.cpus // settings.options.devices)
        self._library, self._settings = library, settings
        self._pending: list[Job] = []
        self._submitted: dict[str, Submitted] = {}  # by Slurm's job id
        self._losses: dict[str, int] = {}
        self._executor: Any = None
        self._polled = self._queried = self._refused = float("-inf")

    @property
    def max_parallel(self) -> int:
        return self._settings.slurm.max_parallel

    def describe(self) -> str:
        partition = f", partition {self._settings.slurm.partition}" if self._settings.slurm.partition else ""
        return f"Slurm{partition}, {self.max_parallel} runs in parallel"

    def has_room(self, job: Job, exclusive: bool) -> bool:
        """At first for a whole array, which Slurm limits; then for as many jobs as may run in parallel."""
        limit = self.max_parallel if self._submitted else MAX_ARRAY
        return len(self._pending) + len(self._submitted) < limit

    def start(self, job: Job, exclusive: bool) -> None:
        self._pending.append(job)

    def wait(self, seconds: float) -> Sequence[JobExit]:
        if self._pending and time.monotonic() - self._refused > QUEUE_SECONDS:
            self._submit()
        time.sleep(seconds)
        if not self._submitted or time.monotonic() - self._polled < POLL_SECONDS:
            return []
        self._polled = time.monotonic()
        return self._ended()

    def stop(self) -> None:
        if self._submitted:
            subprocess.run(["scancel", *self._submitted], check=False, capture_output=True)  # noqa: S603, S607 - scancel of the path, with our own job numbers
        self._submitted.clear()

    def _submit(self) -> None:
        """Submit all pending jobs as one array."""
        first, jobs = self._executor is None, self._pending
        try:
            executor = self._executor or self._open(jobs[0].study / ".slurm")
            with executor.batch():
                handles = [executor.submit(Work(job, os.getcwd(), self._settings.timeout)) for job in jobs]
        except (self._library.core.utils.FailedJobError, self._library.core.utils.FailedSubmissionError) as error:
            if first:
                raise UserError(f"--launcher slurm: {_last_line(error)}") from None
            self._refused = time.monotonic()  # Slurm may be unavailable for a while; submitted jobs continue
            return
        self._executor, self._pending = executor, []
        self._submitted |= {handle.job_id: Submitted(job, handle) for job, handle in zip(jobs, handles, strict=True)}
        self._queried = time.monotonic()

    def _open(self, folder: Path) -> Any:
        check_private(folder)
        executor = self._library.AutoExecutor(
            folder=folder.resolve(), cluster="slurm", slurm_max_num_timeout=MAX_TIMEOUTS
        )
        executor.update_parameters(**parameters(self._settings))
        return executor

    def _ended(self) -> list[JobExit]:
        folder = next(iter(self._submitted.values())).handle.paths.folder
        results = {path.name for path in folder.glob("*_result.pkl")}
        exits: dict[str, JobExit | None] = {
            number: _exit_of(submitted)
            for number, submitted in self._submitted.items()
            if submitted.handle.paths.result_pickle.name in results
        }
        states = self._states()
        for number, submitted, state in self._lost(states) if states is not None else []:
            exits.setdefault(number, self._exit_of_lost(submitted, state))
        for number, job_exit in exits.items():
            submitted = self._submitted.pop(number)
            _remove_files(submitted, job_exit)
            if job_exit is None:
                self._pending.append(submitted.job)
        return [job_exit for job_exit in exits.values() if job_exit]

    def _lost(self, states: Mapping[str, str]) -> list[tuple[str, Submitted, str]]:
        """The jobs that Slurm has not listed as alive for some time; their result files may appear late."""
        for number, submitted in self._submitted.items():
            state = states.get(number, "")
            missed = submitted.missed + 1 if not state or state in ENDED else 0
            self._submitted[number] = submitted._replace(missed=missed)
        lost = [(number, submitted) for number, submitted in self._submitted.items() if submitted.missed >= MAX_MISSED]
        return [(number, submitted, states.get(number, "")) for number, submitted in lost]

    def _exit_of_lost(self, submitted: Submitted, state: str) -> JobExit | None:
        """How a job without a result file ended; None if it is to be submitted again."""
        job = submitted.job
        if job.finished:
            return JobExit(job, SUCCEEDED)
        if state == "OUT_OF_MEMORY":
            return JobExit(job, OUT_OF_MEMORY)
        self._losses[job.path] = self._losses.get(job.path, 0) + 1
        if state in PREEMPTED and self._losses[job.path] <= MAX_LOSSES:
            return None
        reason = f"Slurm: {state or 'no longer in the queue'}; see {submitted.handle.paths.stderr}"
        return JobExit(job, FAILED, reason)

    def _states(self) -> dict[str, str] | None:
        """Slurm's state of each job in its queue; None if it was queried just now or does not answer."""
        if time.monotonic() - self._queried < QUEUE_SECONDS:
            return None
        self._queried = time.monotonic()
        arrays = ",".join(dict.fromkeys(number.split("_")[0] for number in self._submitted))
        words = ["squeue", "--noheader", "--array", "--states=all", "--format=%i %T", f"--jobs={arrays}"]
        process = subprocess.run(words, check=False, capture_output=True, text=True)  # noqa: S603 - fixed words
        if process.returncode and "Invalid job id" not in process.stderr:
            return None
        return dict(line.split() for line in process.stdout.splitlines() if len(line.split()) == 2)


def _exit_of(submitted: Submitted) -> JobExit:
    """How a job with a result file ended."""
    error = submitted.handle.exception()
    if error:
        reason = f"submitit: {_last_line(error)}; see {submitted.handle.paths.stderr}"
        return JobExit(submitted.job, FAILED, reason)
    return JobExit(submitted.job, *submitted.handle.result())


def _remove_files(submitted: Submitted, job_exit: JobExit | None) -> None:
    """Remove the files of submitit; the log of a failed job stays."""
    paths = submitted.handle.paths
    logs = [paths.stdout, paths.stderr] if job_exit and job_exit.code == SUCCEEDED else []
    for path in [paths.submitted_pickle, paths.result_pickle, *logs]:
        with contextlib.suppress(OSError):
            path.unlink(missing_ok=True)


def _last_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip(" -")]
    return lines[-1] if lines else type(error).__name__
