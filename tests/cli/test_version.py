"""`tfstudy --version`."""

import importlib.metadata
import platform

from tests.commands import tfstudy
from tfstudy.cli import version


def test_the_versions_are_printed_on_one_line(capsys):
    assert tfstudy("--version") == 0
    [line] = capsys.readouterr().out.splitlines()
    assert line.startswith(f"tfstudy {importlib.metadata.version('tfstudy')} (torch ")
    assert f"python {platform.python_version()}" in line


def test_a_changed_checkout_is_named(monkeypatch):
    monkeypatch.setattr("tfstudy.runs.environment.commit", lambda: "1a2b3c4d5e6f+")
    assert version.version_text().endswith("commit 1a2b3c4 with changes)")


def test_outside_a_checkout_there_is_no_commit(monkeypatch):
    monkeypatch.setattr("tfstudy.runs.environment.commit", lambda: "")
    assert "commit" not in version.version_text()
