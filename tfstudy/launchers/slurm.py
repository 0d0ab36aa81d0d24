"""The executor of a Slurm cluster, through submitit: jobs are submitted as arrays and survive the launcher.

Slurm requeues what a node loses (pre-emption, a failed node, `scontrol requeue`); such a run resumes from its last
checkpoint. Ctrl-C cancels the jobs that this launcher submitted. If it is killed, or leaves its jobs (`--detach`), they
continue, and a second launcher waits for them. All nodes must see the same folders; `.slurm` in a study's folder holds
the files of submitit. These are pickles, by which whoever can write to this folder could run code: it must belong to
the user and be writable by nobody else.
"""

import os
import shutil
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tfstudy.errors import UserError, one_of, quoted
from tfstudy.experiment.options import ACCELERATORS
from tfstudy.launchers import Detached, Executor, ExecutorSettings, JobExit
from tfstudy.launchers.job import FAILED, OUT_OF_MEMORY, SUCCEEDED, Job
from tfstudy.launchers.slurm_job import Submitted, earlier_jobs, exit_of, handle_of, last_line, remove_files
from tfstudy.launchers.slurm_queue import (
    ENDED,
    FOLDER,
    PREEMPTED,
    array_of,
    forget_jobs,
    job_states,
    locked_queue,
    record_array,
    recorded_jobs,
    unread_jobs,
)
from tfstudy.launchers.slurm_request import check_request, parameters
from tfstudy.launchers.slurm_work import Work
from tfstudy.launchers.supervisor import ATTEMPTS

MAX_TIMEOUTS = 10  # how often a run may reach its time limit and be resumed
MAX_LOSSES = 10  # how often a job that the cluster ended is submitted again, before it counts as failed
POLL_SECONDS = 1.0  # between two listings of the folder of submitit
QUEUE_SECONDS = 5.0  # between two calls of squeue
MAX_MISSED = 3  # calls of squeue without a job that left no result, after which the job is lost


def slurm(settings: ExecutorSettings) -> "Slurm":
    """Return the executor of a Slurm cluster; `UserError` without Slurm or submitit."""
    one_of("accelerator", settings.options.accelerator, ACCELERATORS)
    check_request(settings.slurm)
    if settings.per_device != "auto":
        raise UserError("--per-device does not apply to Slurm; to share a GPU, use --slurm.gres shard:1 if available")
    try:
        import submitit as library
    except ImportError:
        raise UserError("--launcher slurm needs submitit, which is not installed: pip install submitit") from None
    if missing := [name for name in ("sbatch", "srun", "squeue", "scancel") if not shutil.which(name)]:
        raise UserError(f"--launcher slurm: {missing[0]} not found; run this command where jobs are submitted")
    cpus, options = settings.slurm.cpus, settings.options
    if 0 < cpus < options.devices and options.accelerator == "cpu":
        raise UserError(f"--slurm.cpus must be at least --devices ({options.devices}), but is {cpus}")
    return Slurm(library, settings)


