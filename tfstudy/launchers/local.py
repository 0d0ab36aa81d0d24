"""The executor of this machine: one process for each run, on one slot of a device.

Processes are forked from a server that has imported torch and Lightning, which saves seconds per run. They end with
this process, however it ends.
"""

import multiprocessing
import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any, NamedTuple

from tfstudy.errors import UserError, quoted
from tfstudy.experiment.options import device_of
from tfstudy.launchers import Executor, ExecutorSettings, JobExit
from tfstudy.launchers.gpu_sharing import MAX_RUNS, MultiProcessService, Sharing
from tfstudy.launchers.job import OUT_OF_MEMORY, Job, kill_with, perform
from tfstudy.launchers.process_control import exit_code_of, kill_group, start_server, stop, uninterrupted
from tfstudy.launchers.subprocess_job import DDP_VARIABLES, start

MAX_PER_DEVICE = 64


def local(settings: ExecutorSettings) -> "Local":
    """Return the executor of this machine; `UserError` for devices that it does not have.

    On a CPU `auto` is one process per core: models of this size gain little from a second thread. All runs of a grid
    have the same number of threads, whatever else is running, so that their sums are rounded alike.
    """
    options = settings.options
    cuda = device_of(options).type == "cuda"
    sharing = cuda and settings.per_device == "auto" and options.devices == 1
    devices, per_device, threads = devices_of(settings, MAX_RUNS if sharing else 1)
    return Local(devices, per_device, settings.timeout, sharing, options.devices, threads)


