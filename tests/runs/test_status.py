"""What a run reports of its progress, and the state that follows from the files of its folder."""

import os
import time

import pytest

from tests.commands import tfstudy
from tests.example_records import edit_result
from tests.example_task import TASK, added
from tests.interrupted_runs import at_row, command, folder, killed
from tfstudy import tasks
from tfstudy.runs.files import utc_now
from tfstudy.runs.reader import read_progress, read_result
from tfstudy.runs.schema import Progress
from tfstudy.runs.status import run_status, seconds_left
from tfstudy.training import callbacks


@pytest.fixture(autouse=True)
def _reverse(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with added(tasks, "reverse", TASK, tmp_path / "more"):
        yield


def test_a_run_reports_its_steps_speed_preset_and_command():
    before = time.time()
    assert tfstudy(*command()) == 0
    progress = read_progress(folder())
    assert (progress.step, progress.steps, progress.attempt, progress.resumed_after) == (40, 40, 1, 0)
    assert 0 < progress.seconds_per_step < 10
    assert progress.preset == "default"
    assert not progress.tuning
    assert before <= progress.updated <= time.time()
    assert progress.started == read_result(folder()).started


def test_a_killed_run_leaves_its_last_report_and_a_resumed_one_counts_its_attempts():
    killed(command(), at_row(35))
    before = read_progress(folder())
    assert (before.step, before.steps) == (30, 40), "as of the last validation"
    status = run_status(folder())
    assert (status.state, status.step, status.steps) == ("interrupted", 30, 40)
    assert status.seconds_left is None, "nothing is running"
    assert tfstudy(*command()) == 0
    after = read_progress(folder())
    assert (after.step, after.attempt, after.resumed_after) == (40, 2, 30)
    assert after.started == before.started
    assert read_result(folder()).started == before.started


def test_between_validations_progress_is_reported_at_intervals_of_time(monkeypatch):
    monkeypatch.setattr(callbacks, "REPORT_INTERVAL", 0.0)
    killed(command(), at_row(15))
    assert read_progress(folder()).step >= 14


def test_a_restarted_run_reports_from_the_start():
    killed(command(), at_row(15))
    assert tfstudy(*command("lstm", "--restart")) == 0
    progress = read_progress(folder())
    assert (progress.attempt, progress.resumed_after) == (1, 0)


def test_a_broken_report_is_no_report(tmp_path):
    (tmp_path / "config.yaml").touch()
    for text in ("", "{", '{"step": -1, "steps": 5}', '{"step": "x"}'):
        (tmp_path / "progress.json").write_text(text)
        assert read_progress(tmp_path) is None
        assert run_status(tmp_path).steps == 0
    assert tfstudy(*command()) == 0
    (folder() / "progress.json").write_text("{")
    (folder() / "result.json").unlink()
    assert tfstudy(*command()) == 0


def test_seconds_left_follow_from_the_speed_and_the_age_of_the_report():
    report = Progress(400, 200, seconds_per_step=0.5, updated=time.time() - 20)
    assert seconds_left(report) == pytest.approx(80, abs=1)
    assert seconds_left(Progress(400, 200)) is None
    assert seconds_left(Progress(400, 400, seconds_per_step=0.5, updated=time.time() - 20)) == 0


def test_when_a_run_finished_is_read_from_its_record_and_not_from_the_date_of_a_file():
    assert tfstudy(*command()) == 0
    path = folder() / "result.json"
    os.utime(path, (0, 0))
    assert time.time() - run_status(folder()).ended < 60
    edit_result(folder(), finished="2026-01-31T12:00:00Z")
    assert run_status(folder()).ended == 1769860800.0
    for text in ("", "yesterday"):
        edit_result(folder(), finished=text)
        assert run_status(folder()).ended is None


def test_a_broken_result_is_a_failure_with_a_reason(tmp_path):
    (tmp_path / "result.json").write_text('{"format": 99}')
    status = run_status(tmp_path)
    assert status.state == "failed"
    assert "format 99" in status.reason


def test_a_folder_without_any_file_has_not_started(tmp_path):
    assert run_status(tmp_path) is None
    assert utc_now().endswith("Z")
