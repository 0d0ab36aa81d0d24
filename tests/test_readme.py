"""The README stays short, and what it names exists. Its code blocks are executed by tests/test_code_blocks.py."""

import re

from tests.commands import tfstudy
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


def test_the_errors_that_the_readme_shows_are_those_of_the_shipped_run(capsys):
    assert tfstudy("errors", "first/lstm", "--examples", "1", "--results", ROOT / "results") == 0
    shown = TEXT[TEXT.index("lstm s0-") :].split("\n...\n")[0].splitlines()
    assert len(shown) == 7
    assert [line.rstrip() for line in capsys.readouterr().out.splitlines()][:7] == shown
