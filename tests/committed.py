"""The committed studies: those that `.gitignore` keeps. Tests leave the other results of a checkout alone."""

import re
from pathlib import Path

from tfstudy.runs.studyfile import locate

ROOT = Path(__file__).parent.parent
STUDIES = [
    ROOT / "results" / name
    for name in re.findall(r"^!/results/([\w-]+)/$", (ROOT / ".gitignore").read_text(encoding="utf-8"), re.MULTILINE)
]


def unpacked(run: Path, folder: Path) -> Path:
    """Write the files of a packed run to a new folder, and return it."""
    study, name = locate(run)
    for member in study.runs[name]:
        file = folder / member[len(name) + 1 :]
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(study.read(member))
    return folder
