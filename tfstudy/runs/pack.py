"""Pack the finished runs of a study into a zip file. Imports no torch.

The zip file is written aside, read back and compared, and renamed; only then the run folders are removed, each by
renaming it first. Whenever this is interrupted, each run is whole in its folder, in a zip file or in both, and the same
command goes on from there. The same runs give the same bytes.
"""

import fcntl
import os
import shutil
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from tfstudy.errors import UserError
from tfstudy.runs import files
from tfstudy.runs.files import DEPTH, FILE, BusyError, Zip, packed_in, study_zips
from tfstudy.runs.find import find_runs
from tfstudy.runs.store import has_result, open_run

OPTIONAL = ("predictions", "checkpoints")  # folders of a run that may be left out
REMOVED = ".packed"  # end of the name of a folder that is being removed; it starts with a dot
FIRST_TIME = (1980, 1, 1, 0, 0, 0)  # of all members: the first that a zip file can hold


class Packed(NamedTuple):
    """What `pack_study` did."""

    file: Path | None  # the new zip file; None if no run was new
    runs: int  # in it
    removed: int  # run folders that were removed since a zip file holds them
    kept: list[tuple[Path, str]]  # run folders that were not packed, with the reason


def pack_study(study: Path, without: Sequence[str] = ()) -> Packed:
    """Pack the finished runs of a study into its next zip file, and remove their folders.

    `without` are folders of the runs to leave out, some of `OPTIONAL`: their content is lost. Runs that are running,
    unfinished or broken stay folders. `UserError` if the study can't be written, if another process packs it, or if one
    of its zip files can't be read.
    """
    try:
        folder = os.open(study, os.O_RDONLY)
        try:
            fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return _pack(study, without)
        finally:
            os.close(folder)
    except BlockingIOError:
        raise UserError(f"another process packs {study}; wait until it ends") from None
    except OSError as error:
        raise UserError(f"can't write to {study}: {error.strerror}") from None


def _pack(study: Path, without: Sequence[str]) -> Packed:
    zips, removed = study_zips(study, strict=True), 0
    reasons = {path: _not_to_pack(study, path) for path in find_runs(study) if not packed_in(path)}
    kept = [(path, reason) for path, reason in reasons.items() if reason]
    finished = [path for path, reason in reasons.items() if not reason]
    new = [path for path in finished if not _is_packed(study, path, zips, without)]
    file = _write_zip(study, new, without) if new else None
    zips = study_zips(study, strict=True)
    for path in finished:
        try:
            removed += _remove(study, path, zips, without)
        except BusyError:
            kept.append((path, "running"))
    for leftover in study.glob(f"*/*/.s*{REMOVED}"):  # of an interrupted process
        shutil.rmtree(leftover)
    return Packed(file, len(new), removed, kept)


def _not_to_pack(study: Path, run: Path) -> str:
    """Why a run folder stays as it is; empty if it can be packed."""
    name = f"{run.relative_to(study)}"
    if not FILE.fullmatch(f"{name}/config.yaml") or not name.isprintable():
        return "its path is not that of a run in a study"
    if any(parent.is_symlink() for parent in (run, *run.parents[: DEPTH - 1])):
        return "it is reached through a link"
    if files.is_locked(run):
        return "running"
    return str(open_run(run).broken or "") if has_result(run) else "not finished"


def _contents(run: Path, without: Sequence[str]) -> dict[str, bytes]:
    """The files of a run folder to pack, by their paths within it, without locks and incomplete files."""
    found = {str(path.relative_to(run)): path for path in sorted(run.rglob("*")) if path.is_file()}
    kept = {name: path for name, path in found.items() if name.split("/")[0] not in without}
    return {name: path.read_bytes() for name, path in kept.items() if not path.name.startswith(".")}


def _is_packed(study: Path, run: Path, zips: Sequence[Zip], without: Sequence[str]) -> bool:
    """Whether the newest zip file with this run has the same files, but for those that are left out."""
    name = str(run.relative_to(study))
    if not (newest := next((one[name] for one in zips if name in one), None)):
        return False
    kept = [member for member in newest.members if member.split("/")[0] not in without]
    return {member: newest.read(member) for member in kept} == _contents(run, without)


def _write_zip(study: Path, runs: Sequence[Path], without: Sequence[str]) -> Path:
    """Write runs to the next zip file of a study and return it; what can be read from the disk has been compared."""
    numbers = files.numbered_zips(study)
    path = study / (f"runs-{max(numbers) + 1}.zip" if numbers else "runs.zip")
    part = study / f".{path.name}.part"
    try:
        with part.open("wb") as file:
            with ZipFile(file, "w", ZIP_DEFLATED, compresslevel=9) as archive:
                for run in sorted(runs):
                    for name, content in _contents(run, without).items():
                        member = ZipInfo(f"{run.relative_to(study)}/{name}", FIRST_TIME)
                        member.create_system, member.external_attr = 3, 0o644 << 16  # Unix, whatever this machine is
                        archive.writestr(member, content, ZIP_DEFLATED, 9)
            file.flush()
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)  # so that it is read from the disk
        written = files.open_zip(part)
        if changed := [run for run in runs if not _is_packed(study, run, [written], without)]:
            raise UserError(f"{changed[0]} changed while it was packed; nothing was packed")
        part.rename(path)
        os.sync()
    finally:
        part.unlink(missing_ok=True)
    return path


def _remove(study: Path, run: Path, zips: Sequence[Zip], without: Sequence[str]) -> bool:
    """Remove a run folder, unless it has changed since it was packed; `BusyError` if a process works on it."""
    with files.locked(run):
        if not _is_packed(study, run, zips, without):
            return False
        removed = run.with_name(f".{run.name}{REMOVED}")
        shutil.rmtree(removed, ignore_errors=True)  # of an interrupted process
        run.rename(removed)
    shutil.rmtree(removed)
    with suppress(OSError):  # one that is not empty
        run.parent.rmdir()
        run.parents[1].rmdir()
    return True
