"""Signals, process groups and environment variables of the processes that a launcher starts."""

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Iterator, Mapping


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
