"""Commands that submit the jobs of one study at the same time: each run has one job in the queue."""

from contextlib import contextmanager, suppress
from threading import Barrier, BrokenBarrierError, Thread

import pytest

from tests.launchers.test_slurm import Submitit, _here, ended, job, jobs_of, queue
from tfstudy.launchers import ExecutorSettings, JobExit, slurm_queue
from tfstudy.launchers.job import SUCCEEDED
from tfstudy.launchers.slurm import Slurm
from tfstudy.launchers.slurm_queue import recorded_jobs

__all__ = ["_here", "job", "queue"]  # fixtures

TOGETHER = 0.3  # seconds for which the first of two threads waits for the other, which must not come


@pytest.fixture
def meeting():
    """A function that waits for its call by a second thread: both go on together, unless a lock excludes it."""
    barrier = Barrier(2)

    def meet():
        with suppress(BrokenBarrierError):
            barrier.wait(TOGETHER)

    return meet


def together(*functions):
    """What the functions return when they run at the same time."""
    found = {}
    threads = [Thread(target=lambda f=f: found.update({f: f()})) for f in functions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [found[f] for f in functions]


class SlowSubmitit(Submitit):
    """An sbatch during which another command may call its own."""

    def __init__(self, meet):
        super().__init__()
        self.meet = meet

    @contextmanager
    def batch(self):
        self.meet()
        with super().batch():
            yield


def test_two_commands_that_detach_at_the_same_time_submit_each_run_once(job, queue, meeting):
    library, jobs = SlowSubmitit(meeting), jobs_of(job, 2)
    queue.write_text("1_0 PENDING\n1_1 PENDING\n")
    one, other = together(*(lambda: Slurm(library, ExecutorSettings()).detach(jobs) for _ in range(2)))
    assert [len(array) for array in library.arrays] == [2]
    assert sorted([len(one.submitted), len(other.submitted)]) == [0, 2]
    assert sorted([len(one.queued), len(other.queued)]) == [0, 2]


def test_a_command_waits_for_a_job_that_another_one_submitted_after_both_had_started(job, queue):
    library = Submitit()
    executors = [Slurm(library, ExecutorSettings()) for _ in range(2)]
    for executor in executors:
        executor.start(job, False)
    queue.write_text("1_0 RUNNING\n")
    assert [executor.wait(0) for executor in executors] == [[], []]
    assert len(library.arrays) == 1
    executors[1].stop()
    assert not (queue.parent / "cancelled").exists(), "it is the job of the first command"
    (job.study / ".slurm" / "1_0_0_result.pkl").touch()
    assert ended(executors[0]) == [JobExit(job, SUCCEEDED)]


def test_two_commands_that_forget_jobs_of_one_array_leave_none(job, queue, meeting, monkeypatch):
    library, jobs = Submitit(), jobs_of(job, 2)
    Slurm(library, ExecutorSettings()).detach(jobs)
    queue.write_text("1_0 RUNNING\n1_1 RUNNING\n")
    executors = [Slurm(library, ExecutorSettings()) for _ in jobs]
    for executor, one in zip(executors, jobs, strict=True):
        executor.start(one, False)
        (job.study / ".slurm" / f"1_{jobs.index(one)}_0_result.pkl").touch()
    write = slurm_queue.write_atomically

    def write_together(*given):
        meeting()
        write(*given)

    monkeypatch.setattr(slurm_queue, "write_atomically", write_together)
    assert together(*(lambda e=e: e.wait(0) for e in executors)) == [[JobExit(one, SUCCEEDED)] for one in jobs]
    assert recorded_jobs(job.study) == {}
