"""A job: one run of a study, as the process of a launcher executes it."""

import contextlib
import errno
import os
import sys
import traceback
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from tfstudy.experiment.api import DEFAULTS, RunOptions
from tfstudy.runs.store import is_finished

SUCCEEDED, FAILED, REFUSED, DISK_FULL, BUSY, INTERRUPTED = 0, 1, 2, 74, 75, 130  # exit codes
ERROR = "error: "  # how the line of a log begins that says why the run failed or was refused


class Job(NamedTuple):
    """A run to execute: plain values, so that it can be sent, as JSON, to any machine that sees the same folders."""

    path: str  # of the run's folder: ROOT/STUDY/EXPERIMENT/ARCHITECTURE/RUN
    config: dict[str, Any]  # resolved
    options: RunOptions = DEFAULTS
    threads: int = 1  # CPU threads
    plugins: tuple[str, ...] = ()  # files of --plugin

    @property
    def name(self) -> str:
        """The folder within the study: `scan-length/lstm/s0-1a2b3c4d`."""
        return "/".join(Path(self.path).parts[-3:])

    @property
    def study(self) -> Path:
        """The folder of the study."""
        return Path(self.path).parents[2]

    @property
    def finished(self) -> bool:
        """Whether the run has its result, and it is sound."""
        return is_finished(Path(self.path))


def perform(job: Job) -> int:
    """Execute the run in this process, with all output appended to the run's log. Return an exit code."""
    from tfstudy.errors import UserError
    from tfstudy.runs.files import BusyError, is_locked

    path = Path(job.path)
    try:
        if is_locked(path):
            return BUSY
        _redirect_output(path)
        import torch

        from tfstudy import plugins
        from tfstudy.config.resolve import resolve
        from tfstudy.experiment.run import run

        torch.set_num_threads(job.threads)
        os.environ.pop(plugins.VARIABLE, None)  # of the server that forked this process, which may be of another grid
        plugins.add(*job.plugins)
        report = partial(print, flush=True)
        run(resolve(job.config), job.study.parent, job.study.name, job.options, planned=path, report=report)
    except BusyError:
        return BUSY
    except UserError as error:
        from tfstudy.training.memory import OutOfMemoryError

        print(f"{ERROR}{error}", flush=True)
        return FAILED if isinstance(error, OutOfMemoryError) else REFUSED  # retried, alone on its device
    except KeyboardInterrupt:  # or SIGTERM while it trains
        print("interrupted; the command of the grid resumes it", flush=True)
        return INTERRUPTED
    except Exception as error:
        with contextlib.suppress(OSError):  # the disk of the log may be full
            traceback.print_exc()
            sys.stderr.flush()
            print(ERROR + traceback.format_exception_only(error)[0].partition("\n")[0], flush=True)
        disk_full = isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)
        return DISK_FULL if disk_full else FAILED
    return SUCCEEDED


def _redirect_output(path: Path) -> None:
    path.mkdir(parents=True, exist_ok=True)
    log = os.open(path / "train.log", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    sys.stdout.flush()
    for stream in (1, 2):
        os.dup2(log, stream)
    os.close(log)
