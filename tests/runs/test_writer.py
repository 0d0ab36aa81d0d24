"""Files of a run appear complete or not at all, also on a full disk; damaged and edited ones are refused and kept."""

import errno
import fcntl
import os

import pytest

from tests.commands import tfstudy
from tests.example_study import CONFIG
from tests.example_task import TASK, added
from tests.interrupted_runs import at_row, command, folder, killed
from tfstudy import tasks
from tfstudy.config.resolve import resolve
from tfstudy.errors import UserError
from tfstudy.runs.files import BusyError, is_locked, write_atomically
from tfstudy.runs.identity import identify
from tfstudy.runs.schema import Lengths, Result, Resumed, Slice, SplitScores
from tfstudy.runs.store import read_result
from tfstudy.runs.writer import RunFolder, add_events, write_run


@pytest.fixture(autouse=True)
def _reverse(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with added(tasks, "reverse", TASK, tmp_path / "more"):
        yield


def test_a_file_that_can_not_be_finished_is_not_there_at_all_and_is_named(tmp_path, monkeypatch):
    write_atomically(tmp_path / "old.json", b"old")
    writes = {
        "old.json": lambda: write_atomically(tmp_path / "old.json", b"new"),
        "new.json": lambda: write_atomically(tmp_path / "new.json", b"new"),
        "events.jsonl": lambda: add_events(tmp_path, Resumed(step=1)),
    }

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    for name, write in writes.items():
        with pytest.raises(OSError, match="No space left") as error:
            write()
        assert (error.value.errno, error.value.filename) == (errno.ENOSPC, str(tmp_path / name))
    monkeypatch.undo()
    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError, match="No space left"):
        writes["new.json"]()
    assert {path.name for path in tmp_path.glob("*.*")} == {"old.json", "events.jsonl"}
    assert (tmp_path / "old.json").read_bytes() == b"old"


def example_result(**more) -> Result:
    fields = {"run": "0" * 64, "experiment": "e", "task": "copying", "split": "copy", "arch": "lstm", "seed": 0}
    return Result(**fields | {"status": "finished", "smoke": False} | more)


def test_a_result_is_read_as_it_was_written_and_one_with_an_impossible_number_is_not_written(tmp_path):
    nan, infinite = {"metrics": {"exact_match": float("nan")}}, {"slices": {"length": {"3": {"n": float("inf")}}}}
    problems = [{"splits": {"test": SplitScores.create("test", {"n": 2} | wrong)}} for wrong in (nan, infinite)]
    for problem in ({"train_seconds": float("nan")}, *problems):
        with pytest.raises(ValueError, match=r"Expected `(float|int)`, got `null`"):
            RunFolder(tmp_path, "0" * 64).finish(example_result(**problem))
    assert not (tmp_path / "result.json").exists()
    part = {"n": 2, "metrics": {"exact_match": 0.5}, "exact_match_interval": (0.1, 0.9)}
    scores = SplitScores.create("test", part | {"slices": {"length": {"3": part}}, "mean_over_lengths": {"x": 0.5}})
    result = example_result(splits={"test": scores}, lengths=Lengths(3, None, 3, {"3": {"n": 2, "exact_match": 0.5}}))
    (tmp_path / "config.yaml").touch()
    for _ in range(2):
        RunFolder(tmp_path, "0" * 64).finish(result)
        result = read_result(tmp_path)
        assert result.splits["test"].slices["length"]["3"] == Slice(2, {"exact_match": 0.5}, (0.1, 0.9))
        assert (result.lengths.L50, result.test_reads) == (3, {"test": 1}), "a test set is read once by a run"


@pytest.mark.parametrize("finished", [False, True])
def test_an_edited_config_or_a_result_of_another_format_is_refused_and_nothing_is_changed(finished, capsys):
    killed(command(), at_row(40 if finished else 5))
    config, result = folder() / "config.yaml", folder() / "result.json"
    content = config.read_text()
    if finished:
        result.write_text("{}")
    for edited in (content.replace("steps: 40", "steps: 50"), "- a list", f"{content}extra: 1\n"):
        config.write_text(edited)
        before = {file: file.read_bytes() for file in folder().rglob("*") if file.is_file() and file.name != ".lock"}
        assert tfstudy(*command()) == 2
        assert f"{config} was edited" in capsys.readouterr().err
        assert before == {file: file.read_bytes() for file in before}
    config.write_text(content)
    result.write_text('{"format": 99, "run": "x"}')
    with pytest.raises(UserError, match=r"result\.json.* format 99"):
        read_result(folder())
    assert tfstudy(*command()) == 2
    assert "format 99" in capsys.readouterr().err


def test_looking_at_a_lock_neither_takes_nor_creates_it_and_hinders_no_run(tmp_path, monkeypatch):
    config, path = resolve(CONFIG), tmp_path / "run"
    path.mkdir()
    assert not is_locked(path)
    assert not (path / ".lock").exists()
    with (path / ".lock").open("w+") as observer:
        fcntl.flock(observer, fcntl.LOCK_SH)
        assert not is_locked(path), "another process that looks does not work on the run"
        monkeypatch.setattr("time.sleep", lambda _: fcntl.flock(observer, fcntl.LOCK_UN))
        with write_run(path, config, identify(config, "", {})):
            assert is_locked(path)
            monkeypatch.setattr("time.sleep", lambda _: None)
            with pytest.raises(BusyError, match="process"), write_run(path, config, identify(config, "", {})):
                pass
