"""Dropout: its statistics, its seeds and its gradient."""

import math

import pytest
import torch
from torch.testing import assert_close

from tfstudy.models.parts.layers import Dropout, dropout_seed, same_dropout


@pytest.mark.parametrize("probability", [0.1, 0.5, 0.9])
def test_dropout_keeps_the_expectation_and_drops_its_share(probability):
    torch.manual_seed(0)
    n = 400_001
    y = Dropout(probability)(torch.ones(n))
    error = math.sqrt(probability * (1 - probability) / n)
    assert abs((y == 0).double().mean() - probability) < 4 * error
    assert abs(y.double().mean() - 1) < 4 * error / (1 - probability)
    assert_close(y[y != 0].unique(), torch.tensor([1 / (1 - probability)]), rtol=1e-4, atol=0)


def test_dropped_elements_are_independent_of_their_neighbours():
    torch.manual_seed(0)
    n = 400_000
    dropped = (Dropout(0.3)(torch.ones(n)) == 0).double() - 0.3
    for lag in (1, 2, 3, 4, 5):
        assert abs((dropped[lag:] * dropped[:-lag]).mean()) < 4 * 0.3 * 0.7 / math.sqrt(n)


def test_dropout_in_eval_mode_is_the_identity():
    x = torch.randn(7)
    assert Dropout(0.5).eval()(x) is x
    assert Dropout(0.0)(x) is x


def test_dropout_is_reproducible_by_seed():
    def draw(seed):
        torch.manual_seed(seed)
        return Dropout(0.5)(torch.ones(101))

    assert torch.equal(draw(3), draw(3))
    assert not torch.equal(draw(3), draw(4))


@pytest.mark.parametrize("shape", [(), (1,), (3,), (5,), (2, 3, 7), (0, 4)], ids=str)
def test_dropout_takes_any_shape_and_kind_of_float(shape):
    for dtype in (torch.float32, torch.float64, torch.bfloat16):
        y = Dropout(0.5)(torch.ones(shape, dtype=dtype))
        assert y.shape == shape
        assert y.dtype == dtype
        assert set(y.flatten().tolist()) <= {0.0, 2.0}


def test_dropout_scales_the_gradient_as_it_scales_the_value():
    x = torch.ones(50, requires_grad=True)
    y = Dropout(0.5)(x)
    y.sum().backward()
    assert torch.equal(x.grad, y.detach())


def test_a_function_with_the_same_dropout_repeats_its_own_only():
    x, dropout = torch.ones(1000), Dropout(0.5)
    with dropout_seed(3):
        first, second = same_dropout(dropout), same_dropout(dropout)
        assert torch.equal(first(x), first(x))
        assert not torch.equal(first(x), second(x))
    with dropout_seed(3):
        assert torch.equal(same_dropout(dropout)(x), first(x))
