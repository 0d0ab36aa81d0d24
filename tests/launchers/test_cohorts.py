"""Cohorts as processes of this machine: killed, hanging, interrupted, and which runs they take."""

import os
import signal
from pathlib import Path

import pytest

from tests.example_cohorts import grid, train_alone
from tests.example_jobs import digests, planned, process_of, seen
from tfstudy.experiment.options import RunOptions
from tfstudy.launchers import ExecutorSettings, JobExit, executor, gpu_sharing
from tfstudy.launchers.cohort_process import Ended
from tfstudy.launchers.cohorts import Cohorts
from tfstudy.launchers.job import OUT_OF_MEMORY
from tfstudy.launchers.supervisor import RETRYING, supervise
from tfstudy.runs.files import is_locked
from tfstudy.runs.reader import read_environments

RUNS = grid("lstm", seeds="0-2", steps=40)
TWO_KINDS = grid("lstm", "cnn", seeds="0-2")
ENDLESS = grid("lstm", seeds="0-1", steps=100_000)


def test_a_killed_cohort_is_resumed_to_the_same_results_as_runs_alone(tmp_path):
    train_alone(tmp_path / "alone", RUNS)
    jobs = planned(tmp_path / "cohort", RUNS)
    killer = seen(tmp_path / "cohort", 2, lambda process: os.kill(process, signal.SIGKILL))
    events = []
    summary = supervise(jobs, Cohorts(["cpu"], 1, 3), events.append)
    killer.join()
    assert summary.failed == {}
    retried = [event for event in events if event and event.state == RETRYING]
    assert {event.reason for event in retried} == {"ended by signal 9"}
    assert len(retried) == 3
    assert digests(tmp_path / "cohort") == digests(tmp_path / "alone")
    killed = [Path(event.job.path) for event in retried]
    assert any("resuming after step" in (path / "train.log").read_text() for path in killed)
    assert {tuple(entry.cohort for entry in read_environments(path)) for path in killed} == {(3, 1)}


def test_no_process_is_left_when_the_launcher_is_interrupted(tmp_path):
    jobs = planned(tmp_path, ENDLESS)
    processes = set()

    def interrupt(process):
        processes.update(process_of(Path(job.path)) for job in jobs)
        os.kill(os.getpid(), signal.SIGINT)

    stopper = seen(tmp_path, 1, interrupt)
    with pytest.raises(KeyboardInterrupt):
        supervise(jobs, Cohorts(["cpu"], 1, 2))
    stopper.join()
    assert len(processes) == 1
    assert not any(is_locked(Path(job.path)) for job in jobs)


def test_a_cohort_that_takes_longer_than_its_members_may_is_killed(tmp_path):
    events = []
    summary = supervise(planned(tmp_path, ENDLESS), Cohorts(["cpu"], 1, 2, timeout=0.5), events.append)
    reasons = [event.reason for event in events if event and event.state == RETRYING]
    assert reasons == ["took longer than the timeout of 0.5 s for each of 2"] * 2
    assert set(summary.failed.values()) == {"took longer than the timeout of 0.5 s"}


@pytest.fixture
def unstarted(monkeypatch):
    """Cohorts whose processes only exist on paper; and the jobs of two architectures."""

    class Process:
        def __init__(self, **_):
            self.pid, self.exitcode, self.sentinel = 2**30, None, None

        def start(self):
            pass

        def join(self, *_):
            pass

    made = []

    def make(per_device, size=2, device="cpu"):
        made.append(Cohorts([device], per_device, size))
        monkeypatch.setattr(made[-1], "_context", type("Context", (), {"Process": Process}))
        return made[-1]

    monkeypatch.setattr("tfstudy.launchers.process_control.GRACE_SECONDS", 0)
    yield make
    for one in made:
        one.stop()


def test_runs_join_a_process_of_their_cohort_until_it_is_full(tmp_path, unstarted):
    cohorts, jobs = unstarted(1), planned(tmp_path, TWO_KINDS)
    assert [job.config["arch"] for job in cohorts.ordered(jobs[::-1])] == ["cnn"] * 3 + ["lstm"] * 3
    cohorts.start(jobs[0], False)
    assert [cohorts.has_room(job, False) for job in (jobs[1], jobs[3])] == [True, False]
    assert not cohorts.has_room(jobs[1], True), "a run that is retried shares its device with no other"
    cohorts.start(jobs[1], False)
    assert not cohorts.has_room(jobs[2], False)


def test_free_cores_are_used_before_a_process_gets_a_second_run(tmp_path, unstarted):
    cohorts, jobs = unstarted(2), planned(tmp_path, TWO_KINDS)
    for job in jobs[:3]:
        assert cohorts.has_room(job, False)
        cohorts.start(job, False)
    assert [len(worker.members) for worker in cohorts._workers] == [2, 1]


def test_on_a_gpu_auto_follows_the_measured_limit(tmp_path, unstarted, monkeypatch):
    monkeypatch.setattr(gpu_sharing, "gpus", lambda: [gpu_sharing.Gpu("0", 50.0, 1000.0, 80_000.0)])
    monkeypatch.setattr(gpu_sharing, "MEASURE_SECONDS", 0.0)
    cohorts, jobs = unstarted(1, size=0, device="0"), planned(tmp_path, RUNS)
    monkeypatch.setattr(cohorts._limits, "_rate", lambda path, steps: 1.0)
    cohorts.start(jobs[0], False)
    assert not cohorts.has_room(jobs[1], False)
    cohorts._measure()
    assert cohorts.has_room(jobs[1], False)
    cohorts.start(jobs[1], False)
    cohorts._measure()
    assert cohorts._limit(cohorts._workers[0]) == 3
    [worker] = cohorts._workers
    worker.connection = Ends([Ended(jobs[1].path, OUT_OF_MEMORY, 2.0)])
    assert cohorts._exits_of(worker) == [JobExit(jobs[1], OUT_OF_MEMORY, seconds=2.0)]
    assert cohorts._limit(worker) == 2


class Ends:
    """The connection of a process that has sent these ends."""

    def __init__(self, ends):
        self.ends = ends

    def poll(self):
        return bool(self.ends)

    def recv(self):
        return self.ends.pop()

    def close(self):
        pass


def test_auto_is_one_run_after_the_other_on_a_cpu():
    settings = ExecutorSettings("1", options=RunOptions(accelerator="cpu"), cohort="auto")
    one = executor(settings)
    try:
        assert "1 process in parallel, each for one run after the other" in one.describe()
        assert one.max_parallel == 1
    finally:
        one.stop()
