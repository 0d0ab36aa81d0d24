"""The engines of clusters, on libraries and a Slurm that only seem to be there; `test_clusters.py` has real ones."""

import os
import stat
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest

from tasks.errors import UserError
from tests.commands import tfstudy
from tfstudy import launchers
from tfstudy.launchers import ExecutorSettings, Request, executor, slurm, subprocess_job
from tfstudy.launchers import ray as rays
from tfstudy.launchers.job import DONE, FAILED, MEMORY, Job
from tfstudy.launchers.ray import Needs, Ray, share
from tfstudy.launchers.slurm import Slurm

GRID = ("grid", "--task", "copying", "--arch", "lstm", "--set", "data.examples=100", "--accelerator", "cpu")


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def job(tmp_path):
    path = tmp_path / "results" / "s" / "copying-copy" / "lstm" / "s0-12345678"
    path.mkdir(parents=True)
    return Job(str(path), {}, str(tmp_path / "results"), "s")


def executable(path: Path, text: str) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


# what a person is told


def test_a_misspelt_launcher_is_answered_with_the_nearest(capsys):
    assert tfstudy(*GRID, "--launcher", "slrum") == 2
    told = "error: unknown launcher 'slrum'; expected one of: local, ray, slurm; did you mean 'slurm'?\n"
    assert capsys.readouterr().err == told


@pytest.mark.parametrize(("launcher", "module"), [("ray", "ray"), ("slurm", "submitit")])
def test_a_library_that_is_not_installed_is_named_with_the_command_that_installs_it(
    launcher, module, monkeypatch, capsys
):
    monkeypatch.setitem(sys.modules, module, None)
    assert tfstudy(*GRID, "--launcher", launcher) == 2
    assert f"pip install 'tfstudy[{launcher}]'" in capsys.readouterr().err


def test_slurm_is_refused_where_there_is_none(monkeypatch):
    monkeypatch.setitem(sys.modules, "submitit", SimpleNamespace())
    monkeypatch.setenv("PATH", "")
    with pytest.raises(UserError, match="no sbatch here"):
        executor("slurm", ExecutorSettings())


def test_a_ray_cluster_that_does_not_answer_is_a_users_mistake(monkeypatch):
    monkeypatch.setattr(rays, "_library", lambda: SimpleNamespace(exceptions=SimpleNamespace(RayError=KeyError)))
    with pytest.raises(UserError, match=r"--ray\.address 127\.0\.0\.1:9: this Ray cluster can't be joined: Connection"):
        executor("ray", ExecutorSettings(ray_address="127.0.0.1:9"))


def test_the_options_reach_the_engine(monkeypatch):
    given = []

    def caught(name, settings):
        given.extend([name, settings])
        raise UserError("enough")

    monkeypatch.setattr(launchers, "executor", caught)
    monkeypatch.setenv("RAY_ADDRESS", "head:6379")
    words = ["--slurm.partition", "gpu", "--slurm.time", "30", "--slurm.gres", "shard:1", "--slurm.cpus", "4"]
    assert tfstudy(*GRID, "--launcher", "slurm", "--timeout", "9", *words, "--slurm.at-once", "7") == 2
    assert given == ["slurm", ExecutorSettings("auto", 1, "cpu", 9.0, "head:6379", Request("gpu", 30, "shard:1", 4, 7))]


# a run as a program


def test_what_slurm_and_other_launchers_leave_is_kept_from_a_run():
    kept = {"PATH": "/bin", "CUDA_VISIBLE_DEVICES": "1"}
    foreign = {"SLURM_NTASKS": "1", "SLURM_JOB_ID": "7", "MASTER_PORT": "1", "LOCAL_RANK": "1", "PMI_RANK": "0"}
    assert subprocess_job.cleaned(kept | foreign) == kept


def test_a_program_says_how_it_ended_and_what_it_said_last(job, tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "executable", str(executable(tmp_path / "python", "echo one; echo two >&2; exit 3")))
    assert subprocess_job.make(job, str(tmp_path)) == (3, "two")
    monkeypatch.setattr(sys, "executable", str(executable(tmp_path / "python", "echo one; exit 0")))
    assert subprocess_job.make(job, str(tmp_path)) == (DONE, "")


