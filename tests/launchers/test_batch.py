"""Jobs: their text and exit codes, their order and estimated times."""

import errno
from pathlib import Path
from unittest.mock import Mock

import msgspec
import pytest
import yaml

from tests.example_records import put
from tests.example_study import finish_run, planned
from tfstudy.errors import UserError
from tfstudy.experiment.api import RunOptions
from tfstudy.launchers.batch import Batch, estimates
from tfstudy.launchers.job import DISK_FULL, FAILED, REFUSED, Job, perform
from tfstudy.training.memory import OutOfMemoryError

pytestmark = pytest.mark.usefixtures("empty_folder")
JOBS = [Job(f"r/study/e/a/{name}", {}) for name in "abcd"]


def test_a_job_survives_its_text():
    options = RunOptions("paper", loggers=("wandb",), tuning=True)
    job = Job("r/s/e/a/s0-1", {"seed": 0, "model": {"dim": 8, "rate": 0.1, "none": None}}, options, 3, ("plug.py",))
    assert msgspec.json.decode(msgspec.json.encode(job), type=Job) == job
    assert (job.study.name, job.name) == ("s", "e/a/s0-1")


@pytest.mark.parametrize(
    ("error", "code", "line"),
    [
        (OutOfMemoryError("one row"), FAILED, "error: one row"),  # retried, as after any other lack of memory
        (UserError("no"), REFUSED, "error: no"),
        (ValueError("two\nlines"), FAILED, "error: ValueError: two"),
        (OSError(errno.EACCES, "no"), FAILED, "error: PermissionError: [Errno 13] no"),
        (OSError(errno.ENOSPC, "full"), DISK_FULL, "error: OSError: [Errno 28] full"),
    ],
)
def test_the_exit_code_says_whether_a_run_is_tried_again_and_the_last_line_why(error, code, line, monkeypatch, capsys):
    monkeypatch.setattr("tfstudy.experiment.run.run", Mock(side_effect=error))
    monkeypatch.setattr("tfstudy.launchers.job._redirect_output", lambda _: None)
    assert perform(planned("0")[0]) == code
    assert capsys.readouterr().out.splitlines()[-1] == line


def finish(job, train_seconds=0.0, evaluate_seconds=0.0, **more):
    """A finished run with the config of a job, in another study."""
    path = Path(str(job.path).replace("/study/", "/before/"))
    finish_run(path, train_seconds=train_seconds, evaluate_seconds=evaluate_seconds, train_tokens=1, **more)
    put(path, "config.yaml", yaml.safe_dump(job.config))
    return path


def with_training(seeds="0", **train):
    return planned(seeds, train={"steps": 400, **train})


def test_the_longest_jobs_run_first_and_those_without_an_estimate_before_them():
    seconds = {JOBS[0].path: 1.0, JOBS[1].path: 9.0, JOBS[3].path: 3.0}
    assert [job.path[-1] for job in Batch(JOBS, seconds).pending] == ["c", "b", "d", "a"]


def test_time_grows_with_the_steps_and_that_of_the_evaluation_does_not():
    (job,), (longer,) = with_training(), with_training(steps=4000)
    finish(job, train_seconds=40, evaluate_seconds=5, step=100)  # evaluated weights of step 100, trained for 400
    assert estimates([job, longer]) == {job.path: 45, longer.path: 405}


def test_the_runs_that_differ_in_the_fewest_settings_count_and_damaged_or_failed_ones_and_other_tasks_never():
    for text, damaged in zip(("", "train: 1", "[", "train: {steps: x}"), planned("1-4"), strict=True):
        put(finish(damaged, train_seconds=1), "config.yaml", text)
    finish(planned("5")[0], train_seconds=1, status="diverged", reason="loss is not finite")
    finish(planned(task="sorting")[0], train_seconds=1)
    assert estimates(planned()) == {}
    for seconds, job in zip((1, 1, 2, 9, 9), with_training("11-15", batch_size=1), strict=True):
        finish(job, train_seconds=seconds)
    for job in with_training("11-19", batch_size=512):
        finish(job, train_seconds=100)
    jobs = [*with_training(batch_size=1), *with_training(batch_size=512)]
    assert list(estimates(jobs).values()) == [2, 100]
