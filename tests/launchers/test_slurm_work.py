"""What a Slurm job does on its node if the run fails."""

import json
import signal
from pathlib import Path

import pytest

from tfstudy.launchers import slurm_work
from tfstudy.launchers.job import BUSY, FAILED, OUT_OF_MEMORY, REFUSED, SUCCEEDED, Job
from tfstudy.launchers.slurm_work import Work


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    handler = signal.getsignal(signal.SIGTERM)
    monkeypatch.setattr(slurm_work, "SIGNAL_DELAY", 0.0)
    yield
    signal.signal(signal.SIGTERM, handler)


@pytest.fixture
def ends(monkeypatch):
    """Set how the executions of the job end, in order; the list holds those that are left."""

    def given(*outcomes):
        left = list(outcomes)
        monkeypatch.setattr(slurm_work, "execute", lambda *_: left.pop(0))
        return left

    return given


@pytest.fixture
def job(tmp_path) -> Job:
    return Job(str(tmp_path / "results" / "s" / "copying-copy" / "lstm" / "s0-12345678"), {})


def failure(job: Job) -> dict:
    return json.loads((Path(job.path) / "failed.json").read_text())


def test_a_job_with_a_launcher_runs_once_and_leaves_the_report_to_it(job, ends):
    left = ends((FAILED, "ValueError"), (SUCCEEDED, ""))
    assert Work(job, ".", 0.0)() == (FAILED, "ValueError")
    assert len(left) == 1
    assert not (Path(job.path) / "failed.json").exists()


def test_a_detached_job_that_fails_runs_a_second_time(job, ends):
    ends((FAILED, "ValueError"), (SUCCEEDED, ""))
    assert Work(job, ".", 0.0, attempts=2)() == (SUCCEEDED, "")
    assert not (Path(job.path) / "failed.json").exists()


def test_a_detached_job_that_fails_twice_says_why_in_the_folder_of_the_run(job, ends):
    ends((FAILED, "ValueError"), (OUT_OF_MEMORY, ""))
    assert Work(job, ".", 0.0, attempts=2)() == (OUT_OF_MEMORY, "")
    assert (failure(job)["reason"], failure(job)["attempts"]) == ("out of memory", 2)


def test_a_refused_run_is_not_tried_again(job, ends):
    left = ends((REFUSED, "unknown key"), (SUCCEEDED, ""))
    assert Work(job, ".", 0.0, attempts=2)() == (REFUSED, "unknown key")
    assert len(left) == 1
    assert (failure(job)["reason"], failure(job)["attempts"]) == ("unknown key", 1)


def test_a_run_of_another_process_is_no_failure(job, ends):
    ends((BUSY, ""))
    assert Work(job, ".", 0.0, attempts=2)() == (BUSY, "")
    assert not Path(job.path).exists()
