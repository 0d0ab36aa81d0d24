"""Cut the small files of an unfinished run back to what is sound: a power cut or a full disk may have damaged them.

None of them affects what the run measures, so it goes on. Imports no torch.
"""

import csv
import io
from pathlib import Path

from tfstudy.runs.files import archive_name, write_atomically
from tfstudy.runs.reader import HEADER, read_environments, read_progress, sound_metrics, sound_test_reads


def repair(path: Path) -> list[str]:
    """Repair the files of the run in this folder; return a line on each that was damaged."""
    lines = [_repair_metrics(path / "metrics.csv"), _repair_test_reads(path / "test_reads.csv")]
    if not read_environments(path):
        lines.append(_keep_aside(path / "env.json"))
    if not read_progress(path):
        lines.append(_keep_aside(path / "progress.json"))
    return [f"{path / line}" for line in lines if line]


def _repair_metrics(file: Path) -> str:
    content = file.read_bytes() if file.exists() else b""
    sound = "".join(f"{line}\n" for line in (HEADER, *(row[-1] for row in sound_metrics(content)))).encode()
    rest = content.removeprefix(sound)
    incomplete = b"\n" not in rest and rest.isascii() and rest.decode().isprintable()  # of a process that was killed
    if sound.startswith(content) or (len(rest) < len(content) and incomplete):
        return ""
    return _rewrite(file, sound)


def _repair_test_reads(file: Path) -> str:
    content = file.read_bytes() if file.exists() else b""
    text = io.StringIO()
    csv.writer(text).writerows(sound_test_reads(content))
    sound = text.getvalue().encode()
    return "" if content.replace(b"\r\n", b"\n") == sound.replace(b"\r\n", b"\n") else _rewrite(file, sound)


def _rewrite(file: Path, sound: bytes) -> str:
    kept = archive_name(file, "broken")
    file.rename(kept)
    write_atomically(file, sound)
    lines = sound.count(b"\n")
    return f"{file.name} was damaged and is cut back to its {lines} whole lines (kept as {kept.name})"


def _keep_aside(file: Path) -> str:
    if not file.exists():
        return ""
    kept = archive_name(file, "broken")
    file.rename(kept)
    return f"{file.name} can't be read and starts again (kept as {kept.name})"
