"""Ways to make many runs: processes of this machine (`local`), a Ray cluster (`ray`), Slurm (`slurm`).

Run folders are the truth: whatever an engine began, any other, or `tfstudy run`, goes on with.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import NamedTuple

from tfstudy.launchers.job import Job

__all__ = ["End", "Engine", "Job", "Settings"]


class Settings(NamedTuple):
    """How a machine's devices are shared."""

    per_device: str = "auto"
    devices: int = 1  # of one run
    accelerator: str = "auto"
    timeout: float = 0.0  # seconds; 0 is none


class End(NamedTuple):
    """How a job's process ended."""

    job: Job
    code: int  # of `job.perform`, or minus the signal that ended the process
    reason: str = ""  # what the engine knows beside the code


class Engine(ABC):
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
        """Ends every job within seconds and gives back what the engine holds. The runs can be resumed."""

    def describe(self) -> str:
        """One line on the devices and how they are shared."""
        return type(self).__name__.lower()
