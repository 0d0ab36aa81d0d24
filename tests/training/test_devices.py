"""Compiled training, in processes of its own."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.interrupted_runs import ARCHITECTURES, command
from tests.training.small_training import metrics
from tfstudy.runs.find import find_runs


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
@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_a_compiled_model_trains_as_an_eager_one_does(arch):
    if not shutil.which("gcc") and not shutil.which("g++"):
        pytest.skip("torch.compile needs a compiler")
    eager = metrics(shell("eager", "--set", "train.micro_batches=1", arch=arch))
    compiled = metrics(shell("compiled", "--set", "train.micro_batches=1", "--set", "train.compile=true", arch=arch))
    assert eager.keys() == compiled.keys()
    for key, value in eager.items():
        assert compiled[key] == pytest.approx(value, abs=1e-3, rel=1e-3), key
