"""Dropout, layers in less memory, and the cache of keys and values."""

import math
from contextlib import nullcontext

import pytest
import torch
from torch.autograd.graph import saved_tensors_hooks
from torch.testing import assert_close
from torch.utils._python_dispatch import TorchDispatchMode

from tests.conftest import perturbed
from tests.models.reference import CLOSE
from tests.training.small_training import ARCHITECTURES
from tfstudy import models
from tfstudy.instruments.hooks import logits_of
from tfstudy.models import checkpointing
from tfstudy.models.attention import SPARE, Cache, KeyValue
from tfstudy.models.checkpointing import gradient_checkpointing
from tfstudy.models.dropout import Dropout, dropout_seed
from tfstudy.models.tokens import Tokens

# Dropout


@pytest.mark.parametrize("probability", [0.1, 0.5, 0.9])
def test_dropout_keeps_the_expectation_and_drops_its_share_of_elements_independently_of_neighbours(probability):
    torch.manual_seed(0)
    n = 400_001
    y = Dropout(probability)(torch.ones(n))
    dropped, variance = (y == 0).double() - probability, probability * (1 - probability)
    assert abs(dropped.mean()) < 4 * math.sqrt(variance / n)
    assert abs(y.double().mean() - 1) < 4 * math.sqrt(variance / n) / (1 - probability)
    assert_close(y[y != 0].unique(), torch.tensor([1 / (1 - probability)]), rtol=1e-4, atol=0)
    for lag in (1, 2, 3, 4, 5):
        assert abs((dropped[lag:] * dropped[:-lag]).mean()) < 4 * variance / math.sqrt(n)


# Attention in chunks


class Largest(TorchDispatchMode):
    """The largest number of elements of any tensor of numbers that an operation returns (oneDNN's memory is bytes)."""

    def __init__(self):
        super().__init__()
        self.elements = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        out = function(*args, **kwargs or {})
        for tensor in out if isinstance(out, tuple | list) else [out]:
            if isinstance(tensor, torch.Tensor) and tensor.is_floating_point():
                self.elements = max(self.elements, tensor.numel())
        return out


@torch.no_grad()
@pytest.mark.parametrize("name", ["lstm-additive", "lstm", "cnn", "transformer-relative", "transformer-contextual"])
def test_attention_in_chunks_is_the_same_and_no_tensor_of_a_long_input_is_much_larger_than_the_bound(
    monkeypatch, build, name
):
    model = perturbed(build(name, **({} if "lstm" in name else {"max_positions": 200})))
    source, tokens = torch.randint(4, 9, (6, 75)), torch.randint(4, 9, (6, 65))
    expected = logits_of(model, source, tokens)
    monkeypatch.setattr(checkpointing, "MAX_ELEMENTS", 2**17)  # all states have 6 * 75 * 80 elements at most
    with Largest() as largest:
        assert_close(logits_of(model, source, tokens), expected, **CLOSE)
    assert largest.elements < 2**18


# Gradient checkpointing

CHANGES = {  # of the configs for quick tests
    "transformer": {"attention_dropout": 0.2, "feedforward": 64},
    "lstm": {"layers": 3},
    "cnn": {"kernel": 5},
    "mingru": {"attention": "additive"},
}


def gradients(arch, enabled, seed):
    """The gradients of a model, the bytes that its forward pass keeps, and a random number drawn afterwards."""
    torch.manual_seed(0)
    cls = models.find(arch)
    model = cls(cls.Config(**{**cls.small, "dropout": 0.3, **CHANGES.get(arch, {})}), 9, 9)
    source, tokens, kept = torch.randint(4, 9, (3, 7)), torch.randint(4, 9, (3, 6)), []
    batch = Tokens.of(source, source[:2, :4]), Tokens.of(tokens, tokens[:2, :3])
    hooks = saved_tensors_hooks(lambda x: kept.append(x.numel()) or x, lambda x: x)
    with nullcontext() if seed is None else dropout_seed(seed):
        with gradient_checkpointing(enabled), hooks:
            loss = model(*batch).logsumexp(-1).sum()
        found = torch.autograd.grad(loss, list(model.parameters()))
    return found, sum(kept), torch.rand(())


@pytest.mark.parametrize(("arch", "seed"), [*((arch, 3) for arch in ARCHITECTURES), ("transformer", None)])
def test_checkpointed_layers_have_the_same_gradients_and_keep_less(arch, seed):
    expected, most, after = gradients(arch, False, seed)
    found, kept, after_too = gradients(arch, True, seed)
    assert all(torch.equal(one, other) for one, other in zip(found, expected, strict=True))
    assert kept < 0.9 * most
    assert after == after_too


# The cache


def drawn():
    return KeyValue(torch.randn(2, 3, 1, 4), torch.randn(2, 3, 1, 4))


@torch.no_grad()
def test_a_beam_uses_the_same_memory_again_but_never_that_of_a_cache_that_is_kept():
    rows, cache, places, kept = torch.tensor([1, 0]), Cache(*drawn()).append(drawn()), set(), []
    for step in range(SPARE - 2):
        cache = cache.append(drawn()).select_rows(rows)
        places.add(cache.keys.data_ptr())
        if step % 4 == 0:
            kept.append((cache, cache.keys.clone(), cache.values.clone()))
    assert len(places) <= 2 + len(kept)
    for held, keys, values in kept:
        assert torch.equal(held.keys, keys)
        assert torch.equal(held.values, values)
