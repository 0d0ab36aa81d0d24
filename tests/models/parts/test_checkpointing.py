"""Gradient checkpointing changes no gradient and keeps less for the backward pass."""

from contextlib import nullcontext

import pytest
import torch
from torch.autograd.graph import saved_tensors_hooks

from tests.training.small_training import ARCHITECTURES
from tfstudy import models
from tfstudy.models.parts.layers import Dropout, dropout_seed, gradient_checkpointing, run_layer
from tfstudy.models.parts.tokens import RaggedGroup

CHANGES = {  # of the configs for quick tests
    "transformer": {"attention_dropout": 0.2, "feedforward": 64},
    "lstm": {"layers": 3},
    "cnn": {"kernel": 5},
    "mingru": {"attention": "additive"},
}


def groups():
    source, tokens = torch.randint(4, 9, (3, 7)), torch.randint(4, 9, (3, 6))
    return [RaggedGroup(source, source > 0, tokens), RaggedGroup(source[:2, :4], source[:2, :4] > 0, tokens[:2, :3])]


def gradients(arch, enabled, seed):
    """The gradients of a model, the bytes that its forward pass keeps, and a random number drawn afterwards."""
    torch.manual_seed(0)
    cls = models.find(arch)
    model = cls(cls.Config(**{**cls.small, "dropout": 0.3, **CHANGES[arch]}), 9, 9)
    batch, kept = groups(), []
    hooks = saved_tensors_hooks(lambda x: kept.append(x.numel()) or x, lambda x: x)
    with nullcontext() if seed is None else dropout_seed(seed):
        with gradient_checkpointing(enabled), hooks:
            loss = model.forward_groups(batch).logsumexp(-1).sum()
        found = torch.autograd.grad(loss, list(model.parameters()))
    return found, sum(kept), torch.rand(())


@pytest.mark.parametrize("seed", [None, 3])
@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_checkpointed_layers_have_the_same_gradients_and_keep_less(arch, seed):
    expected, most, after = gradients(arch, False, seed)
    found, kept, after_too = gradients(arch, True, seed)
    assert all(torch.equal(one, other) for one, other in zip(found, expected, strict=True))
    assert kept < 0.9 * most
    assert after == after_too


def test_a_layer_is_computed_again_in_the_backward_pass_only_if_enabled():
    calls, x, dropout = [], torch.ones(100, requires_grad=True), Dropout(0.5)

    def layer(x):
        calls.append(dropout(x))
        return calls[-1].exp().sum()

    for enabled, count in ((False, 1), (True, 2)):
        calls.clear()
        with dropout_seed(0), gradient_checkpointing(enabled):
            run_layer(layer, x).backward()
        assert len(calls) == count
        assert all(torch.equal(one, calls[0]) for one in calls)


def test_without_gradients_nothing_is_computed_again():
    with gradient_checkpointing(), torch.no_grad():
        assert run_layer(lambda x: x + 1, torch.ones(2)).tolist() == [2, 2]
