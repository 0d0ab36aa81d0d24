"""Peak memory: counted exactly, and quadratic only for explicit attention."""

import pytest
import torch

from tfstudy import models
from tfstudy.models.parts.observing import explicit_attention
from tfstudy.performance.memory import peak_bytes, size_of

CPU, FLOAT = torch.device("cpu"), 4


def test_the_peak_is_that_of_the_tensors_that_exist_at_the_same_time():
    def work():
        a = torch.zeros(1000)
        b = a + 1  # two
        del a
        c = b.view(10, 100).mul_(2)  # no memory of its own
        d = c @ c.new_ones(100, 5)  # 1000 + 500 + 50
        return d.sum()

    assert peak_bytes(work, CPU) == 2000 * FLOAT


def test_what_existed_before_does_not_count():
    before = torch.zeros(1000)
    assert peak_bytes(lambda: before.add_(1).sum(), CPU) == FLOAT


def test_what_is_kept_for_the_gradient_counts():
    x = torch.ones(1000, requires_grad=True)
    assert peak_bytes(lambda: x.exp().exp().exp().sum(), CPU) >= 3000 * FLOAT


def test_a_tensor_and_its_views_are_one():
    x = torch.zeros(100)
    assert size_of(iter([x, x[:50], x.view(10, 10)])) == 100 * FLOAT


@pytest.mark.parametrize(("explicit", "growth"), [(True, 4), (False, 2)])
def test_memory_grows_with_the_square_of_the_length_only_if_attention_is_explicit(explicit, growth):
    transformer = models.find("transformer")
    model = transformer(transformer.Config(dim=8, heads=4, feedforward=8, dropout=0.0), 9, 9)

    def peak(length: int) -> int:
        x = torch.full((1, length), 5)
        with explicit_attention() if explicit else torch.enable_grad():
            return peak_bytes(lambda: model(x, x != 0, x).sum().backward(), CPU)

    assert peak(512) / peak(256) == pytest.approx(growth, rel=0.1)
