"""The end of a run's `train.log`, and the lines that are added to it."""

import time
from collections.abc import Iterator
from pathlib import Path

from tfstudy.runs.files import is_locked, tail


def last_lines(path: Path, count: int = 20) -> list[str]:
    """The last lines of the log."""
    return tail(path / "train.log", 200 * count).splitlines()[-count:]


def follow(path: Path, size: int, interval: float = 0.5) -> Iterator[str]:
    """Yield what is added to the log after its first `size` bytes, until no process works on the run.

    `interval` is in seconds.
    """
    while True:
        working = is_locked(path)  # before reading, to include the last lines of a process that ends now
        try:
            with (path / "train.log").open("rb") as file:
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
