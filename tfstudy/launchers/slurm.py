"""Slurm, through submitit: the unfinished runs of a grid are submitted as one array, and the command ends.

The run folders say the rest: a run that fails is retried once in its job, and a second job of a run finds its lock and
ends. Slurm requeues what a node loses (pre-emption, a failed node, `scontrol requeue`), and submitit what reaches its
time limit; such a run resumes from its last checkpoint. All nodes must see the same folders. `.slurm` in a study's
folder holds the files of submitit. These are pickles, by which whoever can write to this folder could run code: it must
belong to the user and be writable by nobody else.
"""

import os
import re
import shutil
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tfstudy.errors import UserError, one_of, quoted
from tfstudy.experiment.api import ACCELERATORS, RunOptions
from tfstudy.launchers import ExecutorSettings, JobExit
from tfstudy.launchers.job import BUSY, FAILED, REFUSED, SUCCEEDED, Job
from tfstudy.launchers.processes import execute
from tfstudy.launchers.supervisor import ATTEMPTS, reason_of
from tfstudy.runs.store import write_failure

FOLDER = ".slurm"  # of a study
MINUTES = 240  # of a job by default
MAX_TIMEOUTS = 10  # how often a run may reach its time limit and be resumed
NUMBERS = ("time", "cpus-per-task", "array-parallelism")  # keys whose value is a number
FIXED = (  # options of sbatch that submitit or tfstudy relies on
    *("array", "chdir", "error", "nodes", "no-requeue", "ntasks", "ntasks-per-node", "open-mode", "output"),
    *("parsable", "signal", "test-only", "wait", "wrap"),
)
STOP_SIGNALS = (-signal.SIGTERM, -signal.SIGUSR2)  # by which Slurm ends all processes of a job
SIGNAL_DELAY = 2.0  # seconds by which a signal may reach one process of a job after another
END_SECONDS = 600.0  # that Slurm may take to end a job after its signal


def parameters(words: Sequence[str], options: RunOptions) -> dict[str, Any]:
    """Return the values of `--slurm` as parameters of submitit; `UserError` for one that is invalid.

    Each is `KEY=VALUE`, or `KEY`, for any long option of sbatch; `setup=LINE` is a line of shell before the job.
    """
    found: dict[str, str | bool] = {}
    setup: list[str] = []
    for word in words:
        key, equals, value = word.partition("=")
        if not re.fullmatch("[a-z][a-z0-9-]+", key) or bool(equals) != bool(value.strip()) or not word.isprintable():
            form = "an option of sbatch without its dashes, such as mem=16G or exclusive"
            raise UserError(f"--slurm must be {form}, but is {quoted(word)}")
        if key in FIXED:
            raise UserError(f"--slurm can't set '{key}', which tfstudy sets itself")
        if key in NUMBERS and not re.fullmatch("[1-9][0-9]{0,6}", value):
            unit = " of minutes" if key == "time" else ""
            raise UserError(f"--slurm {key} must be a number{unit} from 1, but is {quoted(value)}")
        if key == "setup":
            setup.append(value)
        else:
            found[key] = value if equals else True
    minutes, cpus, parallel = (found.pop(key, None) for key in NUMBERS)
    gpus = {"gres": "gpu:1"} if options.accelerator == "cuda" else {}
    return {
        "name": "tfstudy",
        "timeout_min": int(minutes or MINUTES),
        "cpus_per_task": int(cpus or 1),
        "slurm_additional_parameters": {"requeue": True} | gpus | found,
        **({"slurm_array_parallelism": int(parallel)} if parallel else {}),
        **({"slurm_setup": setup} if setup else {}),
    }


class Slurm:
    """Submits jobs; `UserError` without Slurm or submitit, or for a request that is invalid."""

    def __init__(self, settings: ExecutorSettings) -> None:
        one_of("accelerator", settings.options.accelerator, ACCELERATORS)
        if settings.per_device != "auto":
            raise UserError("--per-device does not apply to Slurm; to share a GPU: --slurm gres=shard:1, if available")
        self._parameters = parameters(settings.slurm, settings.options)
        self.threads: int = self._parameters["cpus_per_task"]  # of a run
        try:
            import submitit
        except ImportError:
            raise UserError("--launcher slurm needs submitit, which is not installed: pip install submitit") from None
        if missing := [name for name in ("sbatch", "srun") if not shutil.which(name)]:
            raise UserError(f"--launcher slurm: {missing[0]} not found; run this command where jobs are submitted")
        self._library: Any = submitit

    def submit(self, jobs: Sequence[Job]) -> str:
        """Submit the jobs of a study as one array and return its number; `UserError` if Slurm refuses it."""
        folder = (jobs[0].study / FOLDER).resolve()
        check_private(folder)
        executor = self._library.AutoExecutor(folder=folder, cluster="slurm", slurm_max_num_timeout=MAX_TIMEOUTS)
        executor.update_parameters(**self._parameters)
        errors = self._library.core.utils
        try:
            with executor.batch():
                handles = [executor.submit(Work(job, os.getcwd())) for job in jobs]
        except (errors.FailedJobError, errors.FailedSubmissionError) as error:
            lines = [line.strip() for line in str(error).splitlines() if line.strip(" -")]
            raise UserError(f"--launcher slurm: {quoted(lines[-1], limit=300, marks='')}") from None
        number: str = handles[0].job_id.partition("_")[0]
        return number


def check_private(folder: Path) -> None:
    """Create the folder if it does not exist; `UserError` if somebody else can write to it, and so have code run."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    status = folder.stat()
    if status.st_uid != os.getuid() or status.st_mode & 0o022:
        raise UserError(f"--launcher slurm: {folder} holds pickles, so it must be yours and writable by you only")


class Work(NamedTuple):
    """What submitit runs on a node, and runs again when the job was requeued."""

    job: Job
    folder: str

    def __call__(self) -> None:
        signals: list[int] = []
        signal.signal(signal.SIGTERM, lambda number, _: signals.append(number))
        attempts, code, reason = 0, FAILED, ""
        while attempts < ATTEMPTS and code not in (SUCCEEDED, BUSY, REFUSED):
            attempts += 1
            code, reason = execute(self.job, self.folder)
            if code != SUCCEEDED:
                time.sleep(SIGNAL_DELAY)  # when the time limit is reached, submitit takes over here
            if signals or code in STOP_SIGNALS:
                time.sleep(END_SECONDS)  # Slurm may requeue the job; its end would count as a failure
                os._exit(128 + signal.SIGTERM)
        if code not in (SUCCEEDED, BUSY):
            reason = reason_of(JobExit(self.job, code, reason))
            write_failure(Path(self.job.path), reason, attempts)
            sys.exit(f"{self.job.path} failed: {reason}")

    def checkpoint(self) -> Any:
        """Submit the same work again, which resumes from the run's folder."""
        from submitit.helpers import DelayedSubmission

        return DelayedSubmission(self)
