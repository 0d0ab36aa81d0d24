"""The words of the project: one word for one thing, in code, help, messages and documents."""

import re
from pathlib import Path

import pytest

from tests.committed import ROOT, STUDIES

FOLDERS = [*(ROOT / name for name in ("tfstudy", "tasks", "configs", "benchmarks", "docs")), *STUDIES]
# The right column of the glossary, as far as a word has no other use: the field has another word for each.
FORMER = (
    r"told|untold|tells|anew|begun|mistakes?|own words|goes on with|does not tell|set(?:s)? aside"
    r"|check_every|log_every|forward_blocks"
)
ROOT_FILES = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "Makefile", "Dockerfile")
QUOTES = {"docs/decisions.md"}  # former names, which it says were changed and why


def texts() -> list[Path]:
    inside = [path for folder in FOLDERS for path in folder.rglob("*")]
    files = [*(ROOT / name for name in ROOT_FILES), *(ROOT / "results").glob("*.md"), *inside]
    kinds = {".py", ".md", ".yaml", ".html", ".js", ".sh", ""}
    return sorted(
        path for path in files
        if path.is_file() and path.suffix in kinds and re.fullmatch(r"[^.].*", path.name)
        and not re.search(r"/s\d+-|__pycache__", str(path)) and str(path.relative_to(ROOT)) not in QUOTES
    )  # fmt: skip


@pytest.mark.parametrize("path", texts(), ids=lambda path: str(path.relative_to(ROOT)))
def test_words_that_the_glossary_replaces_are_gone(path):
    text = path.read_text(encoding="utf-8")
    assert [line for line in text.splitlines() if re.search(rf"\b(?:{FORMER})\b", line, re.IGNORECASE)] == []
