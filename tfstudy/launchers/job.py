"""One run as a launcher's process makes it."""

import contextlib
import errno
import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

ALIVE = "TFSTUDY_LAUNCHER"  # the number of a pipe that ends with the launcher
DONE, FAILED, REFUSED, MEMORY, DISK, BUSY = 0, 1, 2, 71, 74, 75  # exit codes


class Job(NamedTuple):
    """A run to be made: plain values, so that it travels to any machine that sees the same folders."""

    path: str  # the run's folder
    config: dict[str, Any]  # resolved
    root: str
    study: str
    preset: str = "default"
    devices: int = 1
    accelerator: str = "auto"
    threads: int = 1  # of the CPU, for each device
    loggers: tuple[str, ...] = ()
    fresh: bool = False
    tuning: bool = False

    @property
    def name(self) -> str:
        """The folder within the study: `scan-length/lstm/s0-1a2b3c4d`."""
        return "/".join(Path(self.path).parts[-3:])


def perform(job: Job) -> int:
    """Makes the run in this process, which it takes over: its output goes to the run's log. Returns an exit code."""
    from tfstudy.runs.files import held
    from tfstudy.runs.writer import BusyError

    path = Path(job.path)
    first = not int(os.environ.get("LOCAL_RANK", 0))
    if first:
        if held(path):
            return BUSY
        _redirect(path)
    try:
        return _run(job)
    except BusyError:
        return BUSY


def end_with(gone: Callable[[], object]) -> None:
    """Ends this process and all that it started once `gone` returns: no run outlives its launcher."""

    def end() -> None:
        gone()
        os.killpg(0, signal.SIGKILL)

    threading.Thread(target=end, daemon=True).start()


def _redirect(path: Path) -> None:
    path.mkdir(parents=True, exist_ok=True)
    log = os.open(path / "train.log", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    sys.stdout.flush()
    for stream in (1, 2):
        os.dup2(log, stream)
    os.close(log)


def _run(job: Job) -> int:
    import torch

    from tasks.errors import UserError
    from tfstudy.config.resolve import resolve
    from tfstudy.experiment.options import RunOptions
    from tfstudy.experiment.run import run
    from tfstudy.runs.writer import BusyError

    torch.set_num_threads(job.threads)
    options = RunOptions(
        job.preset,
        job.fresh,
        devices=job.devices,
        accelerator=job.accelerator,
        loggers=tuple(job.loggers),
        tuning=job.tuning,
    )
    try:
        run(resolve(job.config), Path(job.root), job.study, options, planned=Path(job.path), say=_say)
    except BusyError:
        raise
    except UserError as error:
        _say(f"error: {error}")
        return REFUSED
    except Exception as error:
        with contextlib.suppress(OSError):  # the log's disk may be full
            traceback.print_exc()
            sys.stderr.flush()
        full = isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)
        return DISK if full else MEMORY if _out_of_memory(error) else FAILED
    return DONE


def _say(text: str) -> None:
    print(text, flush=True)


def _out_of_memory(error: BaseException) -> bool:
    text = str(error).lower()
    return isinstance(error, MemoryError) or "out of memory" in text or "can't allocate memory" in text
