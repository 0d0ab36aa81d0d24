"""What a command must do with hostile input: exit code 2, one line, in time, and nothing left behind."""

import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.commands import tfstudy

SECONDS = 20  # of one command, on a busy machine
CONTROLS = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\ud800-\udfff]")


@contextmanager
def time_limit(seconds: int = SECONDS) -> Iterator[None]:
    """Fail if the block takes longer."""

    def stop(*_: object) -> None:
        raise AssertionError(f"took longer than {seconds} s")

    previous = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, previous)


def refusal(capsys, *words: str | Path) -> str:
    """The one line by which a command refuses its input; it leaves no file in the working folder."""
    before = sorted(Path().rglob("*"))
    with time_limit():
        assert tfstudy(*words) == 2
    out, err = capsys.readouterr()
    assert sorted(Path().rglob("*")) == before
    assert out == ""
    assert "Traceback" not in err
    if err.startswith("Usage:"):  # Click's
        err = err.partition("\n\nerror")[2]
    assert err.count("\n") == 1, err
    assert not CONTROLS.search(err)
    assert len(err) < 1000
    return err
