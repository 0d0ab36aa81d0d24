"""How many runs share a GPU: the number is raised while memory allows it and the throughput grows.

Also the load of all devices for display. `nvidia-smi` is called here and nowhere else.
"""

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from tfstudy.runs.reader import read_progress

MEASURE_SECONDS = 15.0  # between two measurements
MAX_RUNS = 16  # in parallel on a device
MIN_GAIN = 1.05  # by which one more run must raise the throughput
MEMORY_MARGIN = 1.1  # times the largest memory seen for a run
QUERY_SECONDS = 5.0  # between two calls of nvidia-smi for display; a call takes some tenths of a second
QUERY_TIMEOUT = 30.0  # seconds after which a call is abandoned
QUERY = (
    "nvidia-smi",
    "--query-gpu=index,utilization.gpu,memory.used,memory.total",
    "--format=csv,noheader,nounits",
)


class Gpu(NamedTuple):
    """The state of a GPU; None is what the driver does not report."""

    number: str
    utilization: float | None  # percent
    used: float | None  # MiB
    total: float | None  # MiB

    def __str__(self) -> str:
        if self.utilization is None or self.used is None or self.total is None:
            return f"cuda {self.number}: no measurement"
        return (
            f"cuda {self.number}: {self.utilization:.0f} % busy, {self.used / 1024:.1f} of {self.total / 1024:.0f} GiB"
        )


def parse_gpus(text: str) -> list[Gpu]:
    """Return the GPUs of an answer to `QUERY`."""

    def number(part: str) -> float | None:
        return float(part) if part.replace(".", "", 1).isdigit() else None

    rows = [[part.strip() for part in line.split(",")] for line in text.splitlines()]
    return [Gpu(row[0], *map(number, row[1:])) for row in rows if len(row) == 4]


def gpus() -> list[Gpu]:
    """Return all GPUs; empty without a working `nvidia-smi`."""
    try:
        process = subprocess.run(QUERY, capture_output=True, text=True, timeout=10, check=True)  # noqa: S603 - a fixed NVIDIA program
    except (OSError, ValueError, subprocess.SubprocessError):
        return []
    return parse_gpus(process.stdout)


class Limit:
    """The number of runs in parallel on one device, raised by one as long as another run fits and raises throughput.

    Throughput is measured in runs per second over the active runs, which may differ between two measurements. So the
    search goes up one by one and ends where a step gains less than 5 %.
    """

    def __init__(self, total: float, idle: float = 0.0) -> None:
        self.runs = 1
        self._total, self._idle, self._per_run = total, idle, 0.0  # MiB
        self._throughput: dict[int, float] = {}  # by the number of runs
        self._final = False

    def measure(self, running: int, used: float, throughput: float) -> None:
        """Update the limit by a measurement with `running` runs: memory in MiB, throughput in runs per second."""
        if not running:
            return
        self._per_run = max(self._per_run, (used - self._idle) / running)
        if running < self.runs or self._final:
            return
        self._throughput[running] = throughput
        fits = self._idle + (running + 1) * self._per_run * MEMORY_MARGIN <= self._total
        if running > 1 and throughput < MIN_GAIN * self._throughput.get(running - 1, 0.0):
            self.runs, self._final = running - 1, True
        elif running < MAX_RUNS and fits:
            self.runs = running + 1
        else:
            self._final = True

    def out_of_memory(self) -> None:
        """Lower the limit for good: a run had too little memory."""
        self.runs, self._final = max(1, self.runs - 1), True


