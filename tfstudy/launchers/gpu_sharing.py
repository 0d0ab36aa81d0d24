"""GPU sharing."""

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from tfstudy.runs.progress import last_step

LOOK = 15.0  # seconds
MOST = 16  # runs at once on a device
GAIN = 1.05  # what one more run must multiply the work done a second by
SPARE = 1.1  # memory kept for a run, over the most seen


class Memory(NamedTuple):
    """Of one device, in MiB."""

    used: float
    total: float


def memory() -> dict[str, Memory]:
    """Of every device, by its number; empty if there is no `nvidia-smi`, or it can't tell."""
    words = ["nvidia-smi", "--query-gpu=index,memory.used,memory.total", "--format=csv,noheader,nounits"]
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=10, check=True)
        rows = [line.split(",") for line in done.stdout.splitlines() if line.strip()]
        return {index.strip(): Memory(float(used), float(total)) for index, used, total in rows}
    except (OSError, ValueError, subprocess.SubprocessError):
        return {}


class Packer:
    """How many runs one device makes at once: one more as long as it fits and all together get more done.

    The pace is measured in runs a second, of whatever runs there, so a change of the mix between two looks is noise:
    the search goes up one by one and ends where a step gains less than 5 %.
    """

    def __init__(self, total: float, idle: float = 0.0) -> None:
        self.limit = 1
        self._total, self._idle, self._each = total, idle, 0.0
        self._paces: dict[int, float] = {}
        self._ended = False

    def look(self, running: int, used: float, pace: float) -> None:
        """Takes in what the device did since the last look with `running` runs; memory in MiB, runs a second."""
        if not running:
            return
        self._each = max(self._each, (used - self._idle) / running)
        if running < self.limit or self._ended:
            return
        self._paces[running] = pace
        if running > 1 and pace < GAIN * self._paces.get(running - 1, 0.0):
            self.limit, self._ended = running - 1, True
        elif running < MOST and self._idle + (running + 1) * self._each * SPARE <= self._total:
            self.limit = running + 1
        else:
            self._ended = True

    def overfull(self) -> None:
        """A run had too little memory: one less from now on."""
        self.limit, self._ended = max(1, self.limit - 1), True


class Sharing:
    """The packers of some devices, and what is remembered between two looks at the runs there."""

    def __init__(self, devices: Sequence[str]) -> None:
        self._packers = {name: Packer(seen.total, seen.used) for name, seen in memory().items() if name in devices}
        self._steps: dict[Path, tuple[float, float]] = {}  # when a run was looked at, and the share that it had done
        self._looked = time.monotonic()

    def limit(self, device: str) -> int:
        """The most runs at once there: 1 on a device whose memory can't be seen."""
        return self._packers[device].limit if device in self._packers else 1

    def overfull(self, device: str) -> None:
        """A run there had too little memory."""
        if device in self._packers:
            self._packers[device].overfull()

    def look(self, running: Mapping[str, Mapping[Path, int]]) -> None:
        """Measures the devices every 15 s; `running` tells of each the run folders there, with their steps in all."""
        if time.monotonic() - self._looked < LOOK:
            return
        self._looked, seen = time.monotonic(), memory()
        for device in self._packers.keys() & seen.keys():
            paces = [self._pace(path, steps) for path, steps in running.get(device, {}).items()]
            if all(pace is not None for pace in paces):  # a run that has just begun would be counted as slow
                self._packers[device].look(len(paces), seen[device].used, sum(filter(None, paces)))

    def _pace(self, path: Path, steps: int) -> float | None:
        """The share of a run that was done in a second since the last look; None if it wasn't training then."""
        before, now = self._steps.get(path), (time.monotonic(), last_step(path) / steps)
        self._steps[path] = now
        if before is None or not before[1]:
            return None
        return (now[1] - before[1]) / (now[0] - before[0])


class Service:
    """NVIDIA's multi-process service, if this machine has it, for the time of a grid: kernels of several runs overlap.

    `environment` is what a run needs to use it: empty if there is none.
    """

    def __init__(self) -> None:
        self.there = bool(shutil.which("nvidia-cuda-mps-control"))
        self._folder = ""
        self.environment: dict[str, str] = {}

    def start(self) -> None:
        """Starts it, once; without it if it is not there or does not start."""
        if not self.there or self._folder:
            return
        self._folder = tempfile.mkdtemp(prefix="tfstudy-mps-")
        given = {"CUDA_MPS_PIPE_DIRECTORY": self._folder, "CUDA_MPS_LOG_DIRECTORY": self._folder}
        self.there = self._control(["-d"], given)
        self.environment = given if self.there else {}
        if not self.there:
            self.stop()

    def stop(self) -> None:
        """Ends the service and removes its folder."""
        if self.environment:
            self._control([], self.environment, "quit\n")
        if self._folder:
            shutil.rmtree(self._folder, ignore_errors=True)
        self._folder, self.environment = "", {}

    @staticmethod
    def _control(words: list[str], environment: dict[str, str], told: str = "") -> bool:
        command = ["nvidia-cuda-mps-control", *words]
        try:
            done = subprocess.run(command, input=told, env=os.environ | environment, text=True, timeout=20, check=False)
        except (OSError, subprocess.SubprocessError):
            return False
        return done.returncode == 0


EVERY = 5.0  # seconds between two questions to nvidia-smi, which takes some tenths of a second
PATIENCE = 30.0  # seconds after which an answer is no longer waited for
QUESTION = ("--query-gpu=index,utilization.gpu,memory.used,memory.total", "--format=csv,noheader,nounits")


class Devices:
    """The load of the CPU, and of NVIDIA's GPUs if `nvidia-smi` is there."""

    def __init__(self) -> None:
        self._program = shutil.which("nvidia-smi")
        self._asked: subprocess.Popen[str] | None = None
        self._when = float("-inf")
        self._gpus: list[str] = []

    def line(self) -> str:
        """In one line, as of the last answer."""
        self._ask()
        processors = f"cpu: load {os.getloadavg()[0]:.1f} on {len(os.sched_getaffinity(0))} cores"
        return "; ".join([processors, *self._gpus])

    def stop(self) -> None:
        """Leaves no process behind."""
        if self._asked:
            self._asked.kill()
            self._asked.communicate()
            self._asked = None

    def _ask(self) -> None:
        late = time.monotonic() - self._when
        if self._asked and self._asked.poll() is not None:
            answer, _ = self._asked.communicate()
            self._gpus = [gpu(line) for line in answer.splitlines()] if self._asked.returncode == 0 else []
            self._asked = None
        elif self._asked and late > PATIENCE:
            self.stop()
        elif self._program and not self._asked and late > EVERY:
            self._when = time.monotonic()
            self._asked = subprocess.Popen(
                [self._program, *QUESTION],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
            )


def gpu(line: str) -> str:
    """`0, 87, 1024, 81559` as words: index, use in per cent, memory in MiB of all."""
    parts = [part.strip() for part in line.split(",")]
    if len(parts) != 4 or not all(part.isdigit() for part in parts):
        return f"cuda {parts[0]}: no figures"
    index, use, taken, memory = parts
    return f"cuda {index}: {use} % busy, {int(taken) / 1024:.1f} of {int(memory) / 1024:.0f} GiB"
