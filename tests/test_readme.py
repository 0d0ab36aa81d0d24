"""The README stays short, and what it names exists. Its code blocks are executed by tests/test_code_blocks.py."""

import re

from tests.committed import ROOT

TEXT = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_readme_is_read_in_a_minute():
    assert len(TEXT.splitlines()) <= 120


def test_the_make_targets_of_the_readme_exist():
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    named = set(re.findall(r"\bmake ([a-z-]+)\b", TEXT))
    assert {"scan", "test"} <= named <= targets


def test_the_files_that_the_readme_links_to_exist():
    links = [link for link in re.findall(r"\]\(([^)#]+)", TEXT) if not link.startswith("http")]
    assert len(links) > 20
    assert [link for link in links if not (ROOT / link).exists()] == []
