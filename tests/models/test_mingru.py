"""The gated linear recurrence against loops over its steps."""

import pytest
import torch
from torch.testing import assert_close

from tests.conftest import SOURCE_VOCAB, TARGET_VOCAB
from tests.models.reference import CLOSE, randomised
from tfstudy.data.vocabulary import PAD
from tfstudy.models.mingru import MinGRU, recurrence, scan


def by_steps(keep, new):
    """The recurrence, one step after the other."""
    states, state = [], torch.zeros_like(new[:, 0])
    for step in range(new.shape[1]):
        state = keep[:, step] * state + new[:, step]
        states.append(state)
    return torch.stack(states, 1)


def random_gates(length, dtype=torch.float32):
    generator = torch.Generator().manual_seed(length)
    keep = torch.rand(3, length, 5, generator=generator, dtype=dtype)
    return keep, torch.randn(3, length, 5, generator=generator, dtype=dtype)


@pytest.mark.parametrize("length", [1, 2, 3, 7, 8, 9, 64, 500])
def test_the_scan_equals_the_recurrence(length):
    keep, new = random_gates(length)
    assert_close(scan(keep, new), by_steps(keep, new))


@pytest.mark.parametrize("length", [1, 2, 5, 8])
def test_the_gradient_of_the_scan_is_that_of_the_recurrence(length):
    keep, new = random_gates(length, torch.float64)
    assert torch.autograd.gradcheck(scan, (keep.requires_grad_(), new.requires_grad_()))


def test_a_state_that_is_always_kept_stays_after_ten_thousand_steps():
    new = torch.zeros(1, 10_000, 1)
    new[0, 0] = 3
    assert_close(scan(torch.ones_like(new), new), torch.full_like(new, 3))


def stepwise(gates, state):
    """The states of minGRU, one step after the other."""
    states = []
    for gate in gates.unbind(1):
        update, candidate = gate[:, :4].sigmoid(), gate[:, 4:]
        state = (1 - update) * state + update * candidate
        states.append(state)
    return torch.stack(states, 1)


def test_the_recurrence_is_that_of_the_paper():
    gates, start, zero = torch.randn(2, 6, 8), torch.randn(2, 4), torch.zeros(2, 4)
    assert_close(recurrence(gates, start, None, False), stepwise(gates, start), **CLOSE)
    assert_close(recurrence(gates, None, None, True), stepwise(gates.flip(1), zero).flip(1), **CLOSE)


@pytest.mark.parametrize("backwards", [False, True])
def test_padding_leaves_the_state_as_it_is(backwards):
    gates, mask = torch.randn(1, 6, 8), torch.tensor([[True, True, True, False, False, False]])
    states = recurrence(gates, None, mask, backwards)
    assert_close(states[:, :3], recurrence(gates[:, :3], None, None, backwards), **CLOSE)
    if not backwards:
        assert_close(states[:, 3:], states[:, 2:3].expand(1, 3, 4))


def test_decoding_keeps_one_vector_for_each_layer_however_long_the_target(source):
    model = randomised(MinGRU(MinGRU.Config(**MinGRU.small, layers=3, attention="none"), SOURCE_VOCAB, TARGET_VOCAB))
    state = model.encode(source, source != PAD)
    for length in (1, 5, 40):
        _, after = model.decode(torch.full((3, length), 4), state)
        assert [tuple(hidden.shape) for hidden in after.hidden] == [(3, 20)] * 3
