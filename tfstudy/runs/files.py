"""Run folders on the disk: names, locks, atomic writes, and the commands that messages name for a run or a study."""

import fcntl
import os
import re
import shutil
import time
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import IO

from tfstudy import RESULTS
from tfstudy.errors import UserError
from tfstudy.plugins import command

RUN = re.compile(r"s(?P<seed>\d{1,19})-(?P<hash>\w+)(\.old-\d+)?")  # a run's folder, also an archived one
SMOKE = "-smoke"  # end of the name of the folder of smoke runs: `results-smoke` next to `results`
LOCK_ATTEMPTS = 5  # a process that only checks the lock (`is_locked`) holds it for a moment


class BusyError(UserError):
    """Another process works on the run."""


def lock_run(lock: IO[str], path: Path) -> None:
    """Lock a run by its open lock file until the file is closed; `BusyError` if another process works on the run."""
    for attempts_left in reversed(range(LOCK_ATTEMPTS)):
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            break
        except BlockingIOError:
            if attempts_left:
                time.sleep(0.02)
                continue
            lock.seek(0)
            owner = lock.read().strip()
            raise BusyError(f"another process is running {path} ({owner}); wait until it ends, or stop it") from None
    lock.truncate(0)
    lock.write(f"process {os.getpid()} on {os.uname().nodename}")
    lock.flush()


def is_locked(path: Path) -> bool:
    """Whether a living process works on the run.

    This asks for a shared lock, so that two processes that check at the same time do not find each other.
    """
    try:
        with open(path / ".lock", "rb", opener=at_once) as lock:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def archive_name(path: Path, word: str = "old") -> Path:
    """The first free name for an archived folder or file: `NAME.old-1`, or `NAME.old-1.yaml` for `NAME.yaml`."""
    names = (path.with_name(f"{path.stem}.{word}-{number}{path.suffix}") for number in count(1))
    return next(name for name in names if not os.path.lexists(name))


def is_archived(path: Path) -> bool:
    """Whether `archive_name` gave the name."""
    return ".old-" in path.name


def link_or_copy(source: Path, target: Path) -> None:
    """Give a file a second name, which may exist already; copy it where the file system has no links."""
    part = target.with_name(f".{target.name}.part")
    part.unlink(missing_ok=True)
    try:
        try:
            os.link(source, part)
        except OSError:
            shutil.copyfile(source, part)
        os.replace(part, target)
    finally:
        part.unlink(missing_ok=True)


def write_atomically(path: Path, content: bytes | memoryview, durable: bool = True) -> None:
    """Write a file such that it appears complete or not at all; `durable` waits until it is on the disk."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.part")
    try:
        with part.open("wb") as file:
            file.write(content)
            file.flush()
            if durable:
                os.fsync(file.fileno())
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)


def at_once(path: str, flags: int) -> int:
    """An `opener` of `open` that does not wait for the other end of a named pipe."""
    return os.open(path, flags | os.O_NONBLOCK)


def sync_folder(path: Path) -> None:
    """Wait until the names in a folder are on the disk."""
    folder = os.open(path, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def utc_now() -> str:
    """The time as records hold it, such as 2026-01-31T12:00:00Z."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def results_folder(results: Path, smoke: bool) -> Path:
    """The folder for runs, of which `results` is the one for those that are not smoke runs."""
    if not smoke:
        return results
    return (results if results.name else results.resolve()).with_name(f"{results.resolve().name}{SMOKE}")


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


def resuming_command(path: Path, tuning: bool = False) -> str:
    """What resumes an unfinished run, in backticks if it is known; a trial of a search has no other command."""
    if tuning:
        return "the `tfstudy tune` command of its search"
    return f"`{resume_study_command(path.parents[2])}`" if has_study(path) else "its own command"
