"""What a run reports of its progress, the state that follows from its files, and how results and weights are shown."""

import html.parser
import json
import shlex
import time
from pathlib import Path

import pytest
import torch

from tests.commands import tfstudy
from tests.example_records import HOSTILE, result
from tests.example_study import finish_run
from tests.example_task import TASK, added
from tests.interrupted_runs import at_row, command, folder, killed
from tfstudy import RESULTS, tasks
from tfstudy.errors import UserError
from tfstudy.runs.files import command_again, results_folder, sealed
from tfstudy.runs.find import find_runs
from tfstudy.runs.schema import Progress, ReadTest, Result
from tfstudy.runs.status import run_status, seconds_left
from tfstudy.runs.store import RESULTS as DECODER
from tfstudy.runs.store import (
    WEIGHTS,
    broken_because,
    find_weights,
    last_start,
    read_environments,
    read_progress,
    read_result,
    read_test_reads,
)
from tfstudy.runs.writer import add_events


@pytest.fixture(autouse=True)
def _reverse(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with added(tasks, "reverse", TASK, tmp_path / "more"):
        yield


def test_a_killed_run_leaves_its_last_report_and_its_events_tell_what_happened_to_it():
    before = time.time()
    killed(command(), at_row(35))
    report = read_progress(folder())
    assert (report.step, report.steps, report.resumed_after) == (30, 40, 0), "as of the last validation"
    assert 0 < report.seconds_per_step < 10
    assert before <= report.updated <= time.time()
    status = run_status(folder())
    assert (status.state, status.step, status.steps, status.seconds_left) == ("interrupted", 30, 40, None)
    assert tfstudy(*command()) == 0
    events = [json.loads(line) for line in (folder() / "events.jsonl").read_text().splitlines()]
    kinds = ["started", "steps computed", "started", "resumed", "steps computed", "test read", "finished"]
    assert [event["event"] for event in events] == kinds
    assert events[3]["step"] == 30
    assert [event["time"] for event in events] == sorted(event["time"] for event in events)
    assert not (folder() / ".progress").exists()
    assert last_start(folder()).preset == "default"
    found, [_, environment] = read_result(folder()), read_environments(folder())
    assert (found.started, found.finished) == (events[0]["time"], events[-1]["time"])
    assert (folder().name, found.step, found.overlap) == (f"s0-{found.run[:8]}", 40, {"validation": 0, "test": 0})
    assert environment.versions["torch"] == torch.__version__
    assert environment.code_versions.keys() == {"task", "model", "training", "evaluation"}
    assert "tfstudy.models.lstm" in environment.syntax_trees


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


def test_a_broken_report_is_no_report_and_a_broken_result_a_failure_with_a_reason(tmp_path):
    assert run_status(tmp_path) is None, "not started"
    (tmp_path / "config.yaml").write_text("task: copying")
    for content in (b"", b'{"step": 1, "steps": 5}', sealed({"step": -1, "steps": 5}), sealed({"step": "x"})):
        (tmp_path / ".progress").write_bytes(content)
        assert read_progress(tmp_path) is None
        assert run_status(tmp_path).steps == 0
    (tmp_path / "result.json").write_text('{"format": 99}')
    status = run_status(tmp_path)
    assert (status.state, "format 99" in status.reason) == ("failed", True)


def test_seconds_left_follow_from_the_speed_and_the_age_of_the_report():
    report = Progress(400, 200, seconds_per_step=0.5, updated=time.time() - 20)
    assert seconds_left(report) == pytest.approx(80, abs=1)
    assert seconds_left(Progress(400, 200)) is None
    assert seconds_left(Progress(400, 400, seconds_per_step=0.5, updated=time.time() - 20)) == 0


def decoded(**more: object) -> Result:
    return DECODER.decode(json.dumps(result(3, 0.131, **more)))


def test_a_result_is_one_line_and_printed_a_table_of_its_metrics():
    assert repr(decoded()) == "Result(scan length, lstm, seed 3: exact match 13.1 % on test)"
    assert repr(decoded(status="diverged", splits={})) == "Result(scan length, lstm, seed 3: diverged)"
    assert "smoke run" in repr(decoded(smoke=True))
    first, _, *lines = str(decoded()).splitlines()
    assert first == "scan length, lstm, seed 3: exact match 13.1 % on test"
    assert [line.split()[-1] for line in lines] == ["1,000", "13.1", "70.0", "60.0"]


@pytest.mark.parametrize("changes", [{}, {"task": HOSTILE}, {"status": "diverged", "reason": HOSTILE, "splits": {}}])
def test_the_html_of_a_result_is_a_table_that_contains_no_foreign_tags(changes):
    tags, texts = set(), []
    parser = html.parser.HTMLParser()
    parser.handle_starttag = lambda tag, attributes: tags.update([tag, *(name for name, _ in attributes)])
    parser.handle_data = texts.append
    parser.feed(decoded(**changes)._repr_html_())
    assert tags <= {"p", "table", "thead", "tbody", "tr", "th", "td", "border", "class", "style"}
    assert any("seed 3" in text for text in texts)
    assert ("13.1" in texts) == ("splits" not in changes)


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


@pytest.mark.parametrize("words", [["predict", "RUN", "a"], ["evaluate", "RUN"], ["export", "RUN"]])
def test_a_run_without_weights_is_answered_with_the_command_that_trains_it_again(words, capsys, tmp_path):
    run = finish_run(tmp_path / "results/study/copying-copy/lstm/s0-abcd1234")
    assert tfstudy(*(str(run) if word == "RUN" else word for word in words)) == 2
    error = capsys.readouterr().err
    again = f"tfstudy run --config {run / 'config.yaml'} --results {tmp_path}/results --study study --restart"
    assert shlex.split(again) == shlex.split(error.split("`")[1])
    assert ("no weights" in error, error.count("\n")) == (True, 1)


@pytest.mark.parametrize("results", [Path("results"), Path("some-smoke"), Path(".")])
def test_a_smoke_run_is_kept_and_trained_again_in_the_folder_that_smoke_runs_have(results):
    smoke = results_folder(results, smoke=True)
    assert smoke.name.endswith("-smoke")
    assert smoke != results == results_folder(results, smoke=False)
    again = command_again(smoke / "runs/copying-copy/lstm/s0-abcd1234", smoke=True)
    assert (f" --results {results.resolve() if str(results) == '.' else results} " in again) == (results != RESULTS)


def test_smoke_runs_are_kept_out_of_the_results(capsys):
    assert tfstudy(*command("lstm", "--smoke")) == 0
    assert [text.count("SMOKE RUN") for text in capsys.readouterr()] == [1, 1], "over the table and at the start"
    assert not Path("results").exists()
    [path] = find_runs(Path("results-smoke"))
    assert read_result(path).smoke
