"""The same command again: a finished run is left alone, `--restart` archives it, a running one is safe."""

import fcntl
import json
import os
import signal
import time
from pathlib import Path

import pytest

from tests.commands import tfstudy
from tests.example_task import TASK, added
from tests.interrupted_runs import assert_same, at_row, command, folder, forked, killed
from tfstudy import tasks


@pytest.fixture(autouse=True)
def _reverse(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with added(tasks, "reverse", TASK, tmp_path / "more"):
        yield


def test_the_same_command_twice_does_no_work_and_says_so(finished_run, capsys):
    finished_run()
    before = {path: path.stat().st_mtime_ns for path in folder().rglob("*") if path.is_file() and path.name != ".lock"}
    capsys.readouterr()
    assert tfstudy(*command()) == 0
    out, err = capsys.readouterr()
    assert f"{folder()}" in out
    assert "already finished" in err
    assert "--restart" in err
    assert "reverse short, lstm" in out, "the result is shown again"
    after = {path: path.stat().st_mtime_ns for path in folder().rglob("*") if path.is_file() and path.name != ".lock"}
    assert after == before


def test_restart_archives_the_whole_run_and_runs_it_again(finished_run, capsys):
    finished_run()
    old = {path.relative_to(folder()): path.read_bytes() for path in folder().rglob("*") if path.is_file()}
    capsys.readouterr()
    for number in (1, 2):
        assert tfstudy(*command("lstm", "--restart")) == 0
        archived = folder().with_name(f"{folder().name}.old-{number}")
        assert (archived / "result.json").exists()
    archived = folder().with_name(f"{folder().name}.old-1")
    for name, content in old.items():
        assert name.name == ".lock" or (archived / name).read_bytes() == content
    assert_same(folder(), archived)
    assert json.loads((folder() / "result.json").read_text())["test_reads"] == {"test": 1}


def test_restart_says_where_the_archived_run_is(finished_run, capsys):
    finished_run()
    capsys.readouterr()
    assert tfstudy(*command("lstm", "--restart")) == 0
    assert f"{folder().name}.old-1" in capsys.readouterr().err


def test_restart_without_an_existing_run_just_runs():
    assert tfstudy(*command("lstm", "--restart")) == 0
    assert [path.name for path in folder().parent.iterdir()] == [folder().name]


def test_the_same_command_continues_an_unfinished_run(undisturbed, capsys):
    killed(command(), at_row(15))
    assert tfstudy(*command()) == 0
    assert "resuming after step 10" in capsys.readouterr().err
    assert_same(folder(), undisturbed(command()))


def test_a_run_of_another_process_is_refused_until_that_has_died(undisturbed, capsys):
    process = forked(command(), at_row(15, signal.pause))
    try:
        deadline = time.monotonic() + 60
        while not list(Path("results").glob("runs/*/*/*/metrics.csv")) and time.monotonic() < deadline:
            time.sleep(0.01)
        for more in ([], ["--restart"]):
            assert tfstudy(*command("lstm", *more)) == 2
            err = capsys.readouterr().err
            assert f"process {process} on " in err
    finally:
        os.kill(process, signal.SIGKILL)
        os.waitpid(process, 0)
    assert tfstudy(*command()) == 0
    assert_same(folder(), undisturbed(command()))
    assert not list(folder().parent.glob("*.old-*"))


def test_a_lock_keeps_no_other_run_from_starting():
    killed(command(), at_row(5))
    with (folder() / ".lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert tfstudy(*command()) == 2
        assert tfstudy(*command("lstm", "--seed", "1")) == 0
    assert tfstudy(*command()) == 0
