"""Estimated times of runs: the finished runs that count, and what is made of their times."""

from pathlib import Path

import pytest
import yaml

from tests.example_study import finish_run, planned
from tfstudy.launchers.run_time import estimates


def finish(job, train_seconds=0.0, evaluate_seconds=0.0, **more):
    """A finished run with the config of a job, in another study."""
    path = finish_run(
        Path(str(job.path).replace("/study/", "/before/")),
        train_seconds=train_seconds,
        evaluate_seconds=evaluate_seconds,
        train_tokens=1,
        **more,
    )
    (path / "config.yaml").write_text(yaml.safe_dump(job.config))
    return path


def with_training(seeds="0", **train):
    return planned(seeds, train={"steps": 400, **train})


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_time_grows_with_the_steps_and_that_of_the_evaluation_does_not():
    (job,), (longer,) = with_training(), with_training(steps=4000)
    finish(job, train_seconds=40, evaluate_seconds=5, step=100)  # evaluated weights of step 100, trained for 400
    assert estimates([job, longer]) == {job.path: 45, longer.path: 405}


def test_runs_of_other_seeds_count_like_those_of_the_same():
    for seconds, job in zip((10, 20, 60), with_training("1-3"), strict=True):
        finish(job, train_seconds=seconds)
    (job,) = with_training()
    assert estimates([job])[job.path] == 20


def test_the_runs_that_differ_in_the_fewest_settings_count():
    for job in with_training("1-5", batch_size=1):
        finish(job, train_seconds=1)
    for job in with_training("1-9", batch_size=512, learning_rate=0.5):
        finish(job, train_seconds=100)
    jobs = [*with_training(batch_size=1), *with_training(batch_size=512)]
    assert list(estimates(jobs).values()) == [1, 100]


def test_runs_of_another_split_count_only_where_there_is_none_of_the_same():
    (other,), (job,) = planned(task="sorting"), planned()
    finish(other, train_seconds=1)
    assert estimates([job]) == {}
    (short,) = planned(data={"train_examples": 60, "eval_examples": 10, "split": "reverse"})
    finish(short, train_seconds=7)
    assert estimates([job])[job.path] == pytest.approx(7)
    finish(job, train_seconds=8)
    assert estimates([job])[job.path] == pytest.approx(8)


def test_damaged_and_failed_runs_do_not_count():
    jobs = with_training("0-3")
    for text, job in zip(("", "train: 1", "[", "train: {steps: x}"), jobs, strict=True):
        (finish(job, train_seconds=1) / "config.yaml").write_text(text)
    (failed,) = with_training("5")
    finish(failed, train_seconds=1, status="diverged", reason="loss is not finite")
    assert estimates(jobs) == {}
