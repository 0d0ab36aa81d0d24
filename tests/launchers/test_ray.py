"""The Ray executor on a simulated cluster; `test_ray_cluster.py` starts a real one."""

from types import SimpleNamespace

import pytest

from tfstudy.errors import UserError
from tfstudy.experiment.options import RunOptions
from tfstudy.launchers import ExecutorSettings, JobExit
from tfstudy.launchers import ray as rays
from tfstudy.launchers.job import FAILED, OUT_OF_MEMORY, SUCCEEDED, Job
from tfstudy.launchers.ray import Ray, Resources, allocate


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def job(tmp_path):
    path = tmp_path / "results" / "s" / "copying-copy" / "lstm" / "s0-12345678"
    path.mkdir(parents=True)
    return Job(str(path), {})


def settings(**options) -> ExecutorSettings:
    return ExecutorSettings(options=RunOptions(**options))


def test_a_gpu_is_shared_by_fractions_and_exclusive_is_a_whole_one():
    plan = allocate([Resources(16, 2)], ExecutorSettings(per_device="4"))
    assert plan == (Resources(2, 0.25), Resources(2, 1), 2)
    assert plan.shared.fits(Resources(16, 2)) == 8


def test_a_run_on_several_devices_gets_whole_gpus_and_threads_for_each():
    assert allocate([Resources(16, 4)], settings(devices=2)) == (
        Resources(8, 2),
        Resources(8, 2),
        4,
    )


def test_without_gpus_a_run_has_one_cpu_for_each_device_and_exclusive_a_node():
    assert allocate([Resources(8, 0), Resources(4, 0)], ExecutorSettings()) == (Resources(1, 0), Resources(4, 0), 1)
    assert allocate([Resources(8, 0)], settings(devices=2)) == (
        Resources(2, 0),
        Resources(8, 0),
        1,
    )


def test_no_gpu_is_used_if_the_accelerator_is_the_cpu():
    assert allocate([Resources(8, 8)], settings(accelerator="cpu")).shared == Resources(1, 0)


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (settings(devices=4), "--devices 4: a node of the Ray cluster has at most 2 GPUs"),
        (settings(devices=9, accelerator="cpu"), "--devices 9: .* at most 8 CPUs"),
    ],
)
def test_resources_that_no_node_has_are_refused_at_once(asked, message):
    with pytest.raises(UserError, match=message):
        allocate([Resources(8, 2), Resources(4, 1), Resources(0, 0)], asked)


class LostError(Exception):
    """Any of Ray's."""


class MemoryGoneError(Exception):
    """Ray's OutOfMemoryError."""


class Cluster:
    """As much of Ray as the executor uses; tasks end with these results, in turn."""

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


def on_ray(cluster: Cluster) -> Ray:
    halves = ExecutorSettings(per_device="2")
    return Ray(cluster, allocate([Resources(4, 1)], halves), halves)


def test_a_job_whose_node_is_lost_is_started_again_without_a_report(job):
    cluster = Cluster(LostError(), LostError(), (SUCCEEDED, ""))
    executor = on_ray(cluster)
    executor.start(job, False)
    assert [list(executor.wait(0)) for _ in range(3)] == [[], [], [JobExit(job, SUCCEEDED)]]
    assert len(cluster.asked) == 3


def test_a_job_that_loses_its_node_too_often_fails(job):
    executor = on_ray(Cluster(*[LostError() for _ in range(rays.MAX_LOSSES + 1)]))
    executor.start(job, False)
    [end] = [end for _ in range(rays.MAX_LOSSES + 1) for end in executor.wait(0)]
    assert end.code == FAILED
    assert "lost 11 times" in end.reason


def test_a_job_that_ray_kills_for_its_memory_is_retried_on_a_whole_device(job):
    cluster = Cluster(MemoryGoneError(), (SUCCEEDED, ""))
    executor = on_ray(cluster)
    executor.start(job, False)
    assert list(executor.wait(0)) == [JobExit(job, OUT_OF_MEMORY)]
    executor.start(job, True)
    assert [needs["num_gpus"] for needs, _ in cluster.asked] == [0.5, 1]
    assert {given[0].options.accelerator for _, given in cluster.asked} == {"cuda"}


def test_only_living_nodes_have_room_and_stop_cancels_running_jobs(job):
    cluster = Cluster()
    executor = on_ray(cluster)
    assert executor.max_parallel == 2
    for _ in range(2):
        assert executor.has_room(job, False)
        executor.start(job, False)
    assert not executor.has_room(job, False)
    executor.stop()
    assert cluster.cancelled == [1, 2]
    assert cluster.down
