"""The committed studies: those that `.gitignore` keeps. Tests leave the other results of a checkout alone."""

import re
from pathlib import Path

from tfstudy.runs.files import locate

ROOT = Path(__file__).parent.parent
STUDIES = [
    ROOT / "results" / name
    for name in re.findall(r"^!/results/([\w-]+)/$", (ROOT / ".gitignore").read_text(encoding="utf-8"), re.MULTILINE)
]


def unpacked(run: Path, folder: Path) -> Path:
    """Write the files of a packed run to a new folder, and return it."""
    packed, _ = locate(run)
    for name in packed.members:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(packed.read(name))
    return folder
