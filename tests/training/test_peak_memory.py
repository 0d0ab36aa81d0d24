"""The peak of memory is measured from the last reset on."""

import sys

import pytest
import torch

from tests.training.small_training import trained
from tfstudy.training import memory
from tfstudy.training.callbacks import TrainingProgress
from tfstudy.training.memory import CLEAR, peak_mib, reset_peak

CPU = torch.device("cpu")


@pytest.mark.skipif(not sys.platform.startswith("linux") or not CLEAR.exists(), reason="needs /proc")
def test_the_peak_includes_memory_that_was_released_since_the_reset():
    reset_peak(CPU)
    before = peak_mib(CPU)
    torch.ones(80 * 2**18).sum()  # 80 MiB
    assert peak_mib(CPU) - before > 60
    reset_peak(CPU)
    assert peak_mib(CPU) - before < 40


def test_without_proc_the_peak_is_that_of_the_process(tmp_path, monkeypatch):
    for name in ("STATUS", "CLEAR"):
        monkeypatch.setattr(memory, name, tmp_path / "missing" / "file")
    reset_peak(CPU)
    assert 20 < peak_mib(CPU) < 100_000


def test_a_checkpoint_has_the_highest_peak_of_all_processes():
    bar = TrainingProgress(lambda _: None)
    trained(callbacks=[bar])
    peak = bar.state_dict()["peak_mib"]
    assert peak > 20
    bar.load_state_dict({"seconds": 0.0, "tokens": 0.0, "peak_mib": 10 * peak})
    assert bar.state_dict()["peak_mib"] == 10 * peak
    bar.load_state_dict({"seconds": 0.0, "tokens": 0.0})  # of older code
    assert bar.state_dict()["peak_mib"] >= 20
