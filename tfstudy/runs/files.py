"""Files of run folders: the one function that opens them, atomic writes, digests, locks; and the names of runs.

A run folder may come from somebody else. It holds plain files and folders only: a link, a pipe or a device in it is
refused, so that nothing is read or written outside of it and no command waits for ever.
"""

import errno
import fcntl
import hashlib
import os
import re
import stat
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import IO, Any

import msgspec

from tfstudy import RESULTS
from tfstudy.errors import UserError
from tfstudy.plugins import command

RUN = re.compile(r"s(?P<seed>\d{1,19})-(?P<hash>\w+)(\.old-\d+)?")  # a run's folder, also an archived one
SMOKE = "-smoke"  # end of the name of the folder of smoke runs: `results-smoke` next to `results`
SEAL = b',"sha256":"', b'"}\n'  # around the digest at the end of a record
ARCHIVED = ".old-"  # in the name of an archived folder or file
PART = ".part"  # end of the name of a file that is being written, which starts with a dot
LOCK_ATTEMPTS = 5  # a process that only checks the lock (`is_locked`) holds it for a moment


class BusyError(UserError):
    """Another process works on the run."""


class BrokenError(UserError):
    """A file that can't be believed. The message has its name without its folder, such as that of a run."""

    def __init__(self, path: str | Path, reason: str) -> None:
        super().__init__(f"{Path(path).name} is damaged: {reason}")
        self.name, self.reason = Path(path).name, reason


def open_file(path: str | Path) -> IO[bytes]:
    """Open a regular file for reading; `OSError` if there is none, `BrokenError` for a link, a pipe, a device."""
    try:
        number = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENXIO):  # a link, a socket
            raise BrokenError(path, "it is a link or a special file") from None
        raise
    if not stat.S_ISREG(os.fstat(number).st_mode):
        os.close(number)
        raise BrokenError(path, "it is a folder or a special file")
    return os.fdopen(number, "rb")


def read_plain(path: str | Path, limit: int) -> bytes:
    """The content of a regular file; `OSError` if there is none, `BrokenError` if it is longer than `limit` bytes."""
    with open_file(path) as file:
        if os.fstat(file.fileno()).st_size <= limit and len(content := file.read(limit + 1)) <= limit:
            return content
    raise BrokenError(path, f"it is longer than {limit:,} bytes")


def check_plain(run: Path) -> None:
    """Raise `BrokenError` if a run folder has anything but files and folders of its own.

    The files of loggers in `logs/NAME` are not looked at: nobody reads them, and some loggers link them to each other.
    """
    for folder, folders, files in os.walk(run):
        for path in (os.path.join(folder, name) for name in (*folders, *files)):
            with suppress(FileNotFoundError):  # a file that was written aside and has been renamed since
                if stat.S_IFMT(os.lstat(path).st_mode) not in (stat.S_IFREG, stat.S_IFDIR):
                    raise BrokenError(path, "it is a link or a special file")
        if folder == f"{run}/logs":
            folders.clear()


def digest_of(content: bytes) -> str:
    """The sha256 of a file's content."""
    return hashlib.sha256(content).hexdigest()


def sealed(value: Any) -> bytes:
    """A JSON object on one line, with the sha256 of all before it as its last value."""
    body = msgspec.json.encode(value)[:-1]
    return body + SEAL[0] + digest_of(body).encode() + SEAL[1]


def unsealed(content: bytes, path: str | Path, seal: tuple[bytes, bytes] = SEAL) -> bytes:
    """The same content if its sha256 is the recorded one, else `BrokenError`."""
    body, _, end = content.rpartition(seal[0])
    if end != digest_of(body).encode() + seal[1]:
        raise BrokenError(path, "its digest does not match: it was damaged or edited")
    return content


@contextmanager
def locked(run: Path) -> Iterator[None]:
    """Lock a run until the block or this process ends; `BusyError` if another process works on it.

    `OSError` if its lock file can't be opened, `UserError` if what is written into that file would land elsewhere.
    """
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    with os.fdopen(os.open(run / ".lock", flags, 0o644), "r+") as lock:
        if not stat.S_ISREG(os.fstat(lock.fileno()).st_mode):
            raise UserError(f"{run / '.lock'} is not a regular file, so nothing is written into it")
        for _ in range(LOCK_ATTEMPTS):
            with suppress(BlockingIOError):
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            time.sleep(0.02)
        else:
            owner = lock.read().strip()
            raise BusyError(f"another process is running {run} ({owner}); wait until it ends, or stop it")
        lock.truncate(0)
        lock.write(f"process {os.getpid()} on {os.uname().nodename}")
        lock.flush()
        yield


def is_locked(path: Path) -> bool:
    """Whether a living process works on the run.

    This asks for a shared lock, so that two processes that check at the same time do not find each other.
    """
    try:
        with open_file(path / ".lock") as lock:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except (OSError, BrokenError) as error:
        return isinstance(error, BlockingIOError)
    return False


def archive_name(path: Path) -> Path:
    """The first free name for an archived folder or file: `NAME.old-1`, or `NAME.old-1.yaml` for `NAME.yaml`."""
    names = (path.with_name(f"{path.stem}{ARCHIVED}{number}{path.suffix}") for number in count(1))
    return next(name for name in names if not os.path.lexists(name))


def write_atomically(path: Path, content: bytes | memoryview) -> None:
    """Write a file such that it appears complete or not at all, and is on the disk afterwards."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.{os.getpid()}-{threading.get_ident()}{PART}")  # several may write one file
    try:
        with naming(path), part.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Within this context an `OSError` names the file: a full disk does not."""
    try:
        yield
    except OSError as error:
        raise type(error)(error.errno, error.strerror, str(path)) from error


def utc_now() -> str:
    """The time as records hold it, such as 2026-01-31T12:00:00Z."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def results_folder(results: Path, smoke: bool) -> Path:
    """The folder for runs, of which `results` is the one for those that are not smoke runs."""
    results = results if results.name or not smoke else results.resolve()
    return results.with_name(f"{results.resolve().name}{SMOKE}") if smoke else results


def results_words(results: Path) -> list[str]:
    """The option `--results PATH`, or nothing for the default folder of results."""
    return [] if results == RESULTS else ["--results", str(results)]


def has_study(path: Path) -> bool:
    """Whether the path of a run names its study: RESULTS/STUDY/EXPERIMENT/ARCHITECTURE/RUN."""
    return len(path.parents) > 3


def command_again(path: Path, smoke: bool = False, *more: str) -> str:
    """The command that runs a run again, in the same study, with more words."""
    words = ["run", "--config", str(path / "config.yaml")]
    if has_study(path):
        study = path.parents[2]
        results = study.parent
        if smoke:  # a smoke run finds its own folder
            results = results.with_name(results.name.removesuffix(SMOKE) or SMOKE)
        words += [*results_words(results), "--study", study.name]
    return command(*words, *more, "--restart")


def resume_study_command(study: Path) -> str:
    """The command that runs what a study has left: pending, interrupted and failed runs."""
    return command("grid", "--resume", study.name, *results_words(study.parent))
