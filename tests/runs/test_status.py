"""What a run reports of its progress, the state that follows from its files, and how results and weights are shown."""

import json
import shlex
from pathlib import Path

import pytest
import torch

from tests.commands import tfstudy
from tests.example_records import result
from tests.example_study import finish_run
from tests.example_task import TASK, added
from tests.interrupted_runs import at_row, command, folder, killed
from tfstudy import tasks
from tfstudy.errors import UserError
from tfstudy.runs.files import command_again, results_folder
from tfstudy.runs.find import find_runs
from tfstudy.runs.schema import ReadTest
from tfstudy.runs.status import run_status
from tfstudy.runs.store import RESULTS as DECODER
from tfstudy.runs.store import (
    WEIGHTS,
    broken_because,
    find_weights,
    last_start,
    read_environments,
    read_result,
    read_test_reads,
)
from tfstudy.runs.writer import add_events


@pytest.fixture(autouse=True)
def _reverse(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with added(tasks, "reverse", TASK, tmp_path / "more"):
        yield


def test_a_killed_run_is_at_its_last_metrics_and_its_events_tell_what_happened_to_it():
    killed(command(), at_row(35))
    status = run_status(folder())
    assert (status.state, status.step, status.steps, status.seconds_left) == ("interrupted", 35, 40, None)
    assert tfstudy(*command()) == 0
    events = [json.loads(line) for line in (folder() / "events.jsonl").read_text().splitlines()]
    kinds = ["started", "steps computed", "started", "resumed", "steps computed", "test read", "finished"]
    assert [event["event"] for event in events] == kinds
    assert events[3]["step"] == 30
    assert [event["time"] for event in events] == sorted(event["time"] for event in events)
    assert last_start(folder()).preset == "default"
    found, [_, environment] = read_result(folder()), read_environments(folder())
    assert (found.started, found.finished) == (events[0]["time"], events[-1]["time"])
    assert (folder().name, found.step, found.overlap) == (f"s0-{found.run[:8]}", 40, {"validation": 0, "test": 0})
    assert environment.versions["torch"] == torch.__version__
    assert environment.code_versions.keys() == {"task", "model", "training", "evaluation"}


def test_an_incomplete_last_event_is_dropped_and_a_damaged_one_is_not_believed(tmp_path):
    add_events(tmp_path, ReadTest(split="a", reason="run"), ReadTest(split="b", reason="run"))
    content = (tmp_path / "events.jsonl").read_bytes()
    (tmp_path / "events.jsonl").write_bytes(content[:-9])
    assert read_test_reads(tmp_path) == {"a": 1}
    add_events(tmp_path, ReadTest(split="c", reason="run"))
    assert read_test_reads(tmp_path) == {"a": 1, "c": 1}
    (tmp_path / "events.jsonl").write_bytes(content.replace(b'"a"', b'"c"'))
    assert "events.jsonl is damaged" in broken_because(tmp_path)
    assert read_test_reads(tmp_path) == {}


def test_a_broken_result_is_a_failure_with_a_reason(tmp_path):
    assert run_status(tmp_path) is None, "not started"
    (tmp_path / "config.yaml").write_text("task: copying")
    (tmp_path / "metrics.csv").write_text("step,metric,value\n9999999999999999,a,1\nx,")
    status = run_status(tmp_path)
    assert (status.state, status.step, status.steps) == ("interrupted", 0, 0)
    (tmp_path / "result.json").write_text('{"format": 99}')
    status = run_status(tmp_path)
    assert (status.state, "format 99" in status.reason) == ("failed", True)


def test_a_result_is_one_line():
    for more, shown in (
        ({}, "scan length, lstm, seed 3: exact match 13.1 % on test"),
        ({"smoke": True}, "smoke run of scan length, lstm, seed 3: exact match 13.1 % on test"),
        ({"status": "diverged", "splits": {}}, "scan length, lstm, seed 3: diverged"),
    ):
        assert repr(DECODER.decode(json.dumps(result(3, 0.131, **more)))) == f"Result({shown})"


def test_the_checkpoint_that_was_evaluated_comes_before_the_weights_alone(tmp_path):
    run = finish_run(tmp_path / "s0-abcd1234")
    (run / WEIGHTS).touch()
    (run / "checkpoints").mkdir()
    (run / "checkpoints/best.ckpt").touch()
    assert find_weights(run, read_result(run)) == run / WEIGHTS, "it was evaluated with the last weights"
    (run / "checkpoints/last.ckpt").touch()
    assert find_weights(run, read_result(run)) == run / "checkpoints/last.ckpt"
    for message, facts in {"unknown checkpoint": {"checkpoint": "../../x"}, "diverged": {"status": "diverged"}}.items():
        with pytest.raises(UserError, match=message):
            find_weights(run, read_result(finish_run(run, **facts)))


def test_a_run_without_weights_is_answered_with_the_command_that_trains_it_again(capsys, tmp_path):
    run = finish_run(tmp_path / "results/study/copying-copy/lstm/s0-abcd1234")
    again = f"tfstudy run --config {run / 'config.yaml'} --results {tmp_path}/results --study study --restart"
    for words in (["predict", run, "a"], ["evaluate", run], ["export", run]):
        assert tfstudy(*words) == 2
        error = capsys.readouterr().err
        assert shlex.split(again) == shlex.split(error.split("`")[1])
        assert ("no weights" in error, error.count("\n")) == (True, 1)


def test_smoke_runs_are_kept_out_of_the_results(capsys):
    assert tfstudy(*command("lstm", "--smoke")) == 0
    assert [text.count("SMOKE RUN") for text in capsys.readouterr()] == [1, 1], "over the table and at the start"
    assert not Path("results").exists()
    [path] = find_runs(Path("results-smoke"))
    assert read_result(path).smoke
    assert " --results " not in command_again(path, smoke=True)
    assert results_folder(Path("some-smoke"), smoke=True) == Path("some-smoke-smoke")
