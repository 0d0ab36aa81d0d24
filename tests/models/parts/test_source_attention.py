"""Attention over the source, against sums written out."""

import math

import pytest
import torch
from torch.testing import assert_close

from tests.models.reference import CLOSE, randomised
from tfstudy.models.base import parameter_count
from tfstudy.models.parts import layers
from tfstudy.models.parts.source_attention import Attention, Source, attend, dot_product


@pytest.mark.parametrize("kind", ["none", "dot"])
def test_attention_without_weights_has_no_parameters(kind):
    assert parameter_count(Attention(kind, 6, 6)) == 0


def test_dot_attention_weighs_by_the_softmax_of_products_with_the_encoded_source():
    attention, encoded = Attention("dot", 2, 2), torch.tensor([[[1.0, 0.0], [0.0, 2.0]]])
    keys = attention.project(encoded[0])[None]
    found = attention(torch.tensor([[[math.log(3), 0.0]]]), Source(keys, encoded, torch.ones(1, 2) > 0))
    assert_close(found.contexts, torch.tensor([[[0.75, 0.5]]]))  # weights 3/4 and 1/4


@pytest.mark.parametrize("bound", [2**24, 1])
def test_the_weights_are_returned_where_a_model_copies(monkeypatch, bound):
    monkeypatch.setattr(layers, "MAX_ELEMENTS", bound)
    query, mask, ids = torch.randn(2, 4, 3), torch.ones(2, 5) > 0, torch.zeros(2, 5, dtype=torch.long)
    source = Source(torch.randn(2, 5, 3), torch.randn(2, 5, 7), mask)
    plain, copying = attend(query, source, dot_product), attend(query, source._replace(copied=(ids,)), dot_product)
    assert plain.weights.shape == (2, 4, 0)
    assert_close(copying.weights, dot_product(query, source.keys).softmax(-1))
    assert_close(copying.contexts, plain.contexts)


@pytest.mark.parametrize("bound", [2**24, 50, 1])
def test_contexts_are_means_weighted_by_the_softmax_of_the_scores(monkeypatch, bound):
    monkeypatch.setattr(layers, "MAX_ELEMENTS", bound)
    query, mask = torch.randn(2, 4, 3), torch.tensor([[True] * 5, [True, True, False, False, False]])
    source = Source(torch.randn(2, 5, 3), torch.randn(2, 5, 7), mask)
    got = attend(query, source, dot_product).contexts
    for row in range(2):
        keys, values = source.keys[row, mask[row]], source.values[row, mask[row]]
        assert_close(got[row], (query[row] @ keys.T).softmax(-1) @ values, **CLOSE)


@pytest.mark.parametrize("kind", ["multiplicative", "general", "dot", "additive", "none"])
def test_what_is_masked_changes_nothing(kind):
    attention, encoded = randomised(Attention(kind, 6, 6)), torch.randn(2, 5, 6)
    mask, query = torch.tensor([[True] * 3 + [False] * 2] * 2), torch.randn(2, 4, 6)
    keys = attention.project(encoded.flatten(0, 1)).view(2, 5, -1)
    with torch.no_grad():
        whole = attention(query, Source(keys, encoded, mask)).contexts
        short = attention(query, Source(keys[:, :3], encoded[:, :3], mask[:, :3])).contexts
    assert whole.shape == (2, 4, attention.width)
    assert_close(whole, short, **CLOSE)
