"""The command line, run in this process."""

from pathlib import Path

import pytest

from tfstudy.cli import main


def tfstudy(*words: str | Path) -> int:
    """The exit code of the command, run in this process."""
    with pytest.raises(SystemExit) as end:
        main([str(word) for word in words])
    return int(end.value.code or 0)
