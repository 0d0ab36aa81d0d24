"""The command line, run in this process."""

import os
from pathlib import Path
from typing import Any

import pytest

from tfstudy.cli import main
from tfstudy.plugins import VARIABLE


def tfstudy(*words: str | Path) -> int:
    """The exit code of the command, run in this process. Afterwards its plug-ins are forgotten."""
    before = os.environ.get(VARIABLE, "")
    try:
        with pytest.raises(SystemExit) as end:
            main([str(word) for word in words])
    finally:
        os.environ[VARIABLE] = before
    return int(end.value.code or 0)


def refused(capsys: Any, *words: str | Path) -> str:
    """The one line by which a command refuses its input: it prints nothing else and changes no file of this folder."""
    capsys.readouterr()
    before = sorted(Path().rglob("*"))
    assert tfstudy(*words) == 2, words
    out, error = capsys.readouterr()
    assert sorted(Path().rglob("*")) == before
    assert (out, error[:7], error.count("\n")) == ("", "error: ", 1), error
    return error
