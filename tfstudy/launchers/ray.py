"""The executor of a Ray cluster, which may be started on this machine: runs share GPUs, nodes may join and leave.

Ray places the tasks and reports lost nodes. Each run is a separate process, so that no state stays between runs and a
run on several devices can start its other processes. All nodes must see the same folders.
"""

import os
import signal
import socket
import sys
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

from tfstudy.errors import UserError, one_of
from tfstudy.experiment.options import ACCELERATORS
from tfstudy.launchers import Executor, ExecutorSettings, JobExit
from tfstudy.launchers.job import FAILED, OUT_OF_MEMORY, Job
from tfstudy.launchers.local import runs_per_device
from tfstudy.launchers.process_control import GRACE_SECONDS
from tfstudy.launchers.subprocess_job import execute

MAX_LOSSES = 10  # how often a job is restarted because its node was lost, before it counts as failed
POLL_SECONDS = 2.0  # between two queries of the nodes
CONNECT_TIMEOUT = 10.0  # seconds
OBJECT_STORE = 100_000_000  # bytes of shared memory for Ray: jobs and results are small


class Resources(NamedTuple):
    """CPUs and GPUs of a node or for a job."""

    cpus: float
    gpus: float

    def fits(self, node: "Resources") -> int:
        """How many times these resources fit on a node."""
        return int(min(available // needed for available, needed in zip(node, self, strict=True) if needed))


class Allocation(NamedTuple):
    """The resources of a job, of a job that shares no device, and its threads for each device."""

    shared: Resources
    exclusive: Resources
    threads: int


def ray(settings: ExecutorSettings) -> "Ray":
    """Return the executor of a Ray cluster.

    `UserError` if Ray is not installed, no cluster answers, or no node has the resources of a run.
    """
    one_of("accelerator", settings.options.accelerator, ACCELERATORS)
    library = _library()
    _connect(library, settings.ray_address)
    try:
        allocation = allocate(_nodes(library), settings)
    except UserError:
        library.shutdown()
        raise
    return Ray(library, allocation, settings)


def allocate(nodes: Sequence[Resources], settings: ExecutorSettings) -> Allocation:
    """Return how runs share a cluster of these nodes; `UserError` if no node can hold a run.

    All runs have the same number of threads, whatever else is running: as many as the smallest suitable node allows.
    """
    devices, accelerator = settings.options.devices, settings.options.accelerator
    cuda = accelerator == "cuda" or (accelerator == "auto" and any(node.gpus for node in nodes))
    suitable = [node for node in nodes if (node.gpus if cuda else node.cpus) >= devices and node.cpus >= 1]
    if not suitable:
        maximum = int(max((node.gpus if cuda else node.cpus for node in nodes), default=0))
        kind = "GPUs" if cuda else "CPUs"
        raise UserError(f"--devices {devices}: a node of the Ray cluster has at most {maximum} {kind}")
    smallest = min(suitable, key=lambda node: (node.cpus, node.gpus))
    count = runs_per_device(settings.per_device, 1 if cuda else max(1, int(smallest.cpus) // devices))
    parallel = count * int(smallest.gpus) // devices if cuda else count
    threads = max(1, int(smallest.cpus) // (max(1, parallel) * devices))
    cpus = min(threads * devices, int(smallest.cpus))
    gpus = (devices if devices > 1 else 1 / count) if cuda else 0.0
    exclusive = Resources(cpus, devices) if cuda else Resources(int(smallest.cpus), 0.0)
    return Allocation(Resources(cpus, gpus), exclusive, threads)


class Ray(Executor):
    """Tasks of a Ray cluster that this process joined or started. A job whose node is lost is started again."""

    def __init__(self, library: Any, allocation: Allocation, settings: ExecutorSettings) -> None:
        self.threads = allocation.threads
        self._library, self._allocation, self._timeout = library, allocation, settings.timeout
        self._address = settings.ray_address
        self._task = library.remote(execute)
        self._jobs: dict[Any, tuple[Job, Resources]] = {}  # by Ray's reference to the result
        self._losses: dict[str, int] = {}
        self._polled, self._max_parallel = float("-inf"), 0

    @property
    def max_parallel(self) -> int:
        if time.monotonic() - self._polled > POLL_SECONDS:
            self._polled = time.monotonic()
            self._max_parallel = sum(self._allocation.shared.fits(node) for node in _nodes(self._library))
        return self._max_parallel

    def describe(self) -> str:
        cluster = f"Ray at {self._address}" if self._address else "Ray, started on this machine"
        cpus, gpus = self._allocation.shared
        return f"{cluster}, {self.max_parallel} runs in parallel, each with {cpus:g} CPUs and {gpus:g} GPUs"

    def has_room(self, job: Job, exclusive: bool) -> bool:
        return len(self._jobs) < self.max_parallel

    def start(self, job: Job, exclusive: bool) -> None:
        self._submit(job, self._allocation.exclusive if exclusive else self._allocation.shared)

    def wait(self, seconds: float) -> Sequence[JobExit]:
        if not self._jobs:
            time.sleep(seconds)
            return []
        self._library.wait(list(self._jobs), num_returns=1, timeout=seconds)
        ready, _ = self._library.wait(list(self._jobs), num_returns=len(self._jobs), timeout=0)
        exits = [self._exit_of(reference) for reference in ready]
        return [job_exit for job_exit in exits if job_exit]

    def stop(self) -> None:
        """End all jobs and disconnect, which stops a cluster that was started on this machine."""
        for reference in self._jobs:
            self._library.cancel(reference, force=True)
        if self._jobs:
            self._library.wait(list(self._jobs), num_returns=len(self._jobs), timeout=GRACE_SECONDS)
        self._jobs.clear()
        self._library.shutdown()

    def _submit(self, job: Job, resources: Resources) -> None:
        cpus, gpus = resources
        options = job.options._replace(accelerator="cuda" if gpus else "cpu")
        # max_retries=0: this class retries after a lost node. Ray would retry a run for which its node has too little
        # memory forever.
        task = self._task.options(num_cpus=cpus, num_gpus=gpus, max_retries=0, name=job.name)
        self._jobs[task.remote(job._replace(options=options), os.getcwd(), self._timeout)] = job, resources

    def _exit_of(self, reference: Any) -> JobExit | None:
        """How a job ended; None if it was started again."""
        errors = self._library.exceptions
        job, resources = self._jobs.pop(reference)
        try:
            return JobExit(job, *self._library.get(reference))
        except errors.OutOfMemoryError:
            return JobExit(job, OUT_OF_MEMORY)
        except (errors.WorkerCrashedError, errors.NodeDiedError, errors.LocalRayletDiedError, errors.ObjectLostError):
            self._losses[job.path] = self._losses.get(job.path, 0) + 1
            if self._losses[job.path] > MAX_LOSSES:
                return JobExit(job, FAILED, f"its node, or the process of Ray on it, was lost {MAX_LOSSES + 1} times")
            self._submit(job, resources)
            return None
        except errors.RayError as error:
            return JobExit(job, FAILED, f"Ray: {str(error).strip().splitlines()[-1]}")


def _library() -> Any:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")  # its future default; without it Ray warns
    try:
        import ray as library
        import ray.exceptions  # fails for a folder named ray, which imports as a package
    except ImportError:
        raise UserError("--launcher ray needs Ray, which is not installed: pip install ray") from None
    return library


def _connect(library: Any, address: str) -> None:
    """Join the cluster at this address; without an address always start one, where Ray would join an existing one."""
    quiet = {"log_to_driver": False, "logging_level": "ERROR"}
    own = {"include_dashboard": False, "object_store_memory": OBJECT_STORE} if not address else {}
    try:
        _check_address(address)
        library.init(address=address or "local", **own, **quiet)
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # Ray's handler dumps its state
    except (OSError, RuntimeError, ValueError, library.exceptions.RayError) as error:
        reason = getattr(error, "strerror", "") or str(error).strip().splitlines()[0]
        what = f"--ray.address {address}: can't join this Ray cluster" if address else "can't start Ray on this machine"
        raise UserError(f"{what}: {reason}") from None


def _check_address(address: str) -> None:
    """`OSError` if nothing listens at HOST:PORT, where Ray would try for minutes."""
    host, colon, port = address.rpartition(":")
    if colon and port.isdigit() and "/" not in host:
        socket.create_connection((host.strip("[]"), int(port)), CONNECT_TIMEOUT).close()


def _nodes(library: Any) -> list[Resources]:
    """The resources of the living nodes."""
    living = [node["Resources"] for node in library.nodes() if node["Alive"]]
    return [Resources(node.get("CPU", 0.0), node.get("GPU", 0.0)) for node in living]
