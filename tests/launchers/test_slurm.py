"""The Slurm executor on a simulated queue; `test_slurm_cluster.py` starts a real one."""

import os
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.example_jobs import executable
from tests.example_study import finish_run
from tfstudy.errors import UserError
from tfstudy.launchers import ExecutorSettings, JobExit, SlurmRequest, slurm
from tfstudy.launchers.job import FAILED, OUT_OF_MEMORY, SUCCEEDED, Job
from tfstudy.launchers.slurm import Slurm
from tfstudy.launchers.slurm_queue import check_private, recorded_jobs


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def job(tmp_path):
    path = tmp_path / "results" / "s" / "copying-copy" / "lstm" / "s0-12345678"
    path.mkdir(parents=True)
    return Job(str(path), {})


class RefusedError(Exception):
    """What submitit says if sbatch fails."""


class Submitit:
    """As much of submitit as the executor uses; all that was submitted together is an array."""

    result = SUCCEEDED, ""
    core = SimpleNamespace(utils=SimpleNamespace(FailedJobError=RefusedError, FailedSubmissionError=RefusedError))

    def __init__(self):
        self.arrays, self.refuses, self.parameters, self.dependencies = [], False, {}, []

    def AutoExecutor(self, folder, **_):  # noqa: N802
        folder.mkdir(exist_ok=True)
        return SimpleNamespace(update_parameters=self.parameters.update, batch=self.batch, submit=self.handle(folder))

    @contextmanager
    def batch(self):
        if self.refuses:
            raise RefusedError("sbatch: error: invalid partition")
        self.arrays.append([])
        self.dependencies.append(self.parameters["slurm_dependency"])
        yield

    def handle(self, folder):
        def submit(work):
            name = f"{len(self.arrays)}_{len(self.arrays[-1])}"
            self.arrays[-1].append(work)
            return self.SlurmJob(folder, name)

        return submit

    def SlurmJob(self, folder, job_id):  # noqa: N802
        names = ("submitted.pkl", "result.pkl", "log.out", "log.err")
        keys = ("submitted_pickle", "result_pickle", "stdout", "stderr")
        paths = {key: folder / f"{job_id}_0_{end}" for key, end in zip(keys, names, strict=True)}
        paths["stderr"].write_text("")
        paths = SimpleNamespace(folder=folder, **paths)
        return SimpleNamespace(job_id=job_id, paths=paths, exception=lambda: None, result=lambda: self.result)


@pytest.fixture
def queue(tmp_path, monkeypatch):
    """The file that `squeue` shows, beside one that gets the words of `scancel`."""
    executable(tmp_path / "bin" / "squeue", f"cat {tmp_path}/queue")
    executable(tmp_path / "bin" / "scancel", f'echo "$@" > {tmp_path}/cancelled')
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")
    monkeypatch.setattr(slurm, "POLL_SECONDS", 0.0)
    monkeypatch.setattr(slurm, "QUEUE_SECONDS", -1.0)
    (tmp_path / "queue").write_text("")
    return tmp_path / "queue"


def ended(executor: Slurm) -> list:
    return [end for _ in range(slurm.MAX_MISSED) for end in executor.wait(0)]


def test_all_jobs_are_one_array_and_later_ones_fill_the_queue(job, queue):
    library = Submitit()
    executor = Slurm(library, ExecutorSettings(slurm=SlurmRequest(max_parallel=2)))
    for _ in range(5):
        assert executor.has_room(job, False)
        executor.start(job, False)
    executor.wait(0)
    assert [len(array) for array in library.arrays] == [5]
    assert not executor.has_room(job, True), "five are in the queue, and two may be at work"


def test_a_job_ends_with_its_result_file_and_leaves_no_files(job, queue):
    executor = Slurm(Submitit(), ExecutorSettings())
    executor.start(job, False)
    queue.write_text("1_0 RUNNING\n")
    assert ended(executor) == []
    folder = job.study / ".slurm"
    (folder / "1_0_0_result.pkl").touch()
    assert ended(executor) == [JobExit(job, SUCCEEDED)]
    assert [path.name for path in folder.iterdir()] == [".lock"]


