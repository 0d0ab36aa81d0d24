"""Choosing an executor: names, packages and options."""

import sys
from types import SimpleNamespace

import pytest

from tests.commands import tfstudy
from tfstudy import launchers
from tfstudy.errors import UserError
from tfstudy.experiment.options import RunOptions
from tfstudy.launchers import ExecutorSettings, SlurmRequest, job_batch
from tfstudy.launchers import ray as rays

GRID = ("grid", "--task", "copying", "--arch", "lstm", "--set", "data.train_examples=100", "--accelerator", "cpu")


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_a_misspelt_launcher_is_answered_with_the_nearest_match(capsys):
    assert tfstudy(*GRID, "--launcher", "slrum") == 2
    error = capsys.readouterr().err
    assert "'slrum'" in error
    assert "did you mean 'slurm'" in error


@pytest.mark.parametrize(("launcher", "module"), [("ray", "ray"), ("slurm", "submitit")])
def test_a_library_that_is_not_installed_is_named_with_the_command_that_installs_it(
    launcher, module, monkeypatch, capsys
):
    monkeypatch.setitem(sys.modules, module, None)
    assert tfstudy(*GRID, "--launcher", launcher) == 2
    assert capsys.readouterr().err.endswith(f"pip install {module}\n")


def test_slurm_needs_its_programs(monkeypatch):
    monkeypatch.setitem(sys.modules, "submitit", SimpleNamespace())
    monkeypatch.setenv("PATH", "")
    with pytest.raises(UserError, match="sbatch not found"):
        launchers.executor(ExecutorSettings(launcher="slurm"))


def test_a_ray_cluster_that_does_not_answer_is_reported(monkeypatch):
    monkeypatch.setattr(rays, "_library", lambda: SimpleNamespace(exceptions=SimpleNamespace(RayError=KeyError)))
    with pytest.raises(UserError, match=r"--ray\.address 127\.0\.0\.1:9: can't join this Ray cluster: Connection"):
        launchers.executor(ExecutorSettings(ray_address="127.0.0.1:9", launcher="ray"))


def test_the_options_reach_the_executor(monkeypatch):
    given = []

    def record(settings):
        given.append(settings)
        raise UserError("recorded")

    monkeypatch.setattr(job_batch, "executor", record)
    monkeypatch.setenv("RAY_ADDRESS", "head:6379")
    words = ["--slurm.partition", "gpu", "--slurm.time", "30", "--slurm.gres", "shard:1", "--slurm.cpus", "4"]
    assert tfstudy(*GRID, "--launcher", "slurm", "--timeout", "9", *words, "--slurm.at-once", "7") == 2
    slurm = SlurmRequest("gpu", 30, "shard:1", 4, 7)
    options = RunOptions(accelerator="cpu")
    assert given == [ExecutorSettings("auto", 9.0, "head:6379", slurm, options, launcher="slurm")]
