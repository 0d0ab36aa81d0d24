"""Signals, process groups and environment variables of the processes that a launcher starts."""

import contextlib
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from multiprocessing import resource_tracker
from multiprocessing.context import ForkServerContext
from multiprocessing.forkserver import ensure_running
from multiprocessing.util import get_temp_dir
from pathlib import Path
from typing import Any

import tfstudy
from tfstudy.launchers.server import SOCKET_FOLDER

GRACE_SECONDS = 5.0  # between SIGTERM and SIGKILL
PRELOADED = ("tfstudy.launchers.server", "tfstudy.launchers.preload")


@contextlib.contextmanager
def with_environment(variables: Mapping[str, str]) -> Iterator[None]:
    """Set these environment variables for the processes started within the block."""
    previous = dict(os.environ)
    os.environ.update(variables)
    try:
        yield
    finally:
        for name in variables.keys() - previous.keys():
            del os.environ[name]
        os.environ.update(previous)


def own_code(folder: str) -> dict[str, str]:
    """Return variables that keep Python from importing another copy of this package from its working folder."""
    in_folder = Path(tfstudy.__file__).parents[1] == Path(folder).resolve()
    return {} if in_folder else {"PYTHONSAFEPATH": "1"}


@contextlib.contextmanager
def uninterrupted() -> Iterator[None]:
    """Delay SIGINT and SIGTERM until the end of the block. Only the main thread ever receives them."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    received: list[int] = []
    handlers = {n: signal.signal(n, lambda number, _: received.append(number)) for n in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler or signal.SIG_DFL)
        if received:
            signal.raise_signal(received[0])


def start_server(modules: Sequence[str] = PRELOADED) -> ForkServerContext:
    """Return the context whose processes are forked from a server, which starts to import these modules."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([*modules])
    resource_tracker.ensure_running()  # otherwise the start of the server would start it, which unblocks SIGINT
    variables = own_code(os.getcwd()) | {SOCKET_FOLDER: f"{get_temp_dir()} {os.getpid()}"}
    with with_environment(variables), _blocked_interrupts():
        ensure_running()
    return context


@contextlib.contextmanager
def _blocked_interrupts() -> Iterator[None]:
    """Block SIGINT for this thread and for the processes started within the block, until they unblock it."""
    previous = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, previous)


@contextlib.contextmanager
def exit_on_sigterm() -> Iterator[None]:
    """Turn SIGTERM into SystemExit within the block, so that `finally` clauses run."""
    handler = signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, handler)


def kill_group(pid: int, number: int) -> None:
    """Send a signal to a process group, which may have ended."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, number)


def exit_code_of(handle: Any) -> int | None:
    """Return the exit code of a process of multiprocessing or subprocess; None while it runs."""
    code: int | None = handle.poll() if isinstance(handle, subprocess.Popen) else handle.exitcode
    return code


def stop(handles: Sequence[Any]) -> int:
    """End processes and their groups by SIGTERM, then by SIGKILL. Return minus the signal."""
    for handle in handles:
        kill_group(handle.pid, signal.SIGTERM)
    deadline = time.monotonic() + GRACE_SECONDS
    while time.monotonic() < deadline and any(exit_code_of(handle) is None for handle in handles):
        time.sleep(0.02)
    for handle in handles:
        kill_group(handle.pid, signal.SIGKILL)
        handle.wait() if isinstance(handle, subprocess.Popen) else handle.join()
    return -signal.SIGKILL