def devices_of(settings: ExecutorSettings, auto_cuda: int) -> tuple[list[str], int, int]:
    """Return the devices of this machine, the processes on each of them, and the threads of a process.

    `auto_cuda` is the number of processes on a CUDA device by default.
    """
    import torch

    options = settings.options
    cuda = device_of(options).type == "cuda"
    cores, visible = len(os.sched_getaffinity(0)), os.environ.get("CUDA_VISIBLE_DEVICES", "")
    numbers = visible.split(",") if visible else [str(number) for number in range(torch.cuda.device_count())]
    devices = numbers if cuda else ["cpu"]
    auto = auto_cuda if cuda else max(1, cores // options.devices)
    per_device = runs_per_device(settings.per_device, auto)
    return devices, per_device, max(1, cores // (per_device * len(devices) * options.devices))


def runs_per_device(text: str, auto: int) -> int:
    """Return `--per-device` as a number, `auto` for "auto"; `UserError` if it is neither."""
    if text == "auto":
        return auto
    if not re.fullmatch("[0-9]{1,2}", text) or not 1 <= int(text) <= MAX_PER_DEVICE:
        raise UserError(f"--per-device must be auto or a number from 1 to {MAX_PER_DEVICE}, but is {quoted(text)}")
    return int(text)


class Slot(NamedTuple):
    """A share of a device."""

    device: str  # "cpu", or the number of a CUDA device
    share: int


class Process(NamedTuple):
    """A running job."""

    job: Job
    slots: tuple[Slot, ...]
    handle: Any  # of multiprocessing or subprocess
    started: float


class Local(Executor):
    """Up to `per_device` processes on each device; a job that takes longer than `timeout` seconds is killed.

    With `sharing`, the number of runs on a CUDA device is measured (`gpu_sharing.Limit`). A run takes `width` devices;
    on a CPU these are processes of one slot.
    """

    _units = "run", "runs"  # what a slot is for

    def __init__(
        self,
        devices: Sequence[str],
        per_device: int,
        timeout: float = 0.0,
        sharing: bool = False,
        width: int = 1,
        threads: int = 1,
    ) -> None:
        self.threads = threads
        self._devices, self._width = list(devices), width
        self._slots = [Slot(device, share) for share in range(per_device) for device in devices]
        self._per_device, self._timeout = per_device, timeout
        self._processes: list[Process] = []
        self._pipe: tuple[int, ...] = os.pipe()  # closes when this process ends
        self._sharing = Sharing(devices) if sharing else None
        shared = per_device > 1 and "cpu" not in devices
        self._service = MultiProcessService() if shared else None  # starts with the first run
        self._context = start_server()  # it imports while the grid is being planned

    @property
    def max_parallel(self) -> int:
        if self._sharing:
            return sum(self._sharing.limit(device) for device in self._devices)
        whole = self._width > 1 and "cpu" not in self._devices
        return len(self._devices) // self._width if whole else len(self._slots)

    def describe(self) -> str:
        count = f"{self._per_device} {self._units[self._per_device > 1]} in parallel"
        if self._devices == ["cpu"]:
            return f"device: cpu, {count}"
        devices = f"device{'s' * (len(self._devices) > 1)}: cuda {', '.join(self._devices)}"
        runs = "as many runs in parallel on each as raise the throughput" if self._sharing else f"{count} on each"
        service = ", with NVIDIA's multi-process service" if self._service and self._service.available else ""
        return f"{devices}; {runs}{service}"

    def has_room(self, job: Job, exclusive: bool) -> bool:
        return bool(self._choose(job, exclusive))

    def start(self, job: Job, exclusive: bool) -> None:
        if self._service:
            self._service.start()
        slots = self._choose(job, exclusive)
        devices = list(dict.fromkeys(slot.device for slot in slots))
        start_process = self._fork if job.options.devices == 1 else self._spawn
        with uninterrupted():  # otherwise a process could run that is in no list
            self._processes.append(Process(job, slots, start_process(job, devices), time.monotonic()))

    def wait(self, seconds: float) -> Sequence[JobExit]:
        forked = [p.handle.sentinel for p in self._processes if not isinstance(p.handle, subprocess.Popen)]
        if len(forked) < len(self._processes):  # a subprocess has no sentinel
            seconds = min(seconds, 0.05)
        if forked:
            wait(forked, seconds)
        else:
            time.sleep(seconds)
        self._measure()
        exits = []
        for process in list(self._processes):
            code, reason = exit_code_of(process.handle), ""
            if code is None and self._timeout and time.monotonic() - process.started > self._timeout:
                code, reason = stop([process.handle]), f"took longer than the timeout of {self._timeout:g} s"
            if code is not None:
                kill_group(process.handle.pid, signal.SIGKILL)  # its remaining children
                self._processes.remove(process)
                if code == OUT_OF_MEMORY and self._sharing:
                    self._sharing.out_of_memory(process.slots[0].device)
                exits.append(JobExit(process.job, code, reason))
        return exits

    def stop(self) -> None:
        stop([process.handle for process in self._processes])
        self._processes.clear()
        for end in self._pipe:
            os.close(end)
        self._pipe = ()
        if self._service:
            self._service.stop()

    def _measure(self) -> None:
        if self._sharing:
            running: dict[str, dict[Path, int]] = {}
            for process in self._processes:
                steps = process.job.config["train"]["steps"]
                running.setdefault(process.slots[0].device, {})[Path(process.job.path)] = steps
            self._sharing.measure(running)

    def _choose(self, job: Job, exclusive: bool) -> tuple[Slot, ...]:
        """The slots that the job would get: whole devices if it needs several, or one without another run."""
        taken = self._taken()
        free = [slot for slot in self._slots if slot not in taken]
        by_device: dict[str, list[Slot]] = {}
        for slot in free:
            by_device.setdefault(slot.device, []).append(slot)
        if self._sharing:
            running = Counter(slot.device for slot in taken)
            by_device = {d: slots for d, slots in by_device.items() if running[d] < self._sharing.limit(d)}
        idle = [slots for slots in by_device.values() if len(slots) == self._per_device]
        wanted = 1 if "cpu" in self._devices else job.options.devices
        if exclusive or wanted > 1:
            whole = idle[:wanted] if len(idle) >= wanted else []
            return tuple(slot for slots in whole for slot in slots)
        return (max(by_device.values(), key=len)[0],) if by_device else ()

    def _taken(self) -> set[Slot]:
        return {slot for process in self._processes for slot in process.slots}

    def _environment(self, devices: Sequence[str]) -> dict[str, str]:
        visible = {} if "cpu" in devices else {"CUDA_VISIBLE_DEVICES": ",".join(devices)}
        return visible | (self._service.environment if self._service else {})

    def _fork(self, job: Job, devices: Sequence[str]) -> Any:
        process = self._context.Process(target=_child, args=(job, self._environment(devices)))
        process.start()
        return process

    def _spawn(self, job: Job, devices: Sequence[str]) -> "subprocess.Popen[bytes]":
        """A process with a command line, by which Lightning starts the processes of the other devices."""
        return start(job, self._pipe[0], self._environment(devices))


def _child(job: Job, environment: dict[str, str]) -> None:
    enter(environment)
    sys.exit(perform(job))


def enter(environment: dict[str, str]) -> None:
    """Make a forked process one of its own group, which ends with its launcher.

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
