"""The progress of a grid: lines without a terminal, a table on one, and the estimated time."""

import io
from pathlib import Path

import pytest
from rich.console import Console

from tests.example_study import finish_run, planned, report, start_run
from tfstudy.launchers.batch import Batch
from tfstudy.launchers.supervisor import RETRYING, Event
from tfstudy.report.grids import BatchProgress
from tfstudy.runs.status import FAILED, FINISHED, RUNNING


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def progress(jobs, seconds, *arguments, **more) -> BatchProgress:
    return BatchProgress(Batch(jobs, seconds), lambda: 2, *arguments, **more)


def test_without_a_terminal_there_is_a_line_for_every_run_that_ends():
    jobs, lines = planned("0-2"), []
    with progress(jobs, dict.fromkeys((job.path for job in jobs), 100.0), lines.append) as shown:
        finish_run(Path(jobs[0].path))
        for event in (Event(jobs[0], RUNNING), None, Event(jobs[0], FINISHED, 200.0)):
            shown(event)
        shown(Event(jobs[1], RETRYING, 3.0, "out of memory"))
        shown(Event(jobs[1], FAILED, 3.0, "out of memory"))
    finished, retried, failed = lines
    assert finished.startswith(f"[1/3] {jobs[0].name}: exact match 50.0 % in 3 min")
    assert finished.endswith("about 3 min left")  # 2 of 200 s, 2 in parallel
    assert retried.startswith(f"[1/3] {jobs[1].name} ")
    assert failed.startswith(f"[2/3] {jobs[1].name} failed")
    assert all("out of memory" in line and "3 s" in line for line in (retried, failed))


def test_time_left_is_that_of_the_longest_run_if_the_others_finish_before():
    jobs = planned("0-2")
    seconds = dict(zip((job.path for job in jobs), (1000.0, 10.0, 10.0), strict=True))
    assert progress(jobs, seconds).seconds_left() == pytest.approx(1000)
    assert progress(jobs, dict.fromkeys(seconds, 100.0)).seconds_left() == pytest.approx(150)
    assert progress(jobs, {}).seconds_left() is None


def test_time_left_is_corrected_by_the_runs_that_have_finished():
    jobs = planned("0-19")
    shown = progress(jobs, dict.fromkeys((job.path for job in jobs[:10]), 100.0), lambda _: None)
    shown(Event(jobs[0], FINISHED, 50.0))
    assert shown.seconds_left() == pytest.approx((9 * 50 + 10 * 50) / 2)


def test_a_run_that_was_resumed_counts_with_the_time_before():
    jobs = planned("0-2")
    shown = progress(jobs, {}, lambda _: None)
    finish_run(Path(jobs[0].path), train_seconds=900.0, evaluate_seconds=100.0)
    shown(Event(jobs[0], FINISHED, 30.0))
    assert shown.seconds_left() == pytest.approx(1000)


@pytest.mark.parametrize("error", [None, KeyboardInterrupt])
def test_on_a_terminal_a_table_is_drawn_and_the_cursor_is_restored(error):
    jobs, screen = planned("0-2"), io.StringIO()
    console = Console(file=screen, force_terminal=True, width=100, height=12, legacy_windows=False)
    try:
        with progress(jobs, {}, console=console) as shown:
            finish_run(Path(jobs[0].path))
            start_run(jobs[1], 150)
            assert screen.getvalue().rfind("\x1b[?25h") > screen.getvalue().rfind("\x1b[?25l"), "also if killed"
            shown(Event(jobs[0], RUNNING))
            shown(Event(jobs[0], FINISHED, 2.0))
            shown._drawn = 0.0
            shown(Event(jobs[1], RUNNING))
            shown(Event(jobs[2], FAILED, 2.0, "hung"))
            report(Path(jobs[1].path), 400)
            shown._drawn = 0.0
            shown(None)
            if error:
                raise error
    except KeyboardInterrupt:
        pass
    text = screen.getvalue()
    assert "step 150 of 400" in text
    assert "trained, evaluating" in text
    assert f"[1/3] {jobs[0].name}: exact match 50.0 % in 2 s" in text
    assert f"{jobs[2].name} failed: hung" in text
    assert "1 finished, 1 failed, 1 left of 3; about 2 s left" in text
    assert text.rfind("\x1b[?25h") > text.rfind("\x1b[?25l")