@pytest.mark.parametrize("state", ["PREEMPTED", "NODE_FAIL"])
def test_a_preempted_job_is_submitted_again_without_a_report(job, queue, state):
    library = Submitit()
    executor = Slurm(library, ExecutorSettings())
    executor.start(job, False)
    queue.write_text(f"1_0 {state}\n")
    assert ended(executor) == []
    executor.wait(0)
    assert len(library.arrays) == 2


@pytest.mark.parametrize(
    ("state", "code", "reason"),
    [
        ("OUT_OF_MEMORY", OUT_OF_MEMORY, ""),
        ("CANCELLED", FAILED, "CANCELLED; see"),
        ("", FAILED, "no longer in the queue"),
    ],
)
def test_a_lost_job_is_judged_by_its_state(job, queue, state, code, reason):
    executor = Slurm(Submitit(), ExecutorSettings())
    executor.start(job, False)
    queue.write_text(f"1_0 {state}\n" if state else "")
    [end] = ended(executor)
    assert end.code == code
    assert reason in end.reason


def test_a_run_with_a_result_succeeded_whatever_slurm_says(job, queue):
    executor = Slurm(Submitit(), ExecutorSettings())
    executor.start(job, False)
    finish_run(Path(job.path))
    queue.write_text("1_0 CANCELLED\n")
    assert ended(executor) == [JobExit(job, SUCCEEDED)]


def test_a_slurm_that_does_not_answer_ends_nothing(job, queue):
    executor = Slurm(Submitit(), ExecutorSettings())
    executor.start(job, False)
    executable(queue.parent / "bin" / "squeue", "echo 'Unable to contact slurm controller' >&2; exit 1")
    assert ended(executor) == []


def test_a_refused_first_array_is_reported_and_later_ones_are_submitted_again(job, queue):
    library = Submitit()
    library.refuses = True
    executor = Slurm(library, ExecutorSettings())
    executor.start(job, False)
    with pytest.raises(UserError, match="--launcher slurm: sbatch: error: invalid partition"):
        executor.wait(0)
    library.refuses = False
    executor.wait(0)
    library.refuses = True
    executor.start(job, False)
    executor.wait(0)
    library.refuses = False
    executor.wait(0)
    assert [len(array) for array in library.arrays] == [1, 1]


def test_stop_cancels_the_submitted_jobs(job, queue):
    executor = Slurm(Submitit(), ExecutorSettings())
    executor.start(job, False)
    executor.start(job, False)
    executor.wait(0)
    executor.stop()
    assert (queue.parent / "cancelled").read_text() == "1_0 1_1\n"


def jobs_of(job: Job, count: int) -> list[Job]:
    """Jobs of one study."""
    return [job._replace(path=str(Path(job.path).with_name(f"s{seed}-12345678"))) for seed in range(count)]


def test_detached_jobs_are_submitted_as_arrays_that_run_one_after_another(job, queue):
    library = Submitit()
    executor = Slurm(library, ExecutorSettings(slurm=SlurmRequest(array_size=2)))
    detached = executor.detach(jobs_of(job, 5))
    assert list(detached.submitted) == ["1_0", "1_1", "2_0", "2_1", "3_0"]
    assert detached.queued == {}
    assert library.dependencies == [None, "afterany:1", "afterany:2"]
    assert {work.attempts for array in library.arrays for work in array} == {2}, "nobody else retries them"
    executor.stop()
    assert not (queue.parent / "cancelled").exists()


