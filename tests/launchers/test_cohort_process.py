"""Runs of one process: each equals the run alone, and ends by itself."""

import gc
import json
import time
from pathlib import Path

import pytest

from tests.example_cohorts import by_seed, grid, train_alone, train_together
from tests.example_jobs import digests, planned
from tfstudy.errors import UserError
from tfstudy.launchers.job import BUSY, FAILED, OUT_OF_MEMORY, REFUSED, SUCCEEDED
from tfstudy.runs.reader import read_environments, read_result
from tfstudy.training.module import Seq2Seq

LSTMS = grid("lstm", seeds="0-4")


@pytest.fixture(autouse=True, scope="module")
def _quick_collections():
    """As in the server of processes: what the tests have imported is not searched for garbage after each run."""
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    root = tmp_path_factory.mktemp("alone")
    train_alone(root, LSTMS)
    return digests(root)


def failing(monkeypatch, errors, step):
    """Raise an error in a step of the runs with these seeds."""
    real = Seq2Seq.training_step

    def training_step(self, batch, number):
        if self._seed in errors and self.global_step == step:
            raise errors[self._seed]
        return real(self, batch, number)

    monkeypatch.setattr(Seq2Seq, "training_step", training_step)


def test_every_member_computes_what_it_computes_alone_bit_for_bit(tmp_path):
    runs = grid("transformer", "lstm", "cnn", steps=8, **{"train.learning_rate": [0.001, 0.003]})
    train_alone(tmp_path / "alone", runs)
    ended = train_together(planned(tmp_path / "cohort", runs))
    assert [end.code for end in ended] == [SUCCEEDED] * 6
    found = digests(tmp_path / "cohort")
    assert found == digests(tmp_path / "alone")
    assert len(set(found.values())) == 6


def test_members_fail_by_themselves_and_are_resumed_alone_or_together_to_the_same_result(tmp_path, alone, monkeypatch):
    jobs = planned(tmp_path, LSTMS)
    with monkeypatch.context() as patch:
        failing(patch, {1: MemoryError(), 2: UserError("no"), 3: ValueError("a bug"), 4: SystemExit(0)}, step=9)
        ended = train_together(jobs)
    expected = {"s1": OUT_OF_MEMORY, "s2": REFUSED, "s3": FAILED, "s4": FAILED, "s0": SUCCEEDED}
    assert by_seed(ended) == expected
    logs = [Path(job.path, "train.log").read_text() for job in jobs]
    assert "error: no" in logs[2]
    assert ["ValueError: a bug" in log for log in logs] == [False, False, False, True, False]
    assert digests(tmp_path) == {name: alone[name] for name in digests(tmp_path)}
    train_alone(tmp_path, {**LSTMS, "seeds": "1-2"})
    train_together(jobs[3:5])
    assert digests(tmp_path) == alone
    assert "resuming after step 8" in Path(jobs[4].path, "train.log").read_text()
    cohorts = [[entry.cohort for entry in read_environments(Path(job.path))] for job in jobs]
    assert cohorts == [[5], [5, 1], [5, 1], [5, 2], [5, 2]]


def test_divergence_of_one_member_is_its_result(tmp_path):
    ended = train_together(planned(tmp_path, grid("lstm", **{"train.learning_rate": [0.001, 1e38]})))
    assert [end.code for end in ended] == [SUCCEEDED, SUCCEEDED]
    results = [json.loads(path.read_text()) for path in tmp_path.glob("*/*/*/s*/result.json")]
    assert sorted(result["status"] for result in results) == ["diverged", "finished"]


def test_a_run_that_is_running_elsewhere_is_left_alone(tmp_path):
    [job] = planned(tmp_path, {**LSTMS, "seeds": "0"})
    ended = train_together([job, job])
    assert [end.code for end in ended] == [BUSY, SUCCEEDED]


def test_members_have_their_own_logs_and_share_the_time_of_the_process(tmp_path):
    jobs = planned(tmp_path, {**LSTMS, "seeds": "0-1"})
    began = time.monotonic()
    ended = train_together(jobs)
    elapsed = time.monotonic() - began
    assert 0.7 * elapsed < sum(end.seconds for end in ended) < elapsed
    assert 0 < sum(read_result(Path(job.path)).train_seconds for job in jobs) < elapsed
    for job in jobs:
        log = Path(job.path, "train.log").read_text()
        assert log.count("seed ") == log.count(f"seed {job.config['seed']}:") == 1
        assert log.count("validation loss") == 3
