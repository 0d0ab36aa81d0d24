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
from zipfile import BadZipFile, ZipFile, ZipInfo

from tfstudy.errors import UserError, quoted
from tfstudy.runs.files import RUN, BrokenError, check_plain, has_study, is_archived, open_file, read_plain

DEPTH = 3  # names in the path of a run folder within its study
PLANS = ".plans/"  # members that older code wrote
PART = r"(?!\.\.?(?:/|\Z))[^/\\]+"  # a name in a path
FILE = re.compile(rf"(?P<run>{PART}/{PART}/{RUN.pattern})/(?:{PART}/)*{PART}")  # of a run, within its study
NAME = re.compile(r"runs(?:-(?P<number>[2-9]|[1-9]\d{1,4}))?\.zip")
MAX_EXPANSION = 100  # bytes of all members for each byte of the zip file
PACKED_WITHOUT = "packed without predictions"


class StudyZip:
    """An open zip file of a study, whose directory is checked and held in memory. `BrokenError` for one not to read."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            open_file(path).close()  # a link or a pipe
            self._zip = ZipFile(path)
        except (OSError, BadZipFile, ValueError, NotImplementedError, OverflowError) as error:
            raise BrokenError(path, f"not a readable zip file: {quoted(error, 100, '')}") from None
        members = [info for info in self._zip.infolist() if not (info.is_dir() or info.filename.startswith(PLANS))]
        self.members: dict[str, ZipInfo] = {}
        self.runs: dict[str, list[str]] = {}  # names of the members of each run, by its path within the study
        for info in members:
            name = info.orig_filename
            if not (file := FILE.fullmatch(name)) or not name.isprintable() or name in self.members:
                raise BrokenError(path, f"member {quoted(name)} is not a file of a run, or occurs twice")
            self.members[name] = info
            self.runs.setdefault(file["run"], []).append(name)
        if sum(info.file_size for info in members) > MAX_EXPANSION * path.stat().st_size:
            raise BrokenError(path, f"it unpacks to more than {MAX_EXPANSION} times its size")

    def read(self, name: str, limit: int = 1 << 30) -> bytes:
        """The content of a member; `BrokenError` if it is damaged or longer than `limit` bytes."""
        info = self.members[name]
        if info.file_size > limit:
            raise BrokenError(name, f"it is longer than {limit:,} bytes")
        try:
            return self._zip.read(info)
        except (OSError, EOFError, BadZipFile, zlib.error, NotImplementedError, RuntimeError, ValueError) as error:
            reason = quoted(error, 100, "") or type(error).__name__
            raise BrokenError(name, f"in {self.path}: {reason}") from None


def run_of(name: str) -> str:
    """The path of the run folder in the path of a file within its study."""
    return "/".join(name.split("/")[:DEPTH])


@lru_cache(maxsize=256)
def _opened(path: Path, about: tuple[int, ...]) -> StudyZip | BrokenError:
    """The zip file with this inode, time and size, opened once; if it can't be read the reason, reported once."""
    try:
        return StudyZip(path)
    except BrokenError as error:
        print(f"left out: {path} ({error.reason})", file=sys.stderr)
        return error


os.register_at_fork(after_in_child=_opened.cache_clear)  # parent and child would share their positions of reading


def study_zips(folder: str | Path, strict: bool = False) -> list[StudyZip]:
    """The readable zip files with runs in the folder of a study, the newest first.

    With `strict`, `UserError` if one of them can't be read.
    """
    zips, found = [], {}
    with suppress(OSError):
        found = {int(match["number"] or 1): match[0] for name in os.listdir(folder) if (match := NAME.fullmatch(name))}
    for number in sorted(found, reverse=True):
        path = Path(folder, found[number])
        try:
            about = path.stat()
        except OSError:
            continue
        opened = _opened(path, (about.st_ino, about.st_mtime_ns, about.st_size))
        if isinstance(opened, StudyZip):
            zips.append(opened)
        elif strict:
            raise UserError(f"{path} can't be read ({opened.reason}); restore it, or move it away")
    return zips


def locate(path: str | Path) -> tuple[StudyZip, str] | None:
    """The zip file that holds the run of a file or of a run folder, and the path within the study.

    None if the run has a folder, or if there is no such run.
    """
    parts = str(path).split("/")
    last = next((at for at in range(len(parts) - 1, DEPTH - 2, -1) if RUN.fullmatch(parts[at])), None)
    if last is None or os.path.isdir("/".join(parts[: last + 1])):
        return None
    study, name = parts[: last + 1 - DEPTH], "/".join(parts[last + 1 - DEPTH :])
    return next(((one, name) for one in study_zips("/".join(study) or ".") if run_of(name) in one.runs), None)


def packed_in(run: str | Path) -> Path | None:
    """The zip file that holds this run; None if it has a folder, or if there is no such run."""
    found = locate(run)
    return found[0].path if found else None


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
    """Whether there is a file or a folder, also if it is packed."""
    if os.path.exists(path):
        return True
    found = locate(path)
    return bool(found and (found[1] in found[0].members or found[1] in found[0].runs))


def names_in(folder: Path) -> list[str]:
    """The names of the files and folders in a folder of a run, sorted; none if there is no such folder."""
    if found := locate(folder):
        one, name = found
        inside = (member for member in one.runs[run_of(name)] if member.startswith(f"{name}/"))
        return sorted({member[len(name) + 1 :].split("/")[0] for member in inside})
    return sorted(os.listdir(folder)) if folder.is_dir() else []


def packed_runs(folder: Path) -> list[Path]:
    """The packed runs of a study, or of a folder within it, without those that have a folder."""
    runs: dict[Path, None] = {}
    for study in (folder, *folder.parents[:DEPTH]):
        start = "" if study == folder else f"{folder.relative_to(study)}/"
        for one in study_zips(study):
            runs |= dict.fromkeys(study / name for name in one.runs if f"{name}/".startswith(start))
    return [run for run in runs if not is_archived(run) and not os.path.isdir(run)]


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
