"""The committed studies: those that `.gitignore` keeps. Tests leave the other results of a checkout alone."""

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
STUDIES = [
    ROOT / "results" / name
    for name in re.findall(r"^!/results/([\w-]+)/$", (ROOT / ".gitignore").read_text(encoding="utf-8"), re.MULTILINE)
]
