"""A job that was submitted to Slurm, and its files, which are those of submitit."""

import contextlib
from pathlib import Path
from typing import Any, NamedTuple

from tfstudy.launchers import JobExit
from tfstudy.launchers.job import FAILED, SUCCEEDED, Job
from tfstudy.launchers.slurm_queue import FOLDER, forget_jobs, recorded_jobs, unread_jobs
from tfstudy.runs.reader import is_finished


class Submitted(NamedTuple):
    """A job that was submitted; `handle` is submitit's."""

    job: Job
    handle: Any
    own: bool = True  # submitted by this launcher, which cancels it on Ctrl-C
    missed: int = 0  # calls of squeue since Slurm last listed it as alive


def handle_of(library: Any, study: Path, number: str) -> Any:
    """Return submitit's handle of a job in the queue."""
    return library.SlurmJob(folder=(study / FOLDER).resolve(), job_id=number)


def earlier_jobs(library: Any, study: Path) -> dict[str, str]:
    """Return the number of each job of an earlier command that is still of use, by name of the run.

    That is a job in the queue, or one whose result nobody has read. What is left of the others is removed, so this is
    called within `locked_queue`.
    """
    recorded = recorded_jobs(study)
    unread = unread_jobs(study, recorded)
    for name in [name for name in unread if is_finished(study / name)]:
        job_exit = JobExit(Job(str(study / name), {}), SUCCEEDED)
        submitted = Submitted(job_exit.job, handle_of(library, study, unread[name]))
        if submitted.handle.paths.result_pickle.exists():
            remove_files(submitted, job_exit)
            del unread[name]
    forget_jobs(study, set(recorded.values()) - set(unread.values()))
    return unread


def exit_of(submitted: Submitted) -> JobExit:
    """How a job with a result file ended."""
    error = submitted.handle.exception()
    if error:
        reason = f"submitit: {last_line(error)}; see {submitted.handle.paths.stderr}"
        return JobExit(submitted.job, FAILED, reason)
    return JobExit(submitted.job, *submitted.handle.result())


def remove_files(submitted: Submitted, job_exit: JobExit | None) -> None:
    """Remove the files of submitit; the log of a failed job stays."""
    paths = submitted.handle.paths
    logs = [paths.stdout, paths.stderr] if job_exit and job_exit.code == SUCCEEDED else []
    for path in [paths.submitted_pickle, paths.result_pickle, *logs]:
        with contextlib.suppress(OSError):
            path.unlink(missing_ok=True)


def last_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip(" -")]
    return lines[-1] if lines else type(error).__name__