def test_a_program_that_takes_too_long_is_ended_with_all_that_it_started(job, tmp_path, monkeypatch):
    script = executable(tmp_path / "python", 'sleep 60 & echo $! > "$PWD/child"; wait')
    monkeypatch.setattr(sys, "executable", str(script))
    code, reason = subprocess_job.make(job, str(tmp_path), timeout=0.5)
    assert code < 0
    assert reason == "took longer than the timeout of 0.5 s"
    child = int((tmp_path / "child").read_text())
    deadline = time.monotonic() + 5
    while alive(child) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not alive(child)


def alive(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().split()[2] != "Z"
    except OSError:
        return False


def test_a_folder_that_a_node_does_not_have_is_named(job):
    code, reason = subprocess_job.make(job, "/nowhere")
    assert code == FAILED
    assert reason.startswith(f"can't be started on {os.uname().nodename}: ")
    assert "/nowhere" in reason


# Ray


def test_a_gpu_is_shared_by_fractions_and_alone_is_a_whole_one():
    plan = share([Needs(16, 2)], ExecutorSettings(per_device="4"))
    assert plan == (Needs(2, 0.25), Needs(2, 1), 2)
    assert plan.usual.times(Needs(16, 2)) == 8


def test_a_run_on_several_devices_gets_whole_gpus_and_threads_for_each():
    assert share([Needs(16, 4)], ExecutorSettings(devices=2)) == (Needs(8, 2), Needs(8, 2), 4)


def test_without_gpus_a_run_has_one_cpu_for_each_device_and_alone_a_node():
    assert share([Needs(8, 0), Needs(4, 0)], ExecutorSettings()) == (Needs(1, 0), Needs(4, 0), 1)
    assert share([Needs(8, 0)], ExecutorSettings(devices=2)) == (Needs(2, 0), Needs(8, 0), 1)


def test_gpus_are_left_alone_if_a_cpu_is_asked_for():
    assert share([Needs(8, 8)], ExecutorSettings(accelerator="cpu")).usual == Needs(1, 0)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (ExecutorSettings(devices=4), "--devices 4: no node of the Ray cluster has as many GPUs; the most is 2"),
        (ExecutorSettings(devices=9, accelerator="cpu"), "--devices 9: no node .* as many CPUs; the most is 8"),
    ],
)
def test_what_no_node_has_is_refused_before_it_is_waited_for(settings, message):
    with pytest.raises(UserError, match=message):
        share([Needs(8, 2), Needs(4, 1), Needs(0, 0)], settings)


class LostError(Exception):
    """Any of Ray's."""


class MemoryGoneError(Exception):
    """Ray's OutOfMemoryError."""


class Cluster:
    """As much of Ray as the engine uses; tasks end with what is told, in turn."""

    exceptions = SimpleNamespace(
        OutOfMemoryError=MemoryGoneError,
        WorkerCrashedError=LostError,
        NodeDiedError=LostError,
        LocalRayletDiedError=LostError,
        ObjectLostError=LostError,
        RayError=Exception,
    )

    def __init__(self, *ends):
        self.ends, self.asked, self.cancelled, self.down = list(ends), [], [], False

    def remote(self, function):
        def submitted(*given):
            self.asked.append((self.needs, given))
            return len(self.asked)

        def options(**needs):
            self.needs = needs
            return SimpleNamespace(remote=submitted)

        return SimpleNamespace(options=options)

    def nodes(self):
        return [{"Alive": True, "Resources": {"CPU": 4.0, "GPU": 1.0}}, {"Alive": False, "Resources": {"CPU": 64.0}}]

    def wait(self, references, num_returns, timeout):
        return references, []

    def get(self, reference):
        end = self.ends.pop(0)
        if isinstance(end, Exception):
            raise end
        return end

    def cancel(self, reference, force):
        self.cancelled.append(reference)

    def shutdown(self):
        self.down = True


