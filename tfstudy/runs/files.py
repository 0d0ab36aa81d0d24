"""Files of runs, in folders and in the zip files of a study: reading, atomic writes, digests, locks; names of runs.

A run folder may come from somebody else. It holds plain files and folders only: a link, a pipe or a device in it is
refused, so that nothing is read or written outside of it and no command waits for ever.

A study may have zip files beside its run folders: `runs.zip`, `runs-2.zip` and so on, as `tfstudy pack` writes them.
They hold run folders by their paths within the study, EXPERIMENT/ARCHITECTURE/RUN. A packed run keeps the path that its
folder had. A folder hides a packed run of the same path, and a later zip file an earlier one. A zip file with members
that no `tfstudy pack` writes is left out as a whole.
"""

import errno
import fcntl
import hashlib
import os
import re
import stat
import sys
import threading
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from functools import lru_cache
from itertools import count
from pathlib import Path
from typing import IO, Any, NamedTuple
from zipfile import BadZipFile, ZipFile, ZipInfo

import msgspec

from tfstudy import RESULTS
from tfstudy.errors import UserError, quoted
from tfstudy.plugins import command

RUN = re.compile(r"s(?P<seed>\d{1,19})-(?P<hash>\w+)(\.old-\d+)?")  # a run's folder, also an archived one
SMOKE = "-smoke"  # end of the name of the folder of smoke runs: `results-smoke` next to `results`
SEAL = b',"sha256":"', b'"}\n'  # around the digest at the end of a record
ARCHIVED = ".old-"  # in the name of an archived folder or file
PART = ".part"  # end of the name of a file that is being written, which starts with a dot
DEPTH = 3  # names in the path of a run folder within its study
NAMED = r"(?!\.\.?(?:/|\Z))[^/\\]+"  # a name in a path
FILE = re.compile(rf"(?P<run>{NAMED}/{NAMED}/{RUN.pattern})/(?P<name>(?:{NAMED}/)*{NAMED})")  # within a study
ZIP_NAME = re.compile(r"runs(?:-(?P<number>[2-9]|[1-9]\d{1,4}))?\.zip")
MAX_EXPANSION = 100  # bytes of all members for each byte of the zip file
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


def unsealed(content: bytes, path: str | Path) -> bytes:
    """The same content if its sha256 is the recorded one, else `BrokenError`."""
    body, _, end = content.rpartition(SEAL[0])
    if end != digest_of(body).encode() + SEAL[1]:
        raise BrokenError(path, "its digest does not match: it was damaged or edited")
    return content


@contextmanager
def locked(run: Path) -> Iterator[None]:
    """Lock a run until the block or this process ends; `BusyError` if another process works on it.

    `OSError` if its lock file can't be opened, such as a link.
    """
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    with os.fdopen(os.open(run / ".lock", flags, 0o644), "r+") as lock:
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
    """Whether a living process works on the run."""
    try:
        with open_file(path / ".lock") as lock:  # a shared lock, so that two that check do not find each other
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
    return _named(results).with_name(f"{results.resolve().name}{SMOKE}") if smoke else results


def _named(folder: Path) -> Path:
    """The same folder by a path that ends in its name, unlike `.` and `..`."""
    return folder.resolve() if folder.name in ("", "..") else folder


def results_words(results: Path) -> list[str]:
    """The option `--results PATH`, or nothing for the default folder of results."""
    return [] if results == RESULTS else ["--results", str(results)]


def has_study(path: Path) -> bool:
    """Whether the path of a run names its study: RESULTS/STUDY/EXPERIMENT/ARCHITECTURE/RUN."""
    return len(path.parents) > 3


def command_again(path: Path, smoke: bool = False) -> str:
    """The command that runs a run again: in the same study, or beside it if the study is packed."""
    study, results = (path.parents[2], path.parents[3]) if has_study(path) else (Path(), RESULTS)
    if smoke:  # its own folder is named after that of other runs
        results = Path(str(_named(results)).removesuffix(SMOKE))
    where, again = ("-again", []) if packed_in(path) else ("", ["--restart"])
    place = ["--study", study.name + where] if study.name else []
    return command("run", "--config", path / "config.yaml", *results_words(results), *place, *again)


def resume_study_command(study: Path) -> str:
    """The command that runs what a study has left: pending, interrupted and failed runs."""
    return command("grid", "--resume", study.name, *results_words(study.parent))


# Zip files


class PackedRun(NamedTuple):
    """A run in an open zip file, whose directory is held in memory."""

    file: Path
    archive: ZipFile
    members: dict[str, ZipInfo]  # its files, by their paths within the run folder

    def read(self, name: str, limit: int = 1 << 30) -> bytes:
        """The content of a file; `BrokenError` if it is damaged or longer than `limit` bytes."""
        info = self.members[name]
        if info.file_size > limit:
            raise BrokenError(name, f"it is longer than {limit:,} bytes")
        try:
            return self.archive.read(info)
        except (OSError, EOFError, BadZipFile, zlib.error, NotImplementedError, RuntimeError, ValueError) as error:
            reason = quoted(error, 100, "") or type(error).__name__
            raise BrokenError(name, f"in {self.file}: {reason}") from None


Zip = dict[str, PackedRun]  # the runs of a zip file, by their paths within the study


