"""Lack of memory is recognised, and validation stays within a budget of memory."""

import pytest
import torch

from tests.training.small_training import small_training, trained
from tfstudy.training import memory
from tfstudy.training.memory import attempt, within_budget


def test_lack_of_memory_is_recognised_and_other_errors_are_raised():
    def fail(error):
        raise error

    message = "[enforce fail at alloc_cpu.cpp:127] DefaultCPUAllocator: can't allocate memory: you tried to allocate 9"
    for error in (RuntimeError(message), torch.OutOfMemoryError("CUDA out of memory"), MemoryError()):
        assert attempt(lambda error=error: fail(error)) is None
    assert attempt(lambda: torch.empty(2**60, dtype=torch.uint8)) is None, "a real allocation"
    with pytest.raises(RuntimeError, match="shapes"):
        attempt(lambda: fail(RuntimeError("mat1 and mat2 shapes cannot be multiplied")))


def row_count(micro_batch):
    return sum(len(rectangle.source) for rectangle in micro_batch)


def test_a_micro_batch_within_the_budget_has_the_same_rows_and_validation_measures_the_same(monkeypatch):
    whole = trained(steps=2).trainer.callback_metrics
    monkeypatch.setattr(memory, "BUDGET", 2000)
    torch.testing.assert_close(trained(steps=2).trainer.callback_metrics, whole, atol=1e-6, rtol=0)
    assert "validation_loss" in whole
    monkeypatch.setattr("tfstudy.data.encoding.RECTANGLE_OVERHEAD", 0)
    [micro_batch] = small_training()[1].encoded["train"].batch(torch.arange(10), 1, 3).micro_batches
    parts = list(within_budget(micro_batch, lambda part: 500 * row_count(part)))
    assert [row_count(part) for part in parts] == [2, 3, 2, 3]
    rows = [[tuple(map(tuple, zip(*map(torch.Tensor.tolist, one), strict=True))) for one in part] for part in parts]
    whole_rows = [row for one in micro_batch for row in zip(*map(torch.Tensor.tolist, one), strict=True)]
    assert [row for part in rows for one in part for row in one] == whole_rows
    assert len(list(within_budget(micro_batch, lambda _: memory.BUDGET + 1))) == 10, "a single row has to do"
