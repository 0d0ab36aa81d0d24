"""Files that appear whole or not at all, the end of a file, and the lock of a run."""

import fcntl
import os
from pathlib import Path


def held(path: Path) -> bool:
    """Whether a living process has the run open.

    Asks for a shared lock, so that two who look do not take each other for one who works.
    """
    try:
        with (path / ".lock").open("rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def tail(path: Path, size: int) -> str:
    """The last bytes of a file as text; empty if it can't be read."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - size))
            return file.read().decode(errors="replace")
    except OSError:
        return ""


def write_whole(path: Path, content: bytes) -> None:
    """Writes a file such that it is there whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.part")
    try:
        with part.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)


def content(path: str, size: int = 1 << 30) -> bytes:
    """The first bytes of a file, or none if it can't be read: thousands of small files at half of what `open` takes."""
    try:
        file = os.open(path, os.O_RDONLY)
    except OSError:
        return b""
    try:
        return os.read(file, min(size, os.fstat(file).st_size))
    except OSError:
        return b""
    finally:
        os.close(file)