def test_the_next_command_waits_for_detached_jobs_and_submits_none_again(job, queue):
    library = Submitit()
    Slurm(library, ExecutorSettings()).detach(jobs_of(job, 2))
    queue.write_text("1_0 RUNNING\n1_1 PENDING\n")
    again = Slurm(library, ExecutorSettings()).detach(jobs_of(job, 3))
    assert (list(again.queued), list(again.submitted)) == (["1_0", "1_1"], ["2_0"])
    queue.write_text("1_0 RUNNING\n1_1 PENDING\n2_0 PENDING\n")
    executor = Slurm(library, ExecutorSettings(slurm=SlurmRequest(max_parallel=1)))
    for one in jobs_of(job, 3):
        assert executor.has_room(one, False), "it is in the queue already"
        executor.start(one, False)
    assert ended(executor) == []
    assert [len(array) for array in library.arrays] == [2, 1]
    (job.study / ".slurm" / "1_0_0_result.pkl").touch()
    assert ended(executor) == [JobExit(jobs_of(job, 1)[0], SUCCEEDED)]
    executor.stop()
    assert not (queue.parent / "cancelled").exists(), "Ctrl-C leaves what was detached"


def test_a_detached_job_that_failed_is_reported_to_the_next_command_and_runs_again(job, queue):
    library = Submitit()
    Slurm(library, ExecutorSettings()).detach([job])
    (job.study / ".slurm" / "1_0_0_result.pkl").touch()
    library.result = FAILED, "ValueError"
    executor = Slurm(library, ExecutorSettings())
    executor.start(job, False)
    assert ended(executor) == [JobExit(job, FAILED, "ValueError")]
    executor.start(job, False)
    executor.wait(0)
    assert len(library.arrays) == 2
    assert list(recorded_jobs(job.study).values()) == ["2_0"]


def test_a_detached_job_that_failed_or_left_the_queue_is_submitted_again_by_detach(job, queue):
    library = Submitit()
    Slurm(library, ExecutorSettings()).detach(jobs_of(job, 2))
    (job.study / ".slurm" / "1_0_0_result.pkl").touch()
    again = Slurm(library, ExecutorSettings()).detach(jobs_of(job, 2))
    assert (list(again.submitted), again.queued) == (["2_0", "2_1"], {})


def test_the_files_of_detached_jobs_that_finished_are_removed_by_the_next_command(job, queue):
    library = Submitit()
    first, second = jobs_of(job, 2)
    Slurm(library, ExecutorSettings()).detach([first, second])
    (job.study / ".slurm" / "1_0_0_result.pkl").touch()
    finish_run(Path(first.path))
    queue.write_text("1_1 PENDING\n")
    assert list(Slurm(library, ExecutorSettings()).detach([second]).queued) == ["1_1"]
    assert [path.name for path in (job.study / ".slurm").glob("1_0_*")] == []
    assert recorded_jobs(job.study) == {second.name: "1_1"}


def test_jobs_are_not_submitted_while_slurm_does_not_answer_for_those_before(job, queue):
    library = Submitit()
    Slurm(library, ExecutorSettings()).detach([job])
    executable(queue.parent / "bin" / "squeue", "exit 1")
    with pytest.raises(UserError, match="squeue does not answer"):
        Slurm(library, ExecutorSettings()).detach([job])
    assert len(library.arrays) == 1


def test_an_array_that_slurm_refuses_leaves_those_before_it(job, queue):
    library = Submitit()
    record = slurm.record_array
    executor = Slurm(library, ExecutorSettings(slurm=SlurmRequest(array_size=2)))

    def refuse_the_next(*given):
        record(*given)
        library.refuses = True

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(slurm, "record_array", refuse_the_next)
        with pytest.raises(UserError, match="invalid partition; 2 runs before it were submitted"):
            executor.detach(jobs_of(job, 3))
    assert len(recorded_jobs(job.study)) == 2


@pytest.mark.parametrize("mode", [0o770, 0o707])
def test_a_folder_of_pickles_that_others_can_write_is_refused(tmp_path, mode):
    check_private(tmp_path / "study/.slurm")
    assert (tmp_path / "study/.slurm").stat().st_mode & 0o777 == 0o700
    (tmp_path / "study/.slurm").chmod(mode)
    with pytest.raises(UserError, match="writable by you only"):
        check_private(tmp_path / "study/.slurm")
