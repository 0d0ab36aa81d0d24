"""A job as a separate Python process, for the workers of a cluster and for runs on several devices."""

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from typing import IO, Any

from tfstudy.launchers.job import FAILED, LAUNCHER_PIPE, SUCCEEDED, Job
from tfstudy.launchers.process_control import kill_group, own_code

DDP_VARIABLES = ("MASTER_ADDR", "MASTER_PORT", "NODE_RANK", "LOCAL_RANK", "WORLD_SIZE", "RANK")  # of another DDP run
CLUSTER_PREFIXES = ("SLURM", "SBATCH_", "SRUN_", "PMI_", "PMIX_", "TORCHELASTIC_")  # by which Lightning detects one


def execute(job: Job, folder: str, timeout: float = 0.0) -> tuple[int, str]:
    """Run the job in this working folder; return its exit code (or minus the signal that ended it) and the reason.

    The job is killed after `timeout` seconds (0: never). It never outlives this process.
    """
    with tempfile.TemporaryFile() as output, _pipe() as pipe:  # output before the run's log is open
        try:
            process = start(job, pipe, cwd=folder, stdout=output, stderr=output)
        except OSError as error:
            return FAILED, f"can't be started on {os.uname().nodename}: {error}"
        reason = ""
        try:
            code = process.wait(timeout or None)
        except subprocess.TimeoutExpired:
            code, reason = -signal.SIGKILL, f"took longer than the timeout of {timeout:g} s"
        finally:
            kill_group(process.pid, signal.SIGKILL)
            process.wait()
        return code, reason or (_last_line(output) if code != SUCCEEDED else "")


def without_cluster(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment without the variables that make Lightning expect a cluster to start its processes.

    Otherwise a run on two devices within a Slurm job of one task would silently train on half of the data.
    """
    removed = (*CLUSTER_PREFIXES, LAUNCHER_PIPE)
    return {k: v for k, v in environment.items() if k not in DDP_VARIABLES and not k.startswith(removed)}


def start(job: Job, pipe: int, environment: Mapping[str, str] = {}, **streams: Any) -> "subprocess.Popen[bytes]":
    """Start the process, which is killed when the other end of `pipe` closes; `OSError` if it can't be started."""
    code = own_code(streams.get("cwd") or os.getcwd())
    return subprocess.Popen(  # noqa: S603 - this Python, with our own module
        [sys.executable, "-m", "tfstudy.launchers", job.to_json()],
        env={**without_cluster(os.environ), **code, **environment, LAUNCHER_PIPE: str(pipe)},
        pass_fds=[pipe],
        stdin=subprocess.DEVNULL,
        process_group=0,
        **streams,
    )


@contextlib.contextmanager
def _pipe() -> Iterator[int]:
    """The reading end of a pipe that closes when this process ends."""
    ends = os.pipe()
    try:
        yield ends[0]
    finally:
        for end in ends:
            os.close(end)


def _last_line(output: IO[bytes]) -> str:
    output.seek(0)
    lines = output.read().decode(errors="replace").split("\n")
    return next((line.strip() for line in reversed(lines) if line.strip()), "")
