"""What is written into a run folder is whole or not there, and is read back or refused; the state that follows."""

import errno
import fcntl
import json
import os
import shlex
from pathlib import Path

import pytest
import torch

from tests.commands import tfstudy
from tests.example_study import CONFIG, finish_run
from tests.interrupted_runs import at_row, command, folder, killed
from tfstudy.config.resolve import resolve
from tfstudy.errors import UserError
from tfstudy.runs.files import BusyError, command_again, is_locked, results_folder, write_atomically
from tfstudy.runs.find import run_status
from tfstudy.runs.identity import identify
from tfstudy.runs.schema import Event, Lengths, Result, Slice, SplitScores
from tfstudy.runs.store import WEIGHTS, RunFolder, add_events, find_weights, open_run, read_result, write_run

pytestmark = pytest.mark.usefixtures("reverse")


def test_a_file_that_can_not_be_finished_is_not_there_at_all_and_is_named(tmp_path, monkeypatch):
    write_atomically(tmp_path / "old.json", b"old")
    writes = {
        "old.json": lambda: write_atomically(tmp_path / "old.json", b"new"),
        "new.json": lambda: write_atomically(tmp_path / "new.json", b"new"),
        "events.jsonl": lambda: add_events(tmp_path, Event(event="resumed", step=1)),
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


def test_looking_at_a_lock_neither_takes_nor_creates_it_and_hinders_no_run(tmp_path, monkeypatch):
    config, path = resolve(CONFIG), tmp_path / "run"
    path.mkdir()
    assert (is_locked(path), (path / ".lock").exists()) == (False, False)
    with (path / ".lock").open("w+") as observer:
        fcntl.flock(observer, fcntl.LOCK_SH)
        assert not is_locked(path), "another process that looks does not work on the run"
        monkeypatch.setattr("time.sleep", lambda _: fcntl.flock(observer, fcntl.LOCK_UN))
        with write_run(path, config, identify(config, "", {})):
            assert is_locked(path)
            monkeypatch.setattr("time.sleep", lambda _: None)
            with pytest.raises(BusyError, match="process"), write_run(path, config, identify(config, "", {})):
                pass


def test_a_killed_run_is_at_its_last_metrics_and_its_events_tell_what_happened_to_it():
    killed(command(), at_row(35))
    status = run_status(open_run(folder()))
    assert (status.state, status.step, status.steps, status.seconds_left) == ("interrupted", 35, 40, None)
    assert tfstudy(*command()) == 0
    events = [json.loads(line) for line in (folder() / "events.jsonl").read_text().splitlines()]
    kinds = ["started", "steps computed", "started", "resumed", "steps computed", "test read", "finished"]
    assert [event["event"] for event in events] == kinds
    assert events[3]["step"] == 30
    assert [event["time"] for event in events] == sorted(event["time"] for event in events)
    run = open_run(folder())
    [_, environment], found = run.environments, run.result
    assert (found.started, found.finished) == (events[0]["time"], events[-1]["time"])
    assert (folder().name, found.step, found.overlap) == (f"s0-{found.run[:8]}", 40, {"validation": 0, "test": 0})
    assert (environment.versions["torch"], run.last_start.preset) == (torch.__version__, "default")
    assert environment.code_versions.keys() == {"task", "model", "training", "evaluation"}


def test_an_incomplete_last_event_is_dropped_and_a_damaged_one_is_not_believed(tmp_path):
    add_events(tmp_path, *(Event(event="test read", split=split, reason="run") for split in "ab"))
    content = (tmp_path / "events.jsonl").read_bytes()
    (tmp_path / "events.jsonl").write_bytes(content[:-9])
    assert open_run(tmp_path).test_reads == {"a": 1}
    add_events(tmp_path, Event(event="test read", split="c", reason="run"))
    assert open_run(tmp_path).test_reads == {"a": 1, "c": 1}
    (tmp_path / "events.jsonl").write_bytes(content.replace(b'"a"', b'"c"'))
    assert "events.jsonl is damaged" in str(open_run(tmp_path).broken)
    assert open_run(tmp_path).test_reads == {}


def test_a_result_is_read_as_it_was_written_and_one_with_an_impossible_number_is_not_written(tmp_path):
    fields = {"run": "0" * 64, "experiment": "e", "task": "copying", "split": "copy", "arch": "lstm", "seed": 0}
    fields |= {"status": "finished", "smoke": False}
    for wrong in ({"metrics": {"exact_match": float("nan")}}, {"slices": {"length": {"3": {"n": float("inf")}}}}):
        with pytest.raises(ValueError, match=r"Expected `(float|int)`, got `null`"):
            RunFolder(tmp_path, "0" * 64).finish(
                Result(**fields, splits={"test": SplitScores.create("test", {"n": 2} | wrong)})
            )
    assert not (tmp_path / "result.json").exists()
    part = {"n": 2, "metrics": {"exact_match": 0.5}, "exact_match_interval": (0.1, 0.9)}
    scores = SplitScores.create("test", part | {"slices": {"length": {"3": part}}, "mean_over_lengths": {"x": 0.5}})
    lengths = Lengths(3, None, 3, {"3": {"n": 2, "exact_match": 0.5}})
    found = Result(**fields, splits={"test": scores}, lengths=lengths)
    (tmp_path / "config.yaml").touch()
    for _ in range(2):
        RunFolder(tmp_path, "0" * 64).finish(found)
        found = read_result(tmp_path)
        assert found.splits["test"].slices["length"]["3"] == Slice(2, {"exact_match": 0.5}, (0.1, 0.9))
        assert (found.lengths.L50, found.test_reads) == (3, {"test": 1}), "a test set is read once by a run"


@pytest.mark.parametrize("finished", [False, True])
def test_an_edited_config_or_a_result_of_another_format_is_refused_and_nothing_is_changed(finished, capsys):
    killed(command(), at_row(40 if finished else 5))
    config, result = folder() / "config.yaml", folder() / "result.json"
    content = config.read_text()
    if finished:
        result.write_text("{}")
    for edited in ("", content.replace("steps: 40", "steps: 50"), "- a list", f"{content}extra: 1\n"):
        config.write_text(edited)
        before = {file: file.read_bytes() for file in folder().rglob("*") if file.is_file() and file.name != ".lock"}
        assert tfstudy(*command()) == 2
        assert "config.yaml was edited" in capsys.readouterr().err
        assert before == {file: file.read_bytes() for file in before}
    config.write_text(content)
    names = {"experiment": "", "task": "reverse", "split": "short", "arch": "lstm", "status": "finished"}
    result.write_text(json.dumps({"format": 2, "run": "", "seed": 0, "smoke": False} | names))
    assert tfstudy(*command()) == 2
    assert "it has format 2, and this version reads 3" in capsys.readouterr().err
    status = run_status(open_run(folder()))
    assert (status.state, "result.json is damaged" in status.reason) == ("failed", True)


def test_the_checkpoint_that_was_evaluated_comes_before_the_weights_alone(tmp_path, capsys):
    run = finish_run(tmp_path / "results/study/copying-copy/lstm/s0-abcd1234")
    again = f"tfstudy run --config {run / 'config.yaml'} --results {tmp_path}/results --study study --restart"
    for words in (["predict", run, "a"], ["evaluate", run], ["export", run]):
        assert tfstudy(*words) == 2
        error = capsys.readouterr().err
        assert shlex.split(again) == shlex.split(error.split("`")[1])
        assert ("no weights" in error, error.count("\n")) == (True, 1)
    (run / WEIGHTS).touch()
    (run / "checkpoints").mkdir()
    (run / "checkpoints/best.ckpt").touch()
    assert find_weights(run, read_result(run)) == run / WEIGHTS, "it was evaluated with the last weights"
    (run / "checkpoints/last.ckpt").touch()
    assert find_weights(run, read_result(run)) == run / "checkpoints/last.ckpt"
    for message, facts in {"unknown checkpoint": {"checkpoint": "../../x"}, "diverged": {"status": "diverged"}}.items():
        with pytest.raises(UserError, match=message):
            find_weights(run, read_result(finish_run(run, **facts)))


def test_smoke_runs_have_a_folder_of_results_of_their_own_which_the_command_finds():
    assert " --results " not in command_again(Path("results-smoke/runs/reverse-short/lstm/s0-12345678"), smoke=True)
    assert results_folder(Path("some-smoke"), smoke=True) == Path("some-smoke-smoke")