class Slurm(Executor):
    """Jobs in the queue of Slurm; their states come from result files and `squeue`.

    submitit itself reports states only where Slurm's accounting is installed. All jobs are runs of one study. To read
    which runs have a job, to submit the others and to record them is one step for other commands (`locked_queue`).
    """

    def __init__(self, library: Any, settings: ExecutorSettings) -> None:
        self.threads = max(1, settings.slurm.cpus // settings.options.devices)
        self._library, self._settings = library, settings
        self._pending: list[Job] = []
        self._earlier: dict[str, str] | None = None  # run's name to its job, which an earlier command submitted
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
        """Whether the job is in the queue, or has room: first in a whole array, then among `max_parallel` jobs."""
        if job.name in self._earlier_jobs(job.study):
            return True
        limit = self.max_parallel if self._submitted else self._settings.slurm.array_size
        return len(self._pending) + len(self._submitted) < limit

    def start(self, job: Job, exclusive: bool) -> None:
        if number := self._earlier_jobs(job.study).pop(job.name, ""):
            self._wait_for(job, number)
        else:
            self._pending.append(job)

    def _wait_for(self, job: Job, number: str) -> None:
        """Wait for the job of another command."""
        self._submitted[number] = Submitted(job, handle_of(self._library, job.study, number), own=False)

    def wait(self, seconds: float) -> Sequence[JobExit]:
        if self._pending and time.monotonic() - self._refused > QUEUE_SECONDS:
            self._submit_pending()
        time.sleep(seconds)
        if not self._submitted or time.monotonic() - self._polled < POLL_SECONDS:
            return []
        self._polled = time.monotonic()
        return self._ended()

    def stop(self) -> None:
        if own := [number for number, submitted in self._submitted.items() if submitted.own]:
            subprocess.run(["scancel", *own], check=False, capture_output=True)  # noqa: S603, S607 - scancel of the path, with our own job numbers
        self._submitted.clear()

    def detach(self, jobs: Sequence[Job]) -> Detached:
        """Submit the jobs that are not in the queue, and leave them. Arrays run one after another.

        `UserError` if Slurm refuses an array; those before it stay submitted.
        """
        if not jobs:
            return Detached({}, {})
        with locked_queue(jobs[0].study):
            return self._detach(jobs, earlier_jobs(self._library, jobs[0].study))

    def _detach(self, jobs: Sequence[Job], earlier: Mapping[str, str]) -> Detached:
        detached, new, size, array = Detached({}, {}), list[Job](), self._settings.slurm.array_size, ""
        for job in jobs:
            number = earlier.get(job.name, "")
            if number and not handle_of(self._library, job.study, number).paths.result_pickle.exists():
                detached.queued[number] = job
            else:
                new.append(job)
        for chunk in (new[i : i + size] for i in range(0, len(new), size)):
            try:
                handles = self._submit(chunk, ATTEMPTS, f"afterany:{array}" if array else None)
            except UserError as error:
                kept = f"; {len(detached.submitted)} runs before it were submitted" if array else ""
                raise UserError(f"{error}{kept}") from None
            detached.submitted.update((handle.job_id, job) for handle, job in zip(handles, chunk, strict=True))
            array = array_of(handles[0].job_id)
        return detached

    def _earlier_jobs(self, study: Path) -> dict[str, str]:
        """The jobs of earlier commands that are in the queue, or whose result nobody has read, by name of the run."""
        if self._earlier is None:
            with locked_queue(study):
                self._earlier = earlier_jobs(self._library, study)
        return self._earlier

    def _submit_pending(self) -> None:
        """Submit all pending jobs as one array; wait for those that another command has submitted meanwhile."""
        first, study = self._executor is None, self._pending[0].study
        try:
            with locked_queue(study):
                self._leave_to_others(study)
                handles = self._submit(self._pending) if self._pending else []
        except UserError:
            if first:
                raise
            self._refused = time.monotonic()  # Slurm may be unavailable for a while; submitted jobs continue
            return
        jobs, self._pending = self._pending, []
        self._submitted |= {handle.job_id: Submitted(job, handle) for job, handle in zip(jobs, handles, strict=True)}
        self._queried = time.monotonic()

    def _leave_to_others(self, study: Path) -> None:
        """Wait for pending jobs that are in the queue."""
        pending = {job.name: job for job in self._pending}
        recorded = {name: number for name, number in recorded_jobs(study).items() if name in pending}
        for name, number in unread_jobs(study, recorded).items():
            self._wait_for(pending.pop(name), number)
        self._pending = [job for job in self._pending if job.name in pending]

    def _submit(self, jobs: Sequence[Job], attempts: int = 1, dependency: str | None = None) -> list[Any]:
        """Submit jobs as one array, within `locked_queue`; return their handles. `UserError` if Slurm refuses them."""
        study, timeout = jobs[0].study, self._settings.timeout
        executor = self._executor or self._open(study / FOLDER)
        executor.update_parameters(slurm_dependency=dependency)
        errors = self._library.core.utils
        try:
            with executor.batch():
                handles = [executor.submit(Work(job, os.getcwd(), timeout, attempts)) for job in jobs]
        except (errors.FailedJobError, errors.FailedSubmissionError) as error:
            raise UserError(f"--launcher slurm: {quoted(last_line(error), limit=300, marks='')}") from None
        self._executor = executor
        numbers = {job.name: handle.job_id for job, handle in zip(jobs, handles, strict=True)}
        record_array(study, numbers)
        return handles

    def _open(self, folder: Path) -> Any:
        executor = self._library.AutoExecutor(
            folder=folder.resolve(), cluster="slurm", slurm_max_num_timeout=MAX_TIMEOUTS
        )
        executor.update_parameters(**parameters(self._settings.slurm, self._settings.options))
        return executor

    def _ended(self) -> list[JobExit]:
        folder = next(iter(self._submitted.values())).handle.paths.folder
        results = {path.name for path in folder.glob("*_result.pkl")}
        exits: dict[str, JobExit | None] = {
            number: exit_of(submitted)
            for number, submitted in self._submitted.items()
            if submitted.handle.paths.result_pickle.name in results
        }
        states = self._states()
        for number, submitted, state in self._lost(states) if states is not None else []:
            exits.setdefault(number, self._exit_of_lost(submitted, state))
        if exits:
            with locked_queue(folder.parent):
                forget_jobs(folder.parent, exits)
        for number, job_exit in exits.items():
            submitted = self._submitted.pop(number)
            remove_files(submitted, job_exit)
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
        return job_states(self._submitted)
