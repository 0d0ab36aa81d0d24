"""The end of a run's `train.log`, and what is added to it while the run works."""

import os
import time
from collections.abc import Iterator
from pathlib import Path

from tfstudy.errors import UserError
from tfstudy.runs.files import at_once, is_locked
from tfstudy.runs.reader import is_finished, read_failure
from tfstudy.runs.studyfile import exists, read_bytes

LINE = 200  # bytes of a line, about


def last_lines(path: Path, count: int = 20) -> list[str]:
    """The last lines of the log."""
    try:
        with open(path / "train.log", "rb", opener=at_once) as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - LINE * count))
            content = file.read()
    except OSError:
        content = read_bytes(path / "train.log")[-LINE * count :]
    return content.decode(errors="replace").splitlines()[-count:]


def log_text(path: Path, count: int = 20, follow_run: bool = False) -> Iterator[str]:
    """Yield the last lines of the log, with `follow_run` what is added to it, and why the run failed if it did.

    `UserError` if there is nothing to yield: no log, no failure, and no process that `follow_run` could wait for.
    """
    log = path / "train.log"
    failure = None if is_finished(path) else read_failure(path)
    if not (exists(log) or failure or (follow_run and is_locked(path))):
        raise UserError(f"{path} has no log")
    size = log.stat().st_size if log.exists() else 0
    yield from (f"{line}\n" for line in last_lines(path, count))
    if follow_run:
        yield from follow(path, size)
    if not is_finished(path) and (failure := read_failure(path)):
        yield f"failed: {failure}\n"


def follow(path: Path, size: int, interval: float = 0.5) -> Iterator[str]:
    """Yield what is added to the log after its first `size` bytes, until no process works on the run.

    `interval` is in seconds.
    """
    while True:
        working = is_locked(path)  # checked before reading: a process that ends now has already written its last lines
        try:
            with open(path / "train.log", "rb", opener=at_once) as file:
                file.seek(size)
                added = file.read()
        except OSError:
            added = b""
        if added:
            size += len(added)
            yield added.decode(errors="replace")
        if not working:
            return
        time.sleep(interval)
