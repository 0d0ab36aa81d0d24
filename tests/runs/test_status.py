"""What a run reports of its progress, the state that follows from its files, and how results and weights are shown."""

import html.parser
import json
import shlex
import time
from pathlib import Path

import pytest

from tests.commands import tfstudy
from tests.example_records import HOSTILE, result
from tests.example_study import finish_run
from tests.example_task import TASK, added
from tests.interrupted_runs import at_row, command, folder, killed
from tfstudy import RESULTS, tasks
from tfstudy.errors import UserError
from tfstudy.runs.files import command_again, results_folder, sealed
from tfstudy.runs.schema import Progress, ReadTest, Result
from tfstudy.runs.status import run_status, seconds_left
from tfstudy.runs.store import RESULTS as DECODER
from tfstudy.runs.store import (
    WEIGHTS,
    broken_because,
    find_weights,
    has_weights,
    last_start,
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
    assert (status.state, status.step, status.steps) == ("interrupted", 30, 40)
    assert status.seconds_left is None, "nothing is running"
    assert tfstudy(*command()) == 0
    events = [json.loads(line) for line in (folder() / "events.jsonl").read_text().splitlines()]
    kinds = ["started", "steps computed", "started", "resumed", "steps computed", "scored", "test read", "scored"]
    assert [event["event"] for event in events] == [*kinds, "finished"]
    assert events[3]["step"] == 30
    assert [event["time"] for event in events] == sorted(event["time"] for event in events)
    assert read_result(folder()).started == events[0]["time"]
    assert not (folder() / ".progress").exists()
    assert last_start(folder()).preset == "default"


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
    for content in (b"", b"{", b'{"step": 1, "steps": 5}', sealed({"step": -1, "steps": 5}), sealed({"step": "x"})):
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


def test_a_result_is_one_line_without_its_slices():
    assert repr(decoded()) == "Result(scan length, lstm, seed 3: exact match 13.1 % on test)"
    assert repr(decoded(status="diverged", splits={})) == "Result(scan length, lstm, seed 3: diverged)"
    assert repr(decoded(splits={})) == "Result(scan length, lstm, seed 3: nothing measured)"
    assert "smoke run" in repr(decoded(smoke=True))


def test_a_printed_result_has_a_line_for_each_metric():
    first, _, *lines = str(decoded()).splitlines()
    assert first == "scan length, lstm, seed 3: exact match 13.1 % on test"
    assert len({len(line) for line in lines}) == 1
    assert [line.split() for line in lines] == [
        ["examples", "1,000"],
        ["exact", "match", "13.1"],
        ["token", "accuracy", "70.0"],
        ["exact", "match,", "oracle", "length", "60.0"],
    ]


@pytest.mark.parametrize("changes", [{}, {"task": HOSTILE}, {"status": "diverged", "reason": HOSTILE, "splits": {}}])
def test_the_html_of_a_result_is_a_table_that_contains_no_foreign_tags(changes):
    tags, texts = [], []
    parser = html.parser.HTMLParser()
    parser.handle_starttag = lambda tag, attributes: tags.append((tag, attributes))
    parser.handle_data = texts.append
    parser.feed(decoded(**changes)._repr_html_())
    assert {tag for tag, _ in tags} <= {"p", "table", "thead", "tbody", "tr", "th", "td"}
    assert {name for _, attributes in tags for name, _ in attributes} <= {"border", "class", "style"}
    assert any("seed 3" in text for text in texts)
    assert ("13.1" in texts) == ("splits" not in changes)


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return finish_run(tmp_path / "results/study/copying-copy/lstm/s0-abcd1234")


def test_the_checkpoint_comes_before_the_weights_alone(run):
    assert not has_weights(run)
    (run / WEIGHTS).touch()
    assert has_weights(run)
    assert find_weights(run, read_result(run)) == run / WEIGHTS
    (run / "checkpoints").mkdir()
    (run / "checkpoints/best.ckpt").touch()
    assert find_weights(run, read_result(run)) == run / WEIGHTS, "it was evaluated with the last weights"
    (run / "checkpoints/last.ckpt").touch()
    assert find_weights(run, read_result(run)) == run / "checkpoints/last.ckpt"


@pytest.mark.parametrize("words", [["predict", "RUN", "a"], ["evaluate", "RUN"], ["export", "RUN"]])
def test_a_run_without_weights_is_answered_with_the_command_that_trains_it_again(run, words, capsys, monkeypatch):
    monkeypatch.setattr("tfstudy.cli.inspection.announce", lambda text: pytest.fail(f"no need for: {text}"))
    assert tfstudy(*(str(run) if word == "RUN" else word for word in words)) == 2
    error = capsys.readouterr().err
    assert "no weights" in error
    study = run.parents[2]
    again = f"tfstudy run --config {run / 'config.yaml'} --results {study.parent} --study {study.name} --restart"
    assert shlex.split(again) == shlex.split(error.split("`")[1])
    assert error.count("\n") == 1


@pytest.mark.parametrize("results", [Path("results"), Path("some-smoke"), Path(".")])
def test_a_smoke_run_is_kept_and_trained_again_in_the_folder_that_smoke_runs_have(results):
    smoke = results_folder(results, smoke=True)
    assert smoke.name.endswith("-smoke")
    assert smoke != results == results_folder(results, smoke=False)
    again = command_again(smoke / "runs/copying-copy/lstm/s0-abcd1234", smoke=True)
    assert (f" --results {results.resolve() if str(results) == '.' else results} " in again) == (results != RESULTS)


def test_a_record_names_no_checkpoint_outside_of_its_folder_and_none_if_it_diverged(tmp_path):
    for message, facts in {"unknown checkpoint": {"checkpoint": "../../x"}, "diverged": {"status": "diverged"}}.items():
        run = finish_run(tmp_path / "s0-abcd1234", **facts)
        with pytest.raises(UserError, match=message):
            find_weights(run, read_result(run))
