"""The progress of a grid: a line for each run that ends, and the estimated time."""

from pathlib import Path

import pytest

from tests.example_study import finish_run, planned
from tfstudy.launchers.batch import Batch
from tfstudy.launchers.supervisor import RETRYING, Event
from tfstudy.report.progress import BatchProgress
from tfstudy.runs.find import FAILED, FINISHED, RUNNING

pytestmark = pytest.mark.usefixtures("empty_folder")


def progress(jobs, seconds) -> BatchProgress:
    return BatchProgress(Batch(jobs, seconds), lambda: 2)


def test_there_is_a_line_for_every_run_that_ends(capsys):
    jobs = planned("0-2")
    shown = progress(jobs, dict.fromkeys((job.path for job in jobs), 100.0))
    finish_run(Path(jobs[0].path))
    for event in (Event(jobs[0], RUNNING), Event(jobs[0], FINISHED, 200.0)):
        shown(event)
    shown(Event(jobs[1], RETRYING, 3.0, "out of memory"))
    shown(Event(jobs[1], FAILED, 3.0, "out of memory"))
    finished, retried, failed = capsys.readouterr().out.splitlines()
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


def test_time_left_is_corrected_by_the_runs_that_have_finished_with_the_time_before_they_were_resumed():
    jobs = planned("0-19")
    shown = progress(jobs, dict.fromkeys((job.path for job in jobs[:10]), 100.0))
    finish_run(Path(jobs[0].path), train_seconds=40.0, evaluate_seconds=10.0)
    shown(Event(jobs[0], FINISHED, 30.0))
    assert shown.seconds_left() == pytest.approx((9 * 50 + 10 * 50) / 2)
