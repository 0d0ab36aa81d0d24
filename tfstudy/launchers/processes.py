"""The processes of runs: the server that forks them, their signals and groups, and a run as a program of its own.

The server imports this module first. Ctrl-C reaches it too; it ignores it, and ends when its launcher does.
"""

import contextlib
import multiprocessing
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from multiprocessing import resource_tracker
from multiprocessing.context import ForkServerContext
from multiprocessing.forkserver import ensure_running
from multiprocessing.process import BaseProcess
from pathlib import Path

import msgspec

import tfstudy
from tfstudy.launchers.job import FAILED, SUCCEEDED, Job

GRACE_SECONDS = 5.0  # between SIGTERM and SIGKILL
PRELOADED = ("tfstudy.launchers.processes", "tfstudy.launchers.preload")
SERVER = "TFSTUDY_SERVER"  # environment variable of the server
LAUNCHER_PIPE = "TFSTUDY_LAUNCHER"  # environment variable: the file descriptor of a pipe that the launcher holds open
DDP_VARIABLES = ("MASTER_ADDR", "MASTER_PORT", "NODE_RANK", "LOCAL_RANK", "WORLD_SIZE", "RANK")  # of another DDP run
CLUSTER_PREFIXES = ("SLURM", "SBATCH_", "SRUN_", "PMI_", "PMIX_", "TORCHELASTIC_")  # by which Lightning detects one


def start_server(modules: Sequence[str] = PRELOADED) -> ForkServerContext:
    """Return the context whose processes are forked from a server, which starts to import these modules."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([*modules])
    resource_tracker.ensure_running()  # otherwise the start of the server would start it, which unblocks SIGINT
    before = dict(os.environ)
    variables = _own_code(os.getcwd()) | {SERVER: "yes"}
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])  # until the server ignores it
    os.environ.update(variables)
    try:
        ensure_running()
    finally:
        for name in variables:
            del os.environ[name]
        os.environ.update(before)
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
    return context


def _own_code(folder: str) -> dict[str, str]:
    """Return variables that keep Python from importing another copy of this package from its working folder."""
    in_folder = Path(tfstudy.__file__).parents[1] == Path(folder).resolve()
    return {} if in_folder else {"PYTHONSAFEPATH": "1"}


def kill_with(wait_for_end: Callable[[], object]) -> None:
    """Kill this process and its children once `wait_for_end` returns: no run outlives its launcher."""

    def kill() -> None:
        wait_for_end()
        os.killpg(0, signal.SIGKILL)

    threading.Thread(target=kill, daemon=True).start()


def kill_group(pid: int | None, number: int) -> None:
    """Send a signal to a process group, which may have ended."""
    if pid:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(pid, number)


def stop(processes: Sequence[BaseProcess]) -> None:
    """End processes and their groups by SIGTERM, then by SIGKILL."""
    for process in processes:
        kill_group(process.pid, signal.SIGTERM)
    deadline = time.monotonic() + GRACE_SECONDS
    while time.monotonic() < deadline and any(process.exitcode is None for process in processes):
        time.sleep(0.02)
    for process in processes:
        kill_group(process.pid, signal.SIGKILL)
        process.join()


def without_cluster(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment without the variables that make Lightning expect a cluster to start its processes.

    Otherwise it could take a run within a Slurm job for one process of several.
    """
    removed = (*CLUSTER_PREFIXES, LAUNCHER_PIPE)
    return {k: v for k, v in environment.items() if k not in DDP_VARIABLES and not k.startswith(removed)}


def execute(job: Job, folder: str) -> tuple[int, str]:
    """Run `python -m tfstudy.launchers` for a job in this working folder; it never outlives this process.

    Return its exit code (or minus the signal that ended it) and the reason.
    """
    pipe = os.pipe()  # its writing end closes when this process ends
    environment = {**without_cluster(os.environ), **_own_code(folder), LAUNCHER_PIPE: str(pipe[0])}
    with tempfile.TemporaryFile() as output, open(pipe[0], "rb"), open(pipe[1], "wb"):
        try:
            process = subprocess.Popen(  # noqa: S603 - this Python, with our own module
                [sys.executable, "-m", "tfstudy.launchers", msgspec.json.encode(job).decode()],
                cwd=folder,
                env=environment,
                pass_fds=[pipe[0]],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                process_group=0,
            )
        except OSError as error:
            return FAILED, f"can't be started on {os.uname().nodename}: {error}"
        try:
            code = process.wait()
        finally:
            kill_group(process.pid, signal.SIGKILL)
            process.wait()
        if code == SUCCEEDED:
            return code, ""
        output.seek(0)  # what was printed before the run's log was open
        lines = output.read().decode(errors="replace").split("\n")
        return code, next((line.strip() for line in reversed(lines) if line.strip()), "")


if is_server := SERVER in os.environ:
    del os.environ[SERVER]
    os.chdir("/")  # the launcher's folder may be removed during the imports; each process changes to it
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