def on_ray(cluster: Cluster, settings: ExecutorSettings = ExecutorSettings(per_device="2")) -> Ray:  # noqa: B008
    return Ray(cluster, share([Needs(4, 1)], settings), settings)


def test_a_job_whose_node_is_lost_is_begun_again_and_nobody_is_told(job):
    cluster = Cluster(LostError(), LostError(), (DONE, ""))
    made = on_ray(cluster)
    made.start(job, False)
    assert [list(made.wait(0)) for _ in range(3)] == [[], [], [(job, DONE, "")]]
    assert len(cluster.asked) == 3


def test_a_job_whose_nodes_are_lost_again_and_again_is_given_up(job):
    made = on_ray(Cluster(*[LostError() for _ in range(rays.LOSSES + 1)]))
    made.start(job, False)
    [end] = [end for _ in range(rays.LOSSES + 1) for end in made.wait(0)]
    assert end.code == FAILED
    assert "lost 11 times" in end.reason


def test_a_job_that_ray_ends_for_its_memory_has_failed_and_is_given_a_whole_device(job):
    cluster = Cluster(MemoryGoneError(), (DONE, ""))
    made = on_ray(cluster)
    made.start(job, False)
    assert list(made.wait(0)) == [(job, MEMORY, "")]
    made.start(job, True)
    assert [needs["num_gpus"] for needs, _ in cluster.asked] == [0.5, 1]
    assert {given[0].accelerator for _, given in cluster.asked} == {"cuda"}


def test_only_living_nodes_have_room_and_stop_cancels_what_is_at_work(job):
    cluster = Cluster()
    made = on_ray(cluster)
    assert made.at_once == 2
    for _ in range(2):
        assert made.room(job, False)
        made.start(job, False)
    assert not made.room(job, False)
    made.stop()
    assert cluster.cancelled == [1, 2]
    assert cluster.down


# Slurm


class RefusedError(Exception):
    """What submitit says if sbatch fails."""


class Submitit:
    """As much of submitit as the engine uses; all that was submitted together is an array."""

    core = SimpleNamespace(utils=SimpleNamespace(FailedJobError=RefusedError, FailedSubmissionError=RefusedError))

    def __init__(self):
        self.arrays, self.refuses, self.parameters = [], False, {}

    def AutoExecutor(self, folder, **_):  # noqa: N802
        folder.mkdir(exist_ok=True)
        return SimpleNamespace(update_parameters=self.parameters.update, batch=self.batch, submit=self.handle(folder))

    @contextmanager
    def batch(self):
        if self.refuses:
            raise RefusedError("sbatch: error: invalid partition")
        self.arrays.append([])
        yield

    def handle(self, folder):
        def submit(work):
            name = f"{len(self.arrays)}_{len(self.arrays[-1])}"
            self.arrays[-1].append(work)
            names = ("submitted.pkl", "result.pkl", "log.out", "log.err")
            keys = ("submitted_pickle", "result_pickle", "stdout", "stderr")
            paths = {key: folder / f"{name}_0_{end}" for key, end in zip(keys, names, strict=True)}
            paths["stderr"].write_text("")
            told = SimpleNamespace(folder=folder, **paths)
            return SimpleNamespace(job_id=name, paths=told, exception=lambda: None, result=lambda: (DONE, ""))

        return submit


@pytest.fixture
def queue(tmp_path, monkeypatch):
    """The file that `squeue` shows, beside one that gets the words of `scancel`."""
    executable(tmp_path / "bin" / "squeue", f"cat {tmp_path}/queue")
    executable(tmp_path / "bin" / "scancel", f'echo "$@" > {tmp_path}/cancelled')
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")
    monkeypatch.setattr(slurm, "LOOK", 0.0)
    monkeypatch.setattr(slurm, "ASK", -1.0)
    (tmp_path / "queue").write_text("")
    return tmp_path / "queue"


def ended(engine: Slurm) -> list:
    return [end for _ in range(slurm.MISSED) for end in engine.wait(0)]


