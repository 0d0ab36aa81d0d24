"""A job as a program of its own, begun by whatever process a cluster gives to it."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any

import tfstudy
from tfstudy.launchers.job import ALIVE, DONE, FAILED, Job

LEAKED = ("MASTER_ADDR", "MASTER_PORT", "NODE_RANK", "LOCAL_RANK", "WORLD_SIZE", "RANK")  # of another DDP run
FOREIGN = ("SLURM", "SBATCH_", "SRUN_", "PMI_", "PMIX_", "TORCHELASTIC_")  # what Lightning takes for its own launcher


def make(job: Job, folder: str, timeout: float = 0.0) -> tuple[int, str]:
    """Makes the job from this working folder: its exit code, or minus the signal that ended it, and what is known of
    why. After `timeout` seconds it is ended, 0 being none; it never outlives this process, however that ends.
    """
    with tempfile.TemporaryFile() as said, _alive() as alive:  # what is said before the run's log is open
        try:
            process = begin(job, alive, cwd=folder, stdout=said, stderr=said)
        except OSError as error:
            return FAILED, f"can't be started on {os.uname().nodename}: {error}"
        reason = ""
        try:
            code = process.wait(timeout or None)
        except subprocess.TimeoutExpired:
            code, reason = -signal.SIGKILL, f"took longer than the timeout of {timeout:g} s"
        finally:
            _end(process)
        return code, reason or (_last_line(said) if code != DONE else "")


def cleaned(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment without what makes Lightning believe that a cluster starts its processes.

    In a Slurm job of one task a run on two devices would else train on half of the data, and not say so.
    """
    return {
        key: value for key, value in environment.items() if key not in LEAKED and not key.startswith((*FOREIGN, ALIVE))
    }


def own_code(folder: str) -> dict[str, str]:
    """Keeps a Python that starts in this folder from taking another copy of this package that lies there."""
    here = Path(tfstudy.__file__).parents[1] == Path(folder).resolve()
    return {} if here else {"PYTHONSAFEPATH": "1"}


def begin(job: Job, alive: int, environment: Mapping[str, str] = {}, **streams: Any) -> "subprocess.Popen[bytes]":
    """The program, which ends once nothing can be read from `alive` any more; `OSError` if it can't be started."""
    return subprocess.Popen(
        [sys.executable, "-m", "tfstudy.launchers", json.dumps(job._asdict())],
        env={**cleaned(os.environ), **own_code(streams.get("cwd") or os.getcwd()), **environment, ALIVE: str(alive)},
        pass_fds=[alive],
        stdin=subprocess.DEVNULL,
        start_new_session=True,
        **streams,
    )


@contextlib.contextmanager
def _alive() -> Iterator[int]:
    """The reading end of a pipe that ends with this process."""
    ends = os.pipe()
    try:
        yield ends[0]
    finally:
        for end in ends:
            os.close(end)


def _end(process: "subprocess.Popen[bytes]") -> None:
    """Ends the program, and what it left in its group."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _last_line(said: IO[bytes]) -> str:
    said.seek(0)
    lines = said.read().decode(errors="replace").split("\n")
    return next((line.strip() for line in reversed(lines) if line.strip()), "")