def open_zip(path: Path) -> Zip:
    """The runs of a zip file; `BrokenError` if it can't be read, or if `tfstudy pack` would not write such a file."""
    try:
        open_file(path).close()  # a link or a pipe
        archive = ZipFile(path)
    except (OSError, BadZipFile, ValueError, NotImplementedError, OverflowError) as error:
        raise BrokenError(path, f"not a readable zip file: {quoted(error, 100, '')}") from None
    runs: Zip = {}
    files = [info for info in archive.infolist() if not info.is_dir()]
    for info in files:
        name = info.orig_filename
        file = FILE.fullmatch(name)
        members = runs.setdefault(file["run"], PackedRun(path, archive, {})).members if file else {}
        if not file or not name.isprintable() or file["name"] in members:
            raise BrokenError(path, f"member {quoted(name)} is not a file of a run, or occurs twice")
        members[file["name"]] = info
    if sum(info.file_size for info in files) > MAX_EXPANSION * path.stat().st_size:
        raise BrokenError(path, f"it unpacks to more than {MAX_EXPANSION} times its size")
    return runs


@lru_cache(maxsize=256)
def _opened(path: Path, about: tuple[int, ...]) -> Zip | BrokenError:
    """The zip file with this inode, time and size, opened once; if it can't be read the reason, reported once."""
    try:
        return open_zip(path)
    except BrokenError as error:
        print(f"left out: {path} ({error.reason})", file=sys.stderr)
        return error


os.register_at_fork(after_in_child=_opened.cache_clear)  # parent and child would share their positions of reading


def numbered_zips(folder: str | Path) -> dict[int, Path]:
    """The zip files with runs in the folder of a study, by their numbers, the newest first."""
    found = {}
    with suppress(OSError):
        found = {int(m["number"] or 1): Path(folder, m[0]) for m in map(ZIP_NAME.fullmatch, os.listdir(folder)) if m}
    return dict(sorted(found.items(), reverse=True))


def study_zips(folder: str | Path, strict: bool = False) -> list[Zip]:
    """The readable zip files of a study, the newest first. With `strict`, `UserError` if one of them can't be read."""
    zips = []
    for path in numbered_zips(folder).values():
        with suppress(OSError):
            about = path.stat()
            opened = _opened(path, (about.st_ino, about.st_mtime_ns, about.st_size))
            if not isinstance(opened, BrokenError):
                zips.append(opened)
            elif strict:
                raise UserError(f"{path} can't be read ({opened.reason}); restore it, or move it away")
    return zips


def locate(path: str | Path) -> tuple[PackedRun, str] | None:
    """The packed run of a file or of a run folder, and the path within the run folder.

    None if the run has a folder, or if there is no such run.
    """
    parts = str(path).split("/")
    end = next((at for at in range(len(parts), DEPTH - 1, -1) if RUN.fullmatch(parts[at - 1])), None)
    if end is None or os.path.isdir("/".join(parts[:end])):
        return None
    study, run = "/".join(parts[: end - DEPTH]) or ".", "/".join(parts[end - DEPTH : end])
    return next(((one[run], "/".join(parts[end:])) for one in study_zips(study) if run in one), None)


def packed_in(run: str | Path) -> Path | None:
    """The zip file that holds this run; None if it has a folder, or if there is no such run."""
    found = locate(run)
    return found[0].file if found else None


def check_writable(run: Path) -> None:
    """Raise `UserError` if a run is packed, or if what is written into its folder could land elsewhere, through links.

    The folders of a run, its architecture and its experiment may not be links either; those of a study and of all
    results are the user's own choice.
    """
    if file := packed_in(run):
        raise UserError(
            f"{run} is packed in {file}, which is never changed; `unzip -n {file} -d {file.parent}` unpacks its runs"
        )
    if link := next((path for path in (run, *run.parents[: 2 * has_study(run)]) if path.is_symlink()), None):
        raise UserError(f"{link} is a link, and nothing is written through links; give the folder that it names")
    try:
        check_plain(run)
    except BrokenError as error:
        raise UserError(f"{run}: {error}; nothing is written into this folder") from None


def exists(path: str | Path) -> bool:
    """Whether there is a file or a run folder, also if it is packed."""
    return os.path.exists(path) or bool((found := locate(path)) and (not found[1] or found[1] in found[0].members))


def names_in(folder: Path) -> list[str]:
    """The names of the files and folders in a folder of a run, sorted; none if there is no such folder."""
    if found := locate(folder):
        start = f"{found[1]}/" if found[1] else ""
        return sorted({name[len(start) :].split("/")[0] for name in found[0].members if name.startswith(start)})
    return sorted(os.listdir(folder)) if folder.is_dir() else []


def packed_runs(study: Path) -> set[Path]:
    """The packed runs of a study, without those that have a folder."""
    runs = {study / name for one in study_zips(study) for name in one}
    return {run for run in runs if ARCHIVED not in run.name and not os.path.isdir(run)}


def read_file(path: str | Path, limit: int = 1 << 30) -> bytes:
    """The content of a file of a run, from its folder or from a zip file. All files of runs are read here.

    `OSError` if there is none; `BrokenError` if it is damaged, longer than `limit` bytes, a link or a special file.
    """
    try:
        return read_plain(path, limit)
    except (FileNotFoundError, NotADirectoryError):
        found = locate(path)
        if not found or found[1] not in found[0].members:
            raise
        return found[0].read(found[1], limit)


def read_bytes(path: str | Path, limit: int = 1 << 26) -> bytes:
    """The same, but empty if there is no such file."""
    try:
        return read_file(path, limit)
    except OSError:
        return b""
