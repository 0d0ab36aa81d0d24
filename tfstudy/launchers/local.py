"""The executor of this machine: one process for each run, on one slot of a device.

Processes are forked from a server that has imported torch and Lightning, which saves seconds per run. They end with
this process, however it ends. Runs that share a GPU do so through NVIDIA's multi-process service (MPS).
"""

import multiprocessing
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess
from typing import NamedTuple

from tfstudy.errors import UserError, quoted
from tfstudy.experiment.api import device_of
from tfstudy.launchers import Executor, ExecutorSettings, JobExit
from tfstudy.launchers.job import Job, perform
from tfstudy.launchers.processes import DDP_VARIABLES, kill_group, kill_with, start_server, stop

MAX_PER_DEVICE = 64
MPS_CONTROL = "nvidia-cuda-mps-control"
AUTO = "auto"


def local(settings: ExecutorSettings) -> "Local":
    """Return the executor of this machine; `UserError` for devices that it does not have.

    By default a GPU gets one run, and a CPU as many as it has cores: models of this size gain little from a second
    thread. All runs of a grid have the same number of threads, whatever else is running, so that their sums are rounded
    alike; OMP_NUM_THREADS is the most, since threads that share a core with other work wait for each other.
    """
    import torch

    cores = len(os.sched_getaffinity(0))
    if device_of(settings.options).type == "cuda":
        visible = os.environ.get("CUDA_VISIBLE_DEVICES", "")
        devices = visible.split(",") if visible else [str(number) for number in range(torch.cuda.device_count())]
        per_device = runs_per_device(settings.per_device, 1)
    else:
        devices, per_device = ["cpu"], runs_per_device(settings.per_device, cores)
    most = torch.get_num_threads() if "OMP_NUM_THREADS" in os.environ else cores
    threads = max(1, min(most, cores // (per_device * len(devices))))
    return Local(devices, per_device, threads)


def runs_per_device(text: str, auto: int) -> int:
    """Return `--per-device` as a number, `auto` for "auto"; `UserError` if it is neither."""
    if text == AUTO:
        return auto
    if not re.fullmatch("[0-9]{1,2}", text) or not 1 <= int(text) <= MAX_PER_DEVICE:
        raise UserError(f"--per-device must be auto or a number from 1 to {MAX_PER_DEVICE}, but is {quoted(text)}")
    return int(text)


class Process(NamedTuple):
    """A running job, its device, and how many shares of the device it has."""

    job: Job
    device: str
    shares: int
    handle: BaseProcess


class Local(Executor):
    """Up to `per_device` processes on each device, "cpu" or the number of a CUDA device."""

    def __init__(self, devices: Sequence[str], per_device: int, threads: int = 1) -> None:
        self.threads = threads
        self._devices, self._per_device = list(devices), per_device
        self._processes: list[Process] = []
        self._service = MultiProcessService() if per_device > 1 and "cpu" not in devices else None
        self._context = start_server()  # it imports while the grid is being planned

    @property
    def max_parallel(self) -> int:
        return len(self._devices) * self._per_device

    def describe(self) -> str:
        count = f"{self._per_device} run{'s' * (self._per_device > 1)} in parallel"
        if self._devices == ["cpu"]:
            return f"device: cpu, {count}"
        return f"device{'s' * (len(self._devices) > 1)}: cuda {', '.join(self._devices)}; {count} on each"

    def has_room(self, exclusive: bool) -> bool:
        return self._taken(self._emptiest()) <= (0 if exclusive else self._per_device - 1)

    def start(self, job: Job, exclusive: bool) -> None:
        if self._service:
            self._service.start()  # with the first run
        device = self._emptiest()
        shares = self._per_device if exclusive else 1
        self._processes.append(Process(job, device, shares, self._fork(job, device)))

    def wait(self, seconds: float) -> Sequence[JobExit]:
        if self._processes:
            wait([process.handle.sentinel for process in self._processes], seconds)
        else:
            time.sleep(seconds)
        exits = []
        for process in list(self._processes):
            code = process.handle.exitcode
            if code is not None:
                kill_group(process.handle.pid, signal.SIGKILL)  # its remaining children
                self._processes.remove(process)
                exits.append(JobExit(process.job, code))
        return exits

    def stop(self) -> None:
        stop([process.handle for process in self._processes])
        self._processes.clear()
        if self._service:
            self._service.stop()

    def _taken(self, device: str) -> int:
        return sum(process.shares for process in self._processes if process.device == device)

    def _emptiest(self) -> str:
        return min(self._devices, key=self._taken)

    def _fork(self, job: Job, device: str) -> BaseProcess:
        visible = {} if device == "cpu" else {"CUDA_VISIBLE_DEVICES": device}
        environment = visible | (self._service.environment if self._service else {})
        process = self._context.Process(target=_child, args=(job, environment))
        process.start()
        return process


def _child(job: Job, environment: dict[str, str]) -> None:
    """Execute a job in a forked process, which gets a group of its own and ends with its launcher.

    It stays in the session of the launcher, because Linux shares the CPU among sessions: `nice` counts within one only.
    """
    os.setpgid(0, 0)
    for name in DDP_VARIABLES:
        os.environ.pop(name, None)
    os.environ.update(environment)
    parent = multiprocessing.parent_process()
    assert parent  # noqa: S101 - always true; for the type checker
    kill_with(lambda: wait([parent.sentinel]))
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    sys.exit(perform(job))


class MultiProcessService:
    """NVIDIA's multi-process service (MPS), while a grid runs: kernels of several runs overlap.

    `environment` holds the variables by which a run uses it; empty if it is not running.
    """

    def __init__(self) -> None:
        self._folder = ""
        self.environment: dict[str, str] = {}

    def start(self) -> None:
        """Start the service once; continue without it if it does not start."""
        if not self._folder and shutil.which(MPS_CONTROL):
            self._folder = tempfile.mkdtemp(prefix="tfstudy-mps-")
            environment = dict.fromkeys(("CUDA_MPS_PIPE_DIRECTORY", "CUDA_MPS_LOG_DIRECTORY"), self._folder)
            if _started(MPS_CONTROL, "-d", environment=environment):
                self.environment = environment

    def stop(self) -> None:
        """Stop the service and remove its folder."""
        if self.environment:
            _started(MPS_CONTROL, environment=self.environment, text="quit\n")
        if self._folder:
            shutil.rmtree(self._folder, ignore_errors=True)
        self._folder, self.environment = "", {}


def _started(*words: str, environment: dict[str, str], text: str = "") -> bool:
    try:
        subprocess.run(words, input=text, env=os.environ | environment, text=True, timeout=20, check=True)  # noqa: S603 - a fixed NVIDIA program
    except (OSError, subprocess.SubprocessError):
        return False
    return True
