"""The processes of this machine: one a run, one device's slot a process.

Processes are forked from a server that has torch and Lightning imported already, which saves seconds a run. They end
with this process, however it ends.
"""

import contextlib
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from multiprocessing.connection import wait
from multiprocessing.forkserver import ensure_running
from pathlib import Path
from typing import Any, NamedTuple

from tasks.errors import UserError, one_of
from tfstudy.launchers import End, Executor, ExecutorSettings
from tfstudy.launchers.gpu_sharing import MOST, Service, Sharing
from tfstudy.launchers.job import MEMORY, Job, end_with, perform
from tfstudy.launchers.subprocess_job import LEAKED, begin, own_code

GRACE = 5.0  # seconds between asking a process to end and ending it


def local(settings: ExecutorSettings) -> tuple["Local", int]:
    """This machine's engine, and the threads that a process of it has; `UserError` for devices that are not there.

    On a CPU `auto` is one process a core: models of this size gain little by a second thread, and a run has as many
    threads whatever runs beside it, so that its sums are rounded alike.
    """
    import torch

    one_of("accelerator", settings.accelerator, ("auto", "cpu", "cuda"))
    cores, there = len(os.sched_getaffinity(0)), torch.cuda.device_count()
    if settings.accelerator == "cuda" and not there:
        raise UserError("--accelerator cuda: torch sees no CUDA device here")
    cuda = settings.accelerator != "cpu" and there > 0
    if cuda and settings.devices > there:
        raise UserError(f"--devices must be at most {there} here, but is {settings.devices}")
    sharing = cuda and settings.per_device == "auto" and settings.devices == 1
    most = MOST if sharing else 1
    count = runs_at_once(settings.per_device, most if cuda else max(1, cores // settings.devices))
    named = os.environ.get("CUDA_VISIBLE_DEVICES", "")
    devices = (named.split(",") if named else list(map(str, range(there)))) if cuda else ["cpu"]
    threads = max(1, cores // (count * len(devices) * settings.devices))
    return Local(devices, count, settings.timeout, sharing, settings.devices), threads


def runs_at_once(text: str, auto: int) -> int:
    """`--per-device` as a number, which `auto` stands for; `UserError` if it is none."""
    if text == "auto":
        return auto
    if not text.isdigit() or not 1 <= int(text) <= 64:
        raise UserError(f"--per-device must be auto or a number from 1 to 64, but is '{text}'")
    return int(text)


@contextlib.contextmanager
def with_environment(more: Mapping[str, str]) -> Iterator[None]:
    """With these variables for the processes that are started within."""
    before = dict(os.environ)
    os.environ.update(more)
    try:
        yield
    finally:
        for name in more.keys() - before.keys():
            del os.environ[name]
        os.environ.update(before)


@contextlib.contextmanager
def uninterrupted() -> Iterator[None]:
    """What is done within is done whole; an interruption is heard afterwards. Only the main thread ever hears one."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    heard: list[int] = []
    before = {n: signal.signal(n, lambda number, _: heard.append(number)) for n in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler or signal.SIG_DFL)
        if heard:
            signal.raise_signal(heard[0])


class Slot(NamedTuple):
    """A share of a device."""

    device: str  # "cpu", or the number of a CUDA device
    share: int


class Process(NamedTuple):
    """A job at work."""

    job: Job
    slots: tuple[Slot, ...]
    handle: Any  # multiprocessing's or subprocess's
    began: float


class Local(Executor):
    """Up to `per_device` processes on each of the devices; a job that takes longer than `timeout` seconds is ended.

    With `sharing` it is found out how many of them a CUDA device takes with a gain (`cuda.Packer`). A run takes `width`
    devices, which on a CPU are processes of one slot.
    """

    def __init__(
        self, devices: Sequence[str], per_device: int, timeout: float = 0.0, sharing: bool = False, width: int = 1
    ) -> None:
        self._devices, self._width = list(devices), width
        self._slots = [Slot(device, share) for share in range(per_device) for device in devices]
        self._per_device, self._timeout = per_device, timeout
        self._processes: list[Process] = []
        self._alive: tuple[int, ...] = os.pipe()  # its end tells a program that this process is gone
        self._sharing = Sharing(devices) if sharing else None
        self._service = Service() if per_device > 1 and "cpu" not in devices else None  # starts with the first run
        self._context = multiprocessing.get_context("forkserver")
        self._context.set_forkserver_preload(["tfstudy.launchers.preload"])
        with with_environment(own_code(os.getcwd())):
            ensure_running()  # it imports while the grid is planned

    @property
    def at_once(self) -> int:
        if self._sharing:
            return sum(self._sharing.limit(device) for device in self._devices)
        whole = self._width > 1 and "cpu" not in self._devices
        return len(self._devices) // self._width if whole else len(self._slots)

    def describe(self) -> str:
        names = "cpu" if self._devices == ["cpu"] else f"cuda {', '.join(self._devices)}"
        if self._sharing:
            count = "as many runs on each at once as fit and pay"
        else:
            count = f"{self._per_device} run{'s' * (self._per_device > 1)} on each at once"
        service = ", by NVIDIA's multi-process service" if self._service and self._service.there else ""
        return f"{names}, {count}{service}"

    def room(self, job: Job, alone: bool) -> bool:
        return bool(self._choose(job, alone))

    def start(self, job: Job, alone: bool) -> None:
        if self._service:
            self._service.start()
        slots = self._choose(job, alone)
        devices = list(dict.fromkeys(slot.device for slot in slots))
        start = self._fork if job.devices == 1 else self._spawn
        with uninterrupted():  # else a process could be there that nobody knows
            self._processes.append(Process(job, slots, start(job, devices), time.monotonic()))

    def wait(self, seconds: float) -> Sequence[End]:
        forked = [p.handle.sentinel for p in self._processes if not isinstance(p.handle, subprocess.Popen)]
        if len(forked) < len(self._processes):  # a program has no sentinel
            seconds = min(seconds, 0.05)
        if forked:
            wait(forked, seconds)
        else:
            time.sleep(seconds)
        self._look()
        ends = []
        for process in list(self._processes):
            code, reason = _exit_code(process.handle), ""
            if code is None and self._timeout and time.monotonic() - process.began > self._timeout:
                code, reason = _end([process]), f"took longer than the timeout of {self._timeout:g} s"
            if code is not None:
                _kill(process.handle.pid, signal.SIGKILL)  # what a process left in its group
                self._processes.remove(process)
                if code == MEMORY and self._sharing:
                    self._sharing.overfull(process.slots[0].device)
                ends.append(End(process.job, code, reason))
        return ends

    def stop(self) -> None:
        _end(self._processes)
        self._processes.clear()
        for end in self._alive:
            os.close(end)
        self._alive = ()
        if self._service:
            self._service.stop()

    def _look(self) -> None:
        if self._sharing:
            running: dict[str, dict[Path, int]] = {}
            for process in self._processes:
                steps = process.job.config["train"]["steps"]
                running.setdefault(process.slots[0].device, {})[Path(process.job.path)] = steps
            self._sharing.look(running)

    def _choose(self, job: Job, alone: bool) -> tuple[Slot, ...]:
        """The slots that the job would get: whole devices if it wants several, or to be alone."""
        taken = {slot for process in self._processes for slot in process.slots}
        free = [slot for slot in self._slots if slot not in taken]
        by_device: dict[str, list[Slot]] = {}
        for slot in free:
            by_device.setdefault(slot.device, []).append(slot)
        if self._sharing:
            open_ = {d: self._sharing.limit(d) - sum(slot.device == d for slot in taken) for d in by_device}
            by_device = {d: slots for d, slots in by_device.items() if open_[d] > 0}
        idle = [slots for slots in by_device.values() if len(slots) == self._per_device]
        wanted = 1 if "cpu" in self._devices else job.devices
        if alone or wanted > 1:
            whole = idle[:wanted] if len(idle) >= wanted else []
            return tuple(slot for slots in whole for slot in slots)
        return (max(by_device.values(), key=len)[0],) if by_device else ()

    def _environment(self, devices: Sequence[str]) -> dict[str, str]:
        visible = {} if "cpu" in devices else {"CUDA_VISIBLE_DEVICES": ",".join(devices)}
        return visible | (self._service.environment if self._service else {})

    def _fork(self, job: Job, devices: Sequence[str]) -> Any:
        process = self._context.Process(target=_child, args=(job, self._environment(devices)))
        process.start()
        return process

    def _spawn(self, job: Job, devices: Sequence[str]) -> "subprocess.Popen[bytes]":
        """A program of its own: Lightning starts the processes of the other devices by its command line."""
        return begin(job, self._alive[0], self._environment(devices))


def _child(job: Job, environment: dict[str, str]) -> None:
    os.setsid()
    for name in LEAKED:
        os.environ.pop(name, None)
    os.environ.update(environment)
    parent = multiprocessing.parent_process()
    assert parent
    end_with(lambda: wait([parent.sentinel]))
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    sys.exit(perform(job))


def _exit_code(handle: Any) -> int | None:
    code: int | None = handle.poll() if isinstance(handle, subprocess.Popen) else handle.exitcode
    return code


def _kill(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, number)


def _end(processes: Sequence[Process]) -> int:
    """Ends the processes and their groups: asked first, then made to. Returns minus the signal."""
    for process in processes:
        _kill(process.handle.pid, signal.SIGTERM)
    last = time.monotonic() + GRACE
    while time.monotonic() < last and any(_exit_code(p.handle) is None for p in processes):
        time.sleep(0.02)
    for process in processes:
        _kill(process.handle.pid, signal.SIGKILL)
        process.handle.wait() if isinstance(process.handle, subprocess.Popen) else process.handle.join()
    return -signal.SIGKILL
