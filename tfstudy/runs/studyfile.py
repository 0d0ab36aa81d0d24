"""Read the files of run folders, from folders or from the zip files of their study. Imports no torch.

A study may have zip files beside its run folders: `runs.zip`, `runs-2.zip` and so on, as `tfstudy pack` writes them.
They hold run folders by their paths within the study, EXPERIMENT/ARCHITECTURE/RUN. A packed run keeps the path that its
folder had, and the functions of this module read both. A folder hides a packed run of the same path, and a later zip
file an earlier one.

A zip file may come from somebody else: one with members that no `tfstudy pack` writes is left out as a whole.
"""

import os
import re
import sys
import zlib
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple
from zipfile import BadZipFile, ZipFile, ZipInfo

from tfstudy.errors import UserError, quoted
from tfstudy.runs.files import ARCHIVED, RUN, BrokenError, check_plain, has_study, open_file, read_plain

DEPTH = 3  # names in the path of a run folder within its study
PART = r"(?!\.\.?(?:/|\Z))[^/\\]+"  # a name in a path
FILE = re.compile(rf"(?P<run>{PART}/{PART}/{RUN.pattern})/(?P<name>(?:{PART}/)*{PART})")  # of a run, within its study
NAME = re.compile(r"runs(?:-(?P<number>[2-9]|[1-9]\d{1,4}))?\.zip")
MAX_EXPANSION = 100  # bytes of all members for each byte of the zip file


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
        found = {int(m["number"] or 1): Path(folder, m[0]) for m in map(NAME.fullmatch, os.listdir(folder)) if m}
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


def packed_runs(folder: Path) -> list[Path]:
    """The packed runs of a study, or of a folder within it, without those that have a folder."""
    runs: dict[Path, None] = {}
    for study in (folder, *folder.parents[:DEPTH]):
        start = "" if study == folder else f"{folder.relative_to(study)}/"
        for one in study_zips(study):
            runs |= dict.fromkeys(study / name for name in one if f"{name}/".startswith(start))
    return [run for run in runs if ARCHIVED not in run.name and not os.path.isdir(run)]


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
