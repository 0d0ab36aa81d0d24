"""Ways to make many runs: processes of this machine (`local`), a Ray cluster (`ray`), Slurm (`slurm`).

Run folders are the truth: whatever an engine began, any other, or `tfstudy run`, goes on with.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import NamedTuple

from tasks.errors import one_of
from tfstudy.launchers.job import Job

__all__ = ["End", "Executor", "Job", "Request", "ExecutorSettings", "executor"]

LAUNCHERS = ("local", "ray", "slurm")


class Request(NamedTuple):
    """What a job asks of Slurm; empty or 0 is the cluster's default."""

    partition: str = ""
    minutes: int = 240
    gres: str = ""  # such as gpu:1, or shard:1 for a share of a GPU
    cpus: int = 0
    at_once: int = 50  # jobs


class ExecutorSettings(NamedTuple):
    """How devices are shared: this machine's, or a cluster's."""

    per_device: str = "auto"
    devices: int = 1  # of one run
    accelerator: str = "auto"
    timeout: float = 0.0  # seconds; 0 is none
    ray_address: str = ""  # of a Ray cluster; empty is one that is started here
    slurm: Request = Request()


class End(NamedTuple):
    """How a job's process ended."""

    job: Job
    code: int  # of `job.perform`, or minus the signal that ended the process
    reason: str = ""  # what the engine knows beside the code


class Executor(ABC):
    """Where jobs run. `supervisor.supervise` decides what runs next and what is tried again."""

    @property
    @abstractmethod
    def at_once(self) -> int:
        """The most jobs that run at the same time."""

    @abstractmethod
    def room(self, job: Job, alone: bool) -> bool:
        """Whether the job can start now; `alone` asks for a device that does nothing else."""

    @abstractmethod
    def start(self, job: Job, alone: bool) -> None:
        """Starts a job that there is room for; returns at once."""

    @abstractmethod
    def wait(self, seconds: float) -> Sequence[End]:
        """The jobs that ended since the last call; after at most so many seconds if none did."""

    @abstractmethod
    def stop(self) -> None:
        """Ends every job within seconds and gives back what the engine holds; does nothing the second time.

        The runs can be resumed.
        """

    def describe(self) -> str:
        """One line on the devices and how they are shared."""
        return type(self).__name__.lower()


def executor(name: str, settings: ExecutorSettings) -> tuple[Executor, int]:
    """The engine of that name, and the threads that a process of a run has.

    `UserError` if there is none of that name, if what it needs is not installed, or if it has no device for a run.
    """
    one_of("launcher", name, LAUNCHERS)
    if name == "ray":
        from tfstudy.launchers.ray import ray

        return ray(settings)
    if name == "slurm":
        from tfstudy.launchers.slurm import slurm

        return slurm(settings)
    from tfstudy.launchers.local import local

    return local(settings)
