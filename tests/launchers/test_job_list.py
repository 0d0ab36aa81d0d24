"""Lists of jobs: shards, their order, and runs that another study has finished."""

import os
from pathlib import Path

import pytest

from tests.example_study import finish_run
from tfstudy.errors import UserError
from tfstudy.launchers.job import Job
from tfstudy.launchers.job_list import copy_finished, longest_first, shard_of


@pytest.fixture
def jobs(tmp_path):
    for name in "abcd":
        (tmp_path / name).mkdir()
    return [Job(str(tmp_path / name), {}) for name in "abcd"]


def names(jobs):
    return [Path(job.path).name for job in jobs]


def test_shards_are_all_jobs_each_once(jobs):
    assert names(shard_of(jobs, "1/3")) == ["a", "d"]
    assert sorted(names(job for i in (1, 2, 3) for job in shard_of(jobs, f"{i}/3"))) == list("abcd")
    for wrong in ("0/3", "4/3", "1", "a/b", "1/0"):
        with pytest.raises(UserError, match="--shard must be I/N"):
            shard_of(jobs, wrong)


def test_the_longest_jobs_run_first_and_those_without_an_estimate_before_them(jobs):
    seconds = {jobs[0].path: 1.0, jobs[1].path: 9.0, jobs[3].path: 3.0}
    assert names(longest_first(jobs, seconds)) == ["c", "b", "d", "a"]


def test_a_run_that_another_study_has_finished_is_copied(tmp_path):
    there, here = tmp_path / "first/t-s/lstm/s0-11111111", tmp_path / "second/t-s/lstm/s0-11111111"
    (there / "checkpoints").mkdir(parents=True)
    finish_run(there)
    for name in ("checkpoints/last.ckpt", "metrics.csv", ".lock"):
        (there / name).write_text(name)
    jobs = [Job(str(here), {}), Job(str(here)[:-1] + "2", {})]
    assert copy_finished(jobs) == jobs[:1]
    assert (here / "metrics.csv").read_text() == "metrics.csv"
    assert not (here / ".lock").exists()
    assert os.path.samefile(here / "checkpoints/last.ckpt", there / "checkpoints/last.ckpt")
    assert "copied from" in (here / "train.log").read_text()
    assert [job.finished for job in jobs] == [True, False]
    assert copy_finished(jobs) == []
    assert [path.name for path in here.parent.iterdir()] == [here.name]
