"""Training on several devices and compiled training, in processes of their own."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.interrupted_runs import ARCHITECTURES, command
from tests.training.small_training import metrics
from tfstudy.runs.find import find_runs
from tfstudy.runs.store import read_result


def shell(results: str, *more: str, arch: str = "lstm") -> Path:
    """The folder of a run in a separate process, without dropout."""
    words = ["run", "scan", *command(arch)[2:], "--set", "model.dropout=0", "--set", "train.steps=20", *more]
    done = subprocess.run(
        [sys.executable, "-m", "tfstudy", *words, "--results", results],
        env=os.environ | {"OMP_NUM_THREADS": "1"}, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    [path] = find_runs(Path(results))
    return path


@pytest.mark.slow
@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_two_devices_train_as_one_does(reduction, monkeypatch):
    loss = ("--set", f"train.loss_reduction={reduction}", "--set", "train.gradient_clip_norm=5")
    one = shell("one", *loss)
    task = {"NTASKS": "1", "JOB_ID": "7", "JOB_NAME": "grid", "PROCID": "0", "LOCALID": "0", "NODELIST": "n1"}
    for name, value in task.items():  # as in a job of Slurm: its single task must not pass for the single device
        monkeypatch.setenv(f"SLURM_{name}", value)
    two = shell("two", *loss, "--devices", "2")
    assert one.name == two.name, "devices are no part of the identity"
    a, b = metrics(one), metrics(two)
    assert a.keys() == b.keys()
    for key, value in a.items():
        assert b[key] == pytest.approx(value, abs=1e-4, rel=1e-4), key
    x, y = read_result(one), read_result(two)
    assert x.train_tokens == y.train_tokens
    assert {name: split.n for name, split in x.splits.items()} == {name: split.n for name, split in y.splits.items()}


@pytest.mark.slow
@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_a_compiled_model_trains_as_an_eager_one_does(arch):
    if not shutil.which("gcc") and not shutil.which("g++"):
        pytest.skip("torch.compile needs a compiler")
    eager = metrics(shell("eager", "--set", "train.micro_batches=1", arch=arch))
    compiled = metrics(shell("compiled", "--set", "train.micro_batches=1", "--set", "train.compile=true", arch=arch))
    assert eager.keys() == compiled.keys()
    for key, value in eager.items():
        assert compiled[key] == pytest.approx(value, abs=1e-3, rel=1e-3), key
