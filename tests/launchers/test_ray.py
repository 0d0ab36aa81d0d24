"""The Ray executor on a simulated cluster; `test_clusters.py` starts a real one."""

import sys
from types import SimpleNamespace

import pytest

from tests.commands import tfstudy
from tfstudy.errors import UserError
from tfstudy.experiment.api import RunOptions
from tfstudy.launchers import ExecutorSettings, JobExit
from tfstudy.launchers import ray as rays
from tfstudy.launchers.job import FAILED, SUCCEEDED, Job
from tfstudy.launchers.ray import Ray

JOB = Job("results/s/copying-copy/lstm/s0-12345678", {})


class LostError(Exception):
    """Any of Ray's."""


class Cluster(SimpleNamespace):
    """As much of Ray as the executor uses: nodes with CPUs and GPUs, and tasks that end with these results, in turn."""

    exceptions = SimpleNamespace(RayError=LostError)

    def remote(self, function):
        def options(**needs):
            return SimpleNamespace(remote=lambda *given: self.asked.append((needs, given)) or len(self.asked))

        return SimpleNamespace(options=options)

    def nodes(self):
        living = [{"Alive": True, "Resources": {"CPU": cpus, "GPU": gpus}} for cpus, gpus in self.living]
        return [*living, {"Alive": False, "Resources": {"CPU": 64.0, "GPU": 64.0}}]

    def cluster_resources(self):
        return {"CPU": sum(cpus for cpus, _ in self.living), "GPU": sum(gpus for _, gpus in self.living)}

    def wait(self, references, num_returns, timeout):
        return references, []

    def get(self, reference):
        end = self.ends.pop(0)
        if isinstance(end, Exception):
            raise end
        return end

    def shutdown(self):
        self.living = ()


@pytest.fixture
def on_ray(monkeypatch):
    def on_ray(*ends, nodes=((4.0, 1.0),), per_device="auto", **options):
        cluster = Cluster(ends=[*ends], living=nodes, asked=[])
        monkeypatch.setattr(rays, "_joined", lambda address: cluster)
        return Ray(ExecutorSettings(per_device, options=RunOptions(**options))), cluster

    return on_ray


@pytest.mark.parametrize(
    ("asked", "parallel", "shared", "exclusive"),
    [
        ({"per_device": "4"}, 8, (1, 0.25), (1, 1)),
        ({}, 2, (1, 1), (1, 1)),
        ({"accelerator": "cpu"}, 20, (1, 0), (1, 0)),
    ],
)
def test_a_run_asks_for_a_share_of_a_gpu_or_for_whole_devices(on_ray, asked, parallel, shared, exclusive):
    executor, cluster = on_ray(nodes=((16.0, 2.0), (4.0, 0.0)), **asked)
    assert executor.max_parallel == parallel
    executor.start(JOB, False)
    executor.start(JOB, True)
    assert executor.has_room(True) == bool(shared[1] and parallel > 2), "on a CPU a retry runs alone"
    assert [(needs["num_cpus"], needs["num_gpus"]) for needs, _ in cluster.asked] == [shared, exclusive]
    assert {given[0].options.accelerator for _, given in cluster.asked} == {"cuda" if shared[1] else "cpu"}


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"accelerator": "cuda"}, "no node of the Ray cluster has a GPU"),
        ({"per_device": "2"}, "--per-device needs GPUs on Ray"),
    ],
)
def test_resources_that_no_node_has_are_refused_at_once(on_ray, asked, message):
    with pytest.raises(UserError, match=message):
        on_ray(nodes=((8.0, 0.0),), **asked)


def test_a_job_ends_with_its_code_or_with_what_ray_says(on_ray):
    executor, _ = on_ray((SUCCEEDED, ""), LostError("the worker died\nits node was lost"))
    ends = []
    for _ in range(2):
        executor.start(JOB, False)
        ends += executor.wait(0)
    assert ends == [JobExit(JOB, SUCCEEDED), JobExit(JOB, FAILED, "Ray: its node was lost")]


@pytest.mark.usefixtures("empty_folder")
def test_ray_that_is_not_installed_or_does_not_answer_is_reported(monkeypatch, capsys):
    words = ("grid", "--task", "copying", "--arch", "lstm", "--accelerator", "cpu", "--launcher", "ray")
    exceptions = SimpleNamespace(RayError=LostError)
    monkeypatch.setitem(sys.modules, "ray", SimpleNamespace(exceptions=exceptions))
    monkeypatch.setitem(sys.modules, "ray.exceptions", exceptions)
    monkeypatch.setenv("RAY_ADDRESS", "127.0.0.1:9")
    assert tfstudy(*words) == 2
    assert "RAY_ADDRESS=127.0.0.1:9: can't join this Ray cluster: Connection" in capsys.readouterr().err
    monkeypatch.setitem(sys.modules, "ray", None)
    assert tfstudy(*words) == 2
    assert capsys.readouterr().err.endswith("pip install ray\n")