def test_what_slurm_is_asked_for_follows_the_options():
    asked = slurm.parameters(ExecutorSettings(devices=2, accelerator="cuda", slurm=Request("gpu", 30, "", 8, 7)))
    assert asked == {
        "name": "tfstudy",
        "timeout_min": 30,
        "cpus_per_task": 8,
        "slurm_array_parallelism": 7,
        "slurm_additional_parameters": {"requeue": True},
        "slurm_partition": "gpu",
        "slurm_gres": "gpu:2",
    }
    assert "slurm_gres" not in slurm.parameters(ExecutorSettings())
    assert slurm.parameters(ExecutorSettings(slurm=Request(gres="shard:1")))["slurm_gres"] == "shard:1"


def test_all_jobs_are_one_array_and_later_ones_fill_it_up(job, queue):
    library = Submitit()
    made = Slurm(library, ExecutorSettings(slurm=Request(at_once=2)))
    for _ in range(5):
        assert made.room(job, False)
        made.start(job, False)
    made.wait(0)
    assert [len(array) for array in library.arrays] == [5]
    assert not made.room(job, True), "five are in the queue, and two may be at work"


def test_a_job_ends_with_what_it_left_and_leaves_no_files(job, queue):
    made = Slurm(Submitit(), ExecutorSettings())
    made.start(job, False)
    queue.write_text("1_0 RUNNING\n")
    assert ended(made) == []
    folder = Path(job.root) / "s" / ".slurm"
    (folder / "1_0_0_result.pkl").touch()
    assert ended(made) == [(job, DONE, "")]
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("state", ["PREEMPTED", "NODE_FAIL"])
def test_what_the_cluster_took_is_submitted_again_and_nobody_is_told(job, queue, state):
    library = Submitit()
    made = Slurm(library, ExecutorSettings())
    made.start(job, False)
    queue.write_text(f"1_0 {state}\n")
    assert ended(made) == []
    made.wait(0)
    assert len(library.arrays) == 2


@pytest.mark.parametrize(
    ("state", "code", "reason"),
    [("OUT_OF_MEMORY", MEMORY, ""), ("CANCELLED", FAILED, "CANCELLED; see"), ("", FAILED, "no longer in the queue")],
)
def test_what_slurm_ended_is_judged_by_its_state(job, queue, state, code, reason):
    made = Slurm(Submitit(), ExecutorSettings())
    made.start(job, False)
    queue.write_text(f"1_0 {state}\n" if state else "")
    [end] = ended(made)
    assert end.code == code
    assert reason in end.reason


def test_a_run_that_is_finished_is_done_whatever_slurm_says(job, queue):
    made = Slurm(Submitit(), ExecutorSettings())
    made.start(job, False)
    Path(job.path, "result.json").write_text("{}")
    queue.write_text("1_0 CANCELLED\n")
    assert ended(made) == [(job, DONE, "")]


def test_a_slurm_that_does_not_answer_ends_nothing(job, queue):
    made = Slurm(Submitit(), ExecutorSettings())
    made.start(job, False)
    executable(queue.parent / "bin" / "squeue", "echo 'Unable to contact slurm controller' >&2; exit 1")
    assert ended(made) == []


def test_an_array_that_slurm_refuses_is_a_users_mistake_and_later_ones_are_tried_again(job, queue):
    library = Submitit()
    library.refuses = True
    made = Slurm(library, ExecutorSettings())
    made.start(job, False)
    with pytest.raises(UserError, match="--launcher slurm: sbatch: error: invalid partition"):
        made.wait(0)
    library.refuses = False
    made.wait(0)
    library.refuses = True
    made.start(job, False)
    made.wait(0)
    library.refuses = False
    made.wait(0)
    assert [len(array) for array in library.arrays] == [1, 1]


def test_stop_cancels_what_slurm_has(job, queue):
    made = Slurm(Submitit(), ExecutorSettings())
    made.start(job, False)
    made.start(job, False)
    made.wait(0)
    made.stop()
    assert (queue.parent / "cancelled").read_text() == "1_0 1_1\n"
