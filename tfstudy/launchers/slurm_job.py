"""A job that was submitted to Slurm, and its files, which are those of submitit."""

import contextlib
from typing import Any, NamedTuple

from tfstudy.launchers import JobExit
from tfstudy.launchers.job import FAILED, SUCCEEDED, Job


class Submitted(NamedTuple):
    """A job that was submitted; `handle` is submitit's."""

    job: Job
    handle: Any
    own: bool = True  # submitted by this launcher, which cancels it on Ctrl-C
    missed: int = 0  # calls of squeue since Slurm last listed it as alive


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
