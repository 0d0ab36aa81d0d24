"""A Ray cluster, or one that is started on this machine: fractions of GPUs, nodes that come and go.

Ray places tasks and tells when a node is lost; a run itself is a program of its own, so that nothing stays between
runs and a run on several devices can start its other processes. All nodes must see the same folders.
"""

import os
import signal
import socket
import sys
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

from tasks.errors import UserError, one_of
from tfstudy.launchers import End, Executor, ExecutorSettings
from tfstudy.launchers.job import FAILED, MEMORY, Job
from tfstudy.launchers.local import GRACE, runs_at_once
from tfstudy.launchers.subprocess_job import make

LOSSES = 10  # times that a job is begun again since its node was lost, before that counts as its failure
LOOK = 2.0  # seconds between two looks at the nodes
ANSWER = 10.0  # seconds that a cluster has to answer
STORE = 100_000_000  # bytes of shared memory that Ray sets apart: what travels is small


class Needs(NamedTuple):
    """What Ray is asked for."""

    cpus: float
    gpus: float

    def times(self, node: "Needs") -> int:
        """How often this is to be had on a node."""
        shares = [there // wanted for there, wanted in zip(node, self, strict=True) if wanted]
        return int(min(shares))


class Plan(NamedTuple):
    """How the nodes are shared: what a job needs, what it needs to be alone, and its threads for each device."""

    usual: Needs
    alone: Needs
    threads: int


def ray(settings: ExecutorSettings) -> tuple["Ray", int]:
    """The cluster's engine, and the threads that a process of a run has.

    `UserError` if Ray is not installed, no cluster answers, or no node has what a run asks for.
    """
    one_of("accelerator", settings.accelerator, ("auto", "cpu", "cuda"))
    library = _library()
    _connect(library, settings.ray_address)
    try:
        plan = share(_nodes(library), settings)
    except UserError:
        library.shutdown()
        raise
    return Ray(library, plan, settings), plan.threads


def share(nodes: Sequence[Needs], settings: ExecutorSettings) -> Plan:
    """How a cluster of these nodes is shared; `UserError` if none of them can hold a run.

    As on one machine, a run has as many threads whatever runs beside it, here as the smallest of the nodes allows.
    """
    devices = settings.devices
    cuda = settings.accelerator == "cuda" or (settings.accelerator == "auto" and any(node.gpus for node in nodes))
    fit = [node for node in nodes if (node.gpus if cuda else node.cpus) >= devices and node.cpus >= 1]
    if not fit:
        most = int(max((node.gpus if cuda else node.cpus for node in nodes), default=0))
        kind = "GPUs" if cuda else "CPUs"
        raise UserError(f"--devices {devices}: no node of the Ray cluster has as many {kind}; the most is {most}")
    least = min(fit, key=lambda node: (node.cpus, node.gpus))
    count = runs_at_once(settings.per_device, 1 if cuda else max(1, int(least.cpus) // devices))
    at_once = count * int(least.gpus) // devices if cuda else count
    threads = max(1, int(least.cpus) // (max(1, at_once) * devices))
    cpus = min(threads * devices, int(least.cpus))
    gpus = (devices if devices > 1 else 1 / count) if cuda else 0.0
    alone = Needs(cpus, devices) if cuda else Needs(int(least.cpus), 0.0)
    return Plan(Needs(cpus, gpus), alone, threads)


class Ray(Executor):
    """Tasks of a Ray cluster that this process has joined or started. A job whose node is lost is begun again."""

    def __init__(self, library: Any, plan: Plan, settings: ExecutorSettings) -> None:
        self._library, self._plan, self._timeout = library, plan, settings.timeout
        self._joined = settings.ray_address
        self._task = library.remote(make)
        self._jobs: dict[Any, tuple[Job, Needs]] = {}  # by what Ray calls the task's result
        self._losses: dict[str, int] = {}
        self._looked, self._at_once = float("-inf"), 0

    @property
    def at_once(self) -> int:
        if time.monotonic() - self._looked > LOOK:
            self._looked = time.monotonic()
            self._at_once = sum(self._plan.usual.times(node) for node in _nodes(self._library))
        return self._at_once

    def describe(self) -> str:
        where = f"Ray at {self._joined}" if self._joined else "Ray, started here"
        cpus, gpus = self._plan.usual
        return f"{where}, {self.at_once} runs at once, each with {cpus:g} CPUs and {gpus:g} GPUs"

    def room(self, job: Job, alone: bool) -> bool:
        return len(self._jobs) < self.at_once

    def start(self, job: Job, alone: bool) -> None:
        self._submit(job, self._plan.alone if alone else self._plan.usual)

    def wait(self, seconds: float) -> Sequence[End]:
        if not self._jobs:
            time.sleep(seconds)
            return []
        self._library.wait(list(self._jobs), num_returns=1, timeout=seconds)
        ready, _ = self._library.wait(list(self._jobs), num_returns=len(self._jobs), timeout=0)
        ends = [self._ended(reference) for reference in ready]
        return [end for end in ends if end]

    def stop(self) -> None:
        """Ends every job; disconnects, which ends a cluster that was started here."""
        for reference in self._jobs:
            self._library.cancel(reference, force=True)
        if self._jobs:
            self._library.wait(list(self._jobs), num_returns=len(self._jobs), timeout=GRACE)
        self._jobs.clear()
        self._library.shutdown()

    def _submit(self, job: Job, needs: Needs) -> None:
        device = "cuda" if needs.gpus else "cpu"
        # max_retries=0: a node lost is our business, since Ray would also try a run again that its node has no
        # memory for, and for ever.
        task = self._task.options(num_cpus=needs.cpus, num_gpus=needs.gpus, max_retries=0, name=job.name)
        self._jobs[task.remote(job._replace(accelerator=device), os.getcwd(), self._timeout)] = job, needs

    def _ended(self, reference: Any) -> End | None:
        """The end of a job; None if it was begun again."""
        errors = self._library.exceptions
        job, needs = self._jobs.pop(reference)
        try:
            return End(job, *self._library.get(reference))
        except errors.OutOfMemoryError:
            return End(job, MEMORY)
        except (errors.WorkerCrashedError, errors.NodeDiedError, errors.LocalRayletDiedError, errors.ObjectLostError):
            self._losses[job.path] = self._losses.get(job.path, 0) + 1
            if self._losses[job.path] > LOSSES:
                return End(job, FAILED, f"its node or Ray's process there was lost {LOSSES + 1} times")
            self._submit(job, needs)
            return None
        except errors.RayError as error:
            return End(job, FAILED, f"Ray: {str(error).strip().splitlines()[-1]}")


def _library() -> Any:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")  # its future default, of which it else warns
    try:
        import ray as library
        import ray.exceptions  # a folder of results named ray would pass for the library
    except ImportError:
        raise UserError("--launcher ray needs Ray, which is not installed: pip install 'tfstudy[ray]'") from None
    return library


def _connect(library: Any, address: str) -> None:
    """Joins the cluster at an address. Without one starts one: by itself Ray would join what an earlier one left."""
    quiet = {"log_to_driver": False, "logging_level": "ERROR"}
    mine = {"include_dashboard": False, "object_store_memory": STORE} if not address else {}
    try:
        _answers(address)
        library.init(address=address or "local", **mine, **quiet)
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # Ray's own ends in a dump
    except (OSError, RuntimeError, ValueError, library.exceptions.RayError) as error:
        why = getattr(error, "strerror", "") or str(error).strip().splitlines()[0]
        what = f"--ray.address {address}: this Ray cluster can't be joined" if address else "Ray does not start here"
        raise UserError(f"{what}: {why}") from None


def _answers(address: str) -> None:
    """`OSError` if nothing listens at HOST:PORT: Ray would try for many minutes."""
    host, colon, port = address.rpartition(":")
    if colon and port.isdigit() and "/" not in host:
        socket.create_connection((host.strip("[]"), int(port)), ANSWER).close()


def _nodes(library: Any) -> list[Needs]:
    """What the living nodes have."""
    there = [node["Resources"] for node in library.nodes() if node["Alive"]]
    return [Needs(resources.get("CPU", 0.0), resources.get("GPU", 0.0)) for resources in there]
