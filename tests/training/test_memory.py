"""A batch that does not fit into the memory is computed in halves, with the same loss and gradient; peaks of memory."""

import sys

import pytest
import torch

from tests.training.small_training import ARCHITECTURES, metrics, same, small_training, trained
from tfstudy.training.callbacks import TrainingProgress
from tfstudy.training.fit import fit
from tfstudy.training.loggers import MetricsFile
from tfstudy.training.memory import (
    CLEAR,
    OutOfMemoryError,
    attempt,
    in_memory,
    peak_mib,
    reset_peak,
    row_count,
)

CPU_MESSAGE = "[enforce fail at alloc_cpu.cpp:127] DefaultCPUAllocator: can't allocate memory: you tried to allocate 9"
ERRORS = [RuntimeError(CPU_MESSAGE), torch.OutOfMemoryError("CUDA out of memory"), MemoryError()]
CPU = torch.device("cpu")


def limited(module, rows: int, error: Exception = ERRORS[0]) -> list[int]:
    """Make training of more than so many rows fail; return the list of the rows of all attempts."""
    compute, attempts = module.compute_gradients.loss_of, []

    def loss(micro_batch, teacher_forcing):
        attempts.append(row_count(micro_batch))
        if attempts[-1] > rows:
            raise error
        return compute(micro_batch, teacher_forcing)

    loss.model = module.model
    module.compute_gradients.loss_of = loss
    return attempts


def test_lack_of_memory_is_recognised_and_other_errors_are_raised():
    def fail(error):
        raise error

    for error in ERRORS:
        assert attempt(lambda error=error: fail(error)) is None
    assert attempt(lambda: torch.empty(2**60, dtype=torch.uint8)) is None, "a real allocation"
    with pytest.raises(RuntimeError, match="shapes"):
        attempt(lambda: fail(RuntimeError("mat1 and mat2 shapes cannot be multiplied")))


@pytest.mark.parametrize("micro_batches", [1, 2])
@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_a_batch_that_does_not_fit_is_split_with_the_same_gradient(arch, micro_batches):
    settings = {"optimizer": "sgd", "learning_rate": 0.05, "batch_size": 24, "micro_batches": micro_batches}
    module, data = small_training(arch, **settings)
    attempts = limited(module, 3)
    fit(module, data, accelerator="cpu")
    assert {rows for rows in attempts if rows <= 3} <= {1, 2, 3}
    assert max(attempts) > 3
    assert same(module.model, trained(arch, **settings).model, atol=1e-6)


def test_a_single_example_that_does_not_fit_is_reported_with_its_size():
    module, data = small_training()
    limited(module, 0)
    with pytest.raises(OutOfMemoryError, match=r"source and target of \d+ and \d+ tokens"):
        fit(module, data, accelerator="cpu")


def test_validation_is_split_too_and_measures_the_same(tmp_path, monkeypatch):
    def measured(name, prepare=lambda module: None):
        module, data = small_training(steps=2)
        prepare(module)
        (tmp_path / name).mkdir()
        fit(module, data, accelerator="cpu", loggers=[MetricsFile(tmp_path / name / "metrics.csv")])
        return metrics(tmp_path / name)

    def fail_above_4(module):
        forward = module.model.forward

        def limited_forward(source, target):
            if not torch.is_grad_enabled() and sum(rows for rows, _ in source.shapes) > 4:
                raise ERRORS[0]
            return forward(source, target)

        module.model.forward = limited_forward

    whole = measured("whole")
    assert measured("split", fail_above_4) == pytest.approx(whole, abs=1e-6)
    sizes = []
    monkeypatch.setattr("tfstudy.training.memory.BUDGET", 2000)
    in_memory(lambda part: sizes.append(row_count(part)), [*small_training()[1].encoded["train"].batch(
        torch.arange(10)).micro_batches[0]], lambda part: 500 * row_count(part))  # fmt: skip
    assert sizes == [2, 3, 2, 3]
    assert measured("bounded") == pytest.approx(whole, abs=1e-6)


@pytest.mark.skipif(not sys.platform.startswith("linux") or not CLEAR.exists(), reason="needs /proc")
def test_the_peak_includes_memory_that_was_released_since_the_reset():
    reset_peak(CPU)
    before = peak_mib(CPU)
    torch.ones(80 * 2**18).sum()  # 80 MiB
    assert peak_mib(CPU) - before > 60
    reset_peak(CPU)
    assert peak_mib(CPU) - before < 40


def test_a_checkpoint_has_the_highest_peak_of_all_processes():
    bar = TrainingProgress(lambda _: None)
    trained(callbacks=[bar])
    peak = bar.state_dict()["peak_mib"]
    assert peak > 20
    bar.load_state_dict({"seconds": 0.0, "tokens": 0.0, "peak_mib": 10 * peak})
    assert bar.state_dict()["peak_mib"] == 10 * peak