class Sharing:
    """The limits of several devices."""

    def __init__(self, devices: Sequence[str]) -> None:
        visible = [gpu for gpu in gpus() if gpu.number in devices]
        self._limits = {gpu.number: Limit(gpu.total, gpu.used) for gpu in visible if gpu.total and gpu.used is not None}
        self._progress: dict[Path, tuple[float, float]] = {}  # of a run: time of its last report, share trained by then
        self._measured = time.monotonic()

    def limit(self, device: str) -> int:
        """How many runs may share the device: 1 if its memory is unknown."""
        return self._limits[device].runs if device in self._limits else 1

    def out_of_memory(self, device: str) -> None:
        """Lower the limit of a device on which a run had too little memory."""
        if device in self._limits:
            self._limits[device].out_of_memory()

    def measure(self, running: Mapping[str, Mapping[Path, int]]) -> None:
        """Measure every 15 s; `running` maps each device to the folders of its runs with their number of steps."""
        if time.monotonic() - self._measured < MEASURE_SECONDS:
            return
        self._measured = time.monotonic()
        for gpu in gpus():
            rates = [self._rate(path, steps) for path, steps in running.get(gpu.number, {}).items()]
            measured = [rate for rate in rates if rate is not None]
            if gpu.number in self._limits and gpu.used is not None and len(measured) == len(rates):
                self._limits[gpu.number].measure(len(rates), gpu.used, sum(measured))

    def _rate(self, path: Path, steps: int) -> float | None:
        """The share of a run's steps trained per second between its reports; None if it was not yet training then."""
        report = read_progress(path)
        last_time, last_share = self._progress.get(path, (0.0, 0.0))
        time_, share = (report.updated, report.step / steps) if report else (0.0, 0.0)
        self._progress[path] = time_, share
        if not last_share:
            return None
        return (share - last_share) / (time_ - last_time) if time_ > last_time else 0.0


class MultiProcessService:
    """NVIDIA's multi-process service (MPS), while a grid runs: kernels of several runs overlap.

    `environment` holds the variables by which a run uses it; empty if it is not running.
    """

    def __init__(self) -> None:
        self.available = bool(shutil.which("nvidia-cuda-mps-control"))
        self._folder = ""
        self.environment: dict[str, str] = {}

    def start(self) -> None:
        """Start the service once; continue without it if it does not start."""
        if not self.available or self._folder:
            return
        self._folder = tempfile.mkdtemp(prefix="tfstudy-mps-")
        environment = {"CUDA_MPS_PIPE_DIRECTORY": self._folder, "CUDA_MPS_LOG_DIRECTORY": self._folder}
        self.available = self._control(["-d"], environment)
        self.environment = environment if self.available else {}
        if not self.available:
            self.stop()

    def stop(self) -> None:
        """Stop the service and remove its folder."""
        if self.environment:
            self._control([], self.environment, "quit\n")
        if self._folder:
            shutil.rmtree(self._folder, ignore_errors=True)
        self._folder, self.environment = "", {}

    @staticmethod
    def _control(words: list[str], environment: dict[str, str], text: str = "") -> bool:
        command, variables = ["nvidia-cuda-mps-control", *words], os.environ | environment
        try:
            process = subprocess.run(command, input=text, env=variables, text=True, timeout=20, check=False)  # noqa: S603 - a fixed NVIDIA program
        except (OSError, subprocess.SubprocessError):
            return False
        return process.returncode == 0


class DeviceLoad:
    """The load of the CPU and of the GPUs, for display; GPUs are queried in the background."""

    def __init__(self) -> None:
        self._query: subprocess.Popen[str] | None = None
        self._queried = float("-inf")
        self._gpus: list[Gpu] = []

    def line(self) -> str:
        """Return the load in one line, as of the last answer."""
        self._update()
        cpu = f"cpu: load {os.getloadavg()[0]:.1f} on {len(os.sched_getaffinity(0))} cores"
        return "; ".join([cpu, *map(str, self._gpus)])

    def stop(self) -> None:
        """End the query that is running."""
        if self._query:
            self._query.kill()
            self._query.communicate()
            self._query = None

    def _update(self) -> None:
        waited = time.monotonic() - self._queried
        if self._query and self._query.poll() is not None:
            answer, _ = self._query.communicate()
            self._gpus = parse_gpus(answer) if self._query.returncode == 0 else []
            self._query = None
        elif self._query and waited > QUERY_TIMEOUT:
            self.stop()
        elif not self._query and waited > QUERY_SECONDS and shutil.which(QUERY[0]):
            self._queried = time.monotonic()
            self._query = subprocess.Popen(  # noqa: S603 - a fixed NVIDIA program
                QUERY, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
            )
