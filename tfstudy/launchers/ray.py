"""The executor of a Ray cluster, which may be started on this machine: runs share GPUs, nodes may join and leave.

Ray places the tasks, and starts those of a lost node again. Each run is a separate process, so that no state stays
between runs. All nodes must see the same folders.
"""

import os
import socket
import time
from collections.abc import Sequence
from typing import Any

from tfstudy.errors import UserError, one_of
from tfstudy.experiment.api import ACCELERATORS
from tfstudy.launchers import Executor, ExecutorSettings, JobExit
from tfstudy.launchers.job import FAILED, Job
from tfstudy.launchers.local import AUTO, runs_per_device
from tfstudy.launchers.processes import GRACE_SECONDS, execute

MAX_RETRIES = 10  # how often Ray starts a job again because its node was lost, before it counts as failed
CONNECT_TIMEOUT = 10.0  # seconds
OBJECT_STORE = 100_000_000  # bytes of shared memory for Ray: jobs and results are small
ENVIRONMENT = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",  # its future default; without it Ray warns
    "RAY_task_oom_retries": "0",  # Ray would retry a run for which its node has too little memory forever
}


class Ray(Executor):
    """Tasks of a Ray cluster that this process joins, or starts if there is no address.

    A run has a CPU, and where the cluster has GPUs a share of a GPU, or a whole one.
    `UserError` if Ray is not installed, no cluster answers, or no node has the resources of a run.
    """

    def __init__(self, settings: ExecutorSettings) -> None:
        options = settings.options
        one_of("accelerator", options.accelerator, ACCELERATORS)
        self._address = settings.ray_address
        self._library = _joined(self._address)
        nodes = [node["Resources"] for node in self._library.nodes() if node["Alive"]]
        self._cuda = options.accelerator != "cpu" and any(node.get("GPU") for node in nodes)
        kind = "GPU" if self._cuda or options.accelerator == "cuda" else "CPU"
        per_device = runs_per_device(settings.per_device, 1)
        problem = ""
        if not any(node.get(kind, 0) >= 1 for node in nodes):
            problem = f"no node of the Ray cluster has a {kind}"
        elif settings.per_device != AUTO and not self._cuda:
            problem = "--per-device needs GPUs on Ray: without them each run has one CPU"
        if problem:
            self._library.shutdown()
            raise UserError(problem)
        self._gpus = self._cuda / per_device
        self._task = self._library.remote(execute)
        self._jobs: dict[Any, Job] = {}  # by Ray's reference to the result

    @property
    def max_parallel(self) -> int:
        have = self._library.cluster_resources()
        cpus = have.get("CPU", 0)
        return int(min(cpus, have.get("GPU", 0) / self._gpus) if self._gpus else cpus)

    def describe(self) -> str:
        cluster = f"Ray at {self._address}" if self._address else "Ray, started on this machine"
        return f"{cluster}, {self.max_parallel} runs in parallel, each with 1 CPU and {self._gpus:g} GPUs"

    def has_room(self, exclusive: bool) -> bool:
        if exclusive and not self._cuda:  # a whole GPU is asked of Ray
            return not self._jobs
        return len(self._jobs) < self.max_parallel

    def start(self, job: Job, exclusive: bool) -> None:
        gpus = int(self._cuda) if exclusive else self._gpus
        task = self._task.options(num_cpus=1, num_gpus=gpus, max_retries=MAX_RETRIES, name=job.name)
        options = job.options._replace(accelerator="cuda" if self._cuda else "cpu")
        self._jobs[task.remote(job._replace(options=options), os.getcwd())] = job

    def wait(self, seconds: float) -> Sequence[JobExit]:
        if not self._jobs:
            time.sleep(seconds)
            return []
        self._library.wait(list(self._jobs), num_returns=1, timeout=seconds)
        ready, _ = self._library.wait(list(self._jobs), num_returns=len(self._jobs), timeout=0)
        return [self._exit_of(reference) for reference in ready]

    def stop(self) -> None:
        """End all jobs and disconnect, which stops a cluster that was started on this machine."""
        for reference in self._jobs:
            self._library.cancel(reference, force=True)
        if self._jobs:
            self._library.wait(list(self._jobs), num_returns=len(self._jobs), timeout=GRACE_SECONDS)
        self._jobs.clear()
        self._library.shutdown()

    def _exit_of(self, reference: Any) -> JobExit:
        job, errors = self._jobs.pop(reference), self._library.exceptions
        try:
            return JobExit(job, *self._library.get(reference))
        except errors.RayError as error:
            return JobExit(job, FAILED, f"Ray: {str(error).strip().splitlines()[-1]}")


def _joined(address: str) -> Any:
    """Return Ray's library after joining the cluster at this address.

    Without an address always start one, where Ray would join an existing one.
    """
    for name, value in ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    try:
        import ray
        import ray.exceptions  # fails for a folder named ray, which imports as a package
    except ImportError:
        raise UserError("--launcher ray needs Ray, which is not installed: pip install ray") from None
    own: dict[str, Any] = {} if address else {"include_dashboard": False, "object_store_memory": OBJECT_STORE}
    try:
        host, colon, port = address.rpartition(":")
        if colon and port.isdigit() and "/" not in host:  # if nothing listens there, Ray would try for minutes
            socket.create_connection((host.strip("[]"), int(port)), CONNECT_TIMEOUT).close()
        ray.init(address=address or "local", log_to_driver=False, logging_level="ERROR", **own)
    except (OSError, RuntimeError, ValueError, ray.exceptions.RayError) as error:
        reason = getattr(error, "strerror", "") or str(error).strip().splitlines()[0]
        what = f"RAY_ADDRESS={address}: can't join this Ray cluster" if address else "can't start Ray on this machine"
        raise UserError(f"{what}: {reason}") from None
    return ray
