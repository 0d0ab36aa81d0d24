"""The end of a run's `train.log`, and what is added to it."""

import time
from collections.abc import Iterator
from pathlib import Path

from tfstudy.runs.files import held, tail


def last_lines(path: Path, count: int = 20) -> list[str]:
    """The end of a run's `train.log`."""
    return tail(path / "train.log", 200 * count).splitlines()[-count:]


def followed(path: Path, size: int, every: float = 0.5) -> Iterator[str]:
    """What is added to a run's `train.log` after its first `size` bytes, until no process makes the run."""
    while True:
        working = held(path)  # asked first, so that the last words of a process that ends now are still read
        try:
            with (path / "train.log").open("rb") as file:
                file.seek(size)
                more = file.read()
        except OSError:
            more = b""
        if more:
            size += len(more)
            yield more.decode(errors="replace")
        if not working:
            return
        time.sleep(every)
