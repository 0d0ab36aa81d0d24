"""The executor of this machine that trains several runs in one process (`tfstudy.training.cohort`).

A process gets the next run of the same cohort as soon as one of its runs ends, and serves another cohort once it is
idle. A run that failed is retried in a process of its own, alone on its device.
"""

import contextlib
import multiprocessing
import time
from collections.abc import Sequence
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from tfstudy.experiment.options import device_of
from tfstudy.grids.cohorts import AUTO, cohort_key, describe_groups, grouped
from tfstudy.launchers import ExecutorSettings, JobExit
from tfstudy.launchers.cohort_process import Ended, serve
from tfstudy.launchers.gpu_sharing import Sharing
from tfstudy.launchers.job import OUT_OF_MEMORY, Job
from tfstudy.launchers.local import Local, Slot, devices_of
from tfstudy.launchers.process_control import exit_code_of, stop, uninterrupted

END_SECONDS = 5.0  # in which a process that closed its connection ends


def cohorts(settings: ExecutorSettings) -> "Cohorts":
    """Return the executor; `UserError` for devices that this machine does not have.

    `auto` is one run at a time on a CPU, where members only train in turn. On CUDA it grows while another member fits
    into the memory and raises the throughput.
    """
    cuda = device_of(settings.options).type == "cuda"
    devices, per_device, threads = devices_of(settings, 1)
    size = int(settings.cohort) if settings.cohort != AUTO else 0 if cuda else 1
    return Cohorts(devices, per_device, size, settings.timeout, threads)


class Worker:
    """A process that trains runs together."""

    def __init__(self, slot: Slot, handle: Any, connection: Connection) -> None:
        self.slot, self.handle, self.connection = slot, handle, connection
        self.key = ""  # what its members share
        self.members: dict[str, tuple[Job, float]] = {}  # by path, with the start time
        self.most = 0  # members at a time, since it was idle


class Cohorts(Local):
    """Processes of up to `size` members each; 0 is as many as raise the throughput of a CUDA device.

    A member that takes longer than `timeout` seconds, times the members that share its process, ends the process.
    """

    _units = "process", "processes"

    def __init__(
        self, devices: Sequence[str], per_device: int, size: int, timeout: float = 0.0, threads: int = 1
    ) -> None:
        super().__init__(devices, per_device, timeout, threads=threads)
        self._size, self._limits = size, None if size else Sharing(devices)
        self._workers: list[Worker] = []

    @property
    def max_parallel(self) -> int:
        """How many processes there are: the seconds of a member are its share of its process."""
        return len(self._slots)

    def ordered(self, jobs: Sequence[Job]) -> list[Job]:
        return [job for group in grouped(jobs, list(map(_key, jobs))) for job in group]

    def groups(self, jobs: Sequence[Job]) -> str:
        return describe_groups([len(group) for group in grouped(jobs, list(map(_key, jobs)))])

    def describe(self) -> str:
        members = f"up to {self._size} runs" if self._size else "as many runs as raise the throughput"
        if self._devices == ["cpu"]:
            members = f"{members} in turn" if self._size > 1 else "one run after the other (auto is 1 on a CPU)"
        return f"{super().describe()}, each for {members}"

    def has_room(self, job: Job, exclusive: bool) -> bool:
        joins = not exclusive and _key(job) and self._worker_for(job)
        return bool(joins) or super().has_room(job, exclusive)

    def start(self, job: Job, exclusive: bool) -> None:
        if exclusive or not _key(job):
            self._end([worker for worker in self._workers if not worker.members])
            super().start(job, exclusive)
            return
        if self._service:
            self._service.start()
        with uninterrupted():  # otherwise a process could run that is in no list
            worker = self._worker_for(job) or self._new_worker(job)
        if not worker.members:
            worker.most = 0
        worker.key = _key(job)
        worker.members[job.path] = job, time.monotonic()
        worker.most = max(worker.most, len(worker.members))
        with contextlib.suppress(OSError):  # it has died, which `wait` finds
            worker.connection.send((job, self._limit(worker)))

    def wait(self, seconds: float) -> Sequence[JobExit]:
        busy = [worker for worker in self._workers if worker.members]
        if not busy:
            return super().wait(seconds)
        wait(
            [*(worker.connection for worker in busy), *(process.handle.sentinel for process in self._processes)],
            seconds,
        )
        exits = [job_exit for worker in busy for job_exit in self._exits_of(worker)]
        return [*exits, *super().wait(0)]

    def stop(self) -> None:
        self._end(self._workers)
        super().stop()

    def _exits_of(self, worker: Worker) -> list[JobExit]:
        """The members that have ended; all of them if the process has, or if one takes too long."""
        exits = []
        try:
            while worker.connection.poll():
                ended: Ended = worker.connection.recv()
                job, _ = worker.members.pop(ended.path)
                exits.append(JobExit(job, ended.code, seconds=ended.seconds))
        except (EOFError, OSError):
            exits += self._lose(worker)
        allowed = self._timeout * worker.most
        if allowed and any(time.monotonic() - started > allowed for _, started in worker.members.values()):
            exits += self._lose(
                worker, f"took longer than the timeout of {self._timeout:g} s for each of {worker.most}"
            )
        if self._limits and any(job_exit.code == OUT_OF_MEMORY for job_exit in exits):
            self._limits.out_of_memory(worker.slot.device)
        return exits

    def _lose(self, worker: Worker, reason: str = "") -> list[JobExit]:
        """End the process of a worker; return its members, which end with it."""
        if not reason:
            worker.handle.join(END_SECONDS)
        code = exit_code_of(worker.handle)
        ended = self._end([worker])
        members, worker.members = worker.members, {}
        return [JobExit(job, ended if code is None else code, reason) for job, _ in members.values()]

    def _end(self, workers: Sequence[Worker]) -> int:
        self._workers = [worker for worker in self._workers if worker not in workers]
        for worker in workers:
            worker.connection.close()
        return stop([worker.handle for worker in workers])

    def _limit(self, worker: Worker) -> int:
        return self._limits.limit(worker.slot.device) if self._limits else self._size

    def _worker_for(self, job: Job) -> Worker | None:
        """The process that the job would join: an idle one, or where no slot is free, the one with most room."""
        if idle := next((worker for worker in self._workers if not worker.members), None):
            return idle
        if super().has_room(job, False):
            return None
        joinable = [w for w in self._workers if w.key == _key(job) and len(w.members) < self._limit(w)]
        return min(joinable, key=lambda worker: len(worker.members), default=None)

    def _new_worker(self, job: Job) -> Worker:
        [slot] = self._choose(job, False)
        own, other = multiprocessing.Pipe()
        handle = self._context.Process(
            target=serve, args=(other, self._environment([slot.device]), slot.device != "cpu")
        )
        handle.start()
        other.close()
        worker = Worker(slot, handle, own)
        self._workers.append(worker)
        return worker

    def _taken(self) -> set[Slot]:
        return super()._taken() | {worker.slot for worker in self._workers if worker.members}

    def _measure(self) -> None:
        if self._limits:
            running: dict[str, dict[Path, int]] = {}
            for worker in self._workers:
                steps = {Path(path): job.config["train"]["steps"] for path, (job, _) in worker.members.items()}
                running.setdefault(worker.slot.device, {}).update(steps)
            self._limits.measure(running)


def _key(job: Job) -> str:
    """What the jobs of one process share; empty for a job that needs its own."""
    key = cohort_key(job.config)
    return key and repr((key, job.options._replace(preset=""), job.threads, job.plugins))
