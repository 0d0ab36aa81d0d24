"""The command line, run in this process."""

import os
from pathlib import Path

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
