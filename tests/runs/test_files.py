"""The lock of a run: who works on it, and who only looks."""

import fcntl
from pathlib import Path

import pytest

from tests.example_study import CONFIG
from tfstudy.config.resolve import resolve
from tfstudy.runs.files import BusyError, is_locked
from tfstudy.runs.identity import identify
from tfstudy.runs.writer import open_run


def test_looking_at_a_lock_neither_takes_nor_creates_it(tmp_path):
    assert not is_locked(tmp_path)
    assert not (tmp_path / ".lock").exists()
    (tmp_path / ".lock").touch()
    with (tmp_path / ".lock").open("rb") as observer:
        fcntl.flock(observer, fcntl.LOCK_SH)
        assert not is_locked(tmp_path), "another process that looks does not work on the run"


def test_a_run_can_start_while_another_process_looks_at_its_lock(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    config = resolve(CONFIG)
    path = Path("run")
    path.mkdir()
    with (path / ".lock").open("w+") as observer:
        fcntl.flock(observer, fcntl.LOCK_SH)
        monkeypatch.setattr("time.sleep", lambda _: fcntl.flock(observer, fcntl.LOCK_UN))
        with open_run(path, config, identify(config, "", {})):
            assert is_locked(path)
            monkeypatch.setattr("time.sleep", lambda _: None)
            with pytest.raises(BusyError, match="process"), open_run(path, config, identify(config, "", {})):
                pass
