"""The parallel scan against the recurrence, one step after the other."""

import pytest
import torch
from torch.testing import assert_close

from tfstudy.models.parts.recurrent import scan


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
