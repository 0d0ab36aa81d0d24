"""What runs next, what is retried and what is given up, on an executor whose jobs end as the test decides."""

import fcntl
import threading
from pathlib import Path
from unittest.mock import Mock

import pytest

from tests.example_study import finish_run
from tfstudy.errors import UserError
from tfstudy.launchers import Executor, JobExit, supervisor
from tfstudy.launchers.job import BUSY, FAILED, REFUSED, SUCCEEDED, Job
from tfstudy.launchers.supervisor import supervise
from tfstudy.runs.store import open_run


class FakeExecutor(Executor):
    """An executor of two slots on one device, whose jobs end at once with the codes given for their names."""

    max_parallel = 2

    def __init__(self, codes: dict[str, list[int]], results: bool = True) -> None:
        self.codes, self.results = codes, results
        self.now: list[Job] = []
        self.log: list[tuple[str, bool, int]] = []  # name, exclusive, how many ran with it
        self.stopped = False

    def has_room(self, exclusive):
        return not self.now if exclusive else len(self.now) < self.max_parallel

    def start(self, job, exclusive):
        self.log.append((Path(job.path).name, exclusive, len(self.now)))
        self.now.append(job)

    def wait(self, seconds):
        ended, self.now = self.now, []
        codes = [self.codes.get(Path(job.path).name, []) for job in ended]
        ends = [JobExit(job, code.pop(0) if code else SUCCEEDED) for job, code in zip(ended, codes, strict=True)]
        for end in ends:
            if end.code == SUCCEEDED and self.results:
                finish_run(Path(end.job.path))
        return ends

    def stop(self):
        self.stopped = True


@pytest.fixture
def jobs(tmp_path, monkeypatch):
    monkeypatch.setattr(supervisor, "POLL_SECONDS", 0.05)
    for name in "abcd":
        (tmp_path / name).mkdir()
    return [Job(str(tmp_path / name), {}) for name in "abcd"]


def test_all_jobs_run_in_order_and_one_that_failed_again_at_the_end_on_an_exclusive_device(jobs):
    executor = FakeExecutor({"a": [FAILED]})
    assert supervise(jobs, executor) == {}
    assert [name for name, *_ in executor.log] == list("abcda")
    assert executor.log[-1] == ("a", True, 0)
    assert executor.stopped


def test_a_job_that_fails_twice_is_given_up(jobs):
    assert supervise(jobs, FakeExecutor({"b": [FAILED, -11]})) == {jobs[1].path: "ended by signal 11"}
    note = open_run(Path(jobs[1].path)).failure
    assert (note.reason, note.attempts) == ("ended by signal 11", 2)


def test_a_refused_run_is_not_retried_and_the_reason_is_the_last_error_in_the_log(jobs):
    for number in (0, 2):
        Path(jobs[number].path, "train.log").write_text("error: old\nerror: can't resume \x1b[2J\nstep 3\n")
    executor = FakeExecutor({"a": [REFUSED], "b": [REFUSED], "c": [FAILED] * 2})
    reasons = [r"refused: can't resume \x1b[2J", "refused: see its log", r"can't resume \x1b[2J"]
    assert list(supervise(jobs, executor).values()) == reasons
    assert [name for name, *_ in executor.log] == list("abcdc")


def test_a_process_that_succeeds_without_a_result_has_failed(jobs):
    failed = supervise(jobs, FakeExecutor({}, results=False))
    assert list(failed.values()) == ["the process ended without a result"] * 4


def test_a_failure_that_can_not_be_written_down_does_not_stop_the_others(jobs, monkeypatch):
    for error, fact in ((OSError(28, "No space left on device"), "No space left"), (UserError("it is a link"), "link")):
        monkeypatch.setattr(supervisor, "write_failure", Mock(side_effect=error))
        events = []
        assert [*supervise(jobs, FakeExecutor({"a": [FAILED, FAILED]}), events.append)] == [jobs[0].path]
        assert any(event and fact in event.reason for event in events)


@pytest.mark.parametrize("dies", [False, True])
def test_a_run_of_another_process_is_waited_for_and_runs_here_if_that_died(jobs, dies):
    executor = FakeExecutor({"a": [BUSY, BUSY, FAILED] if dies else [BUSY]})
    with Path(jobs[0].path, ".lock").open("a") as lock:
        if not dies:
            fcntl.flock(lock, fcntl.LOCK_EX)
            threading.Timer(0.3, finish_run, [Path(jobs[0].path)]).start()
        assert supervise(jobs, executor) == {}
        assert all(job.finished for job in jobs)
    assert [name for name, *_ in executor.log].count("a") == (4 if dies else 1), "busy is no failure"
