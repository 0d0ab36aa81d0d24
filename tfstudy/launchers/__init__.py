"""Executors run the jobs of a study: processes of this machine (`local`) or a Ray cluster (`ray`).

A job can also be submitted to Slurm (`slurm`). The run folders hold all state: what was started one way can be resumed
in any other.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import NamedTuple

from tfstudy.experiment.api import DEFAULTS, RunOptions
from tfstudy.launchers.job import Job

__all__ = ["LAUNCHERS", "Executor", "ExecutorSettings", "Job", "JobExit"]

LAUNCHERS = ("local", "ray", "slurm")


class ExecutorSettings(NamedTuple):
    """Where runs are executed, and how they share the devices there."""

    per_device: str = "auto"  # runs in parallel on each device: a number or auto
    options: RunOptions = DEFAULTS  # of every run
    launcher: str = "local"  # one of LAUNCHERS
    ray_address: str = ""  # of a Ray cluster; empty: start one on this machine
    slurm: tuple[str, ...] = ()  # options of sbatch, as KEY=VALUE


class JobExit(NamedTuple):
    """How the process of a job ended."""

    job: Job
    code: int  # an exit code of `job.perform`, or minus the signal that ended the process
    reason: str = ""  # known to the executor in addition to the code


class Executor(ABC):
    """Runs jobs. `supervisor.supervise` decides which job starts next and which is retried."""

    threads: int = 1  # CPU threads of a run

    @property
    @abstractmethod
    def max_parallel(self) -> int:
        """How many jobs can run at the same time."""

    @abstractmethod
    def has_room(self, exclusive: bool) -> bool:
        """Whether a job can start now; `exclusive` requires a device without any other run."""

    @abstractmethod
    def start(self, job: Job, exclusive: bool) -> None:
        """Start a job for which there is room, without waiting for it."""

    @abstractmethod
    def wait(self, seconds: float) -> Sequence[JobExit]:
        """Return the jobs that ended since the last call; wait at most this long if none did."""

    @abstractmethod
    def stop(self) -> None:
        """End all jobs within seconds and free all resources; a second call does nothing. Runs can be resumed."""

    def describe(self) -> str:
        """Return the devices and how runs share them, in one line."""
        return type(self).__name__.lower()
