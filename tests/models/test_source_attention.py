"""Attention over the source, against sums written out."""

import pytest
import torch
from torch.testing import assert_close

from tests.models.reference import CLOSE, randomised
from tfstudy.models import chunks
from tfstudy.models.base import parameter_count
from tfstudy.models.source_attention import Attention, Source, attend, dot_product


def test_attention_none_has_no_parameters():
    assert parameter_count(Attention("none", 6, 12)) == 0


@pytest.mark.parametrize("bound", [2**24, 50, 1])
def test_contexts_are_means_weighted_by_the_softmax_of_the_scores(monkeypatch, bound):
    monkeypatch.setattr(chunks, "MAX_ELEMENTS", bound)
    query, mask = torch.randn(2, 4, 3), torch.tensor([[True] * 5, [True, True, False, False, False]])
    source = Source(torch.randn(2, 5, 3), torch.randn(2, 5, 7), mask)
    got = attend(query, source, dot_product)
    for row in range(2):
        keys, values = source.keys[row, mask[row]], source.values[row, mask[row]]
        assert_close(got[row], (query[row] @ keys.T).softmax(-1) @ values, **CLOSE)


@pytest.mark.parametrize("kind", ["multiplicative", "general", "additive", "none"])
def test_what_is_masked_changes_nothing(kind):
    attention, encoded = randomised(Attention(kind, 6, 12)), torch.randn(2, 5, 12)
    mask, query = torch.tensor([[True] * 3 + [False] * 2] * 2), torch.randn(2, 4, 6)
    keys = attention.project(encoded.flatten(0, 1)).view(2, 5, -1)
    with torch.no_grad():
        whole = attention(query, Source(keys, encoded, mask))
        short = attention(query, Source(keys[:, :3], encoded[:, :3], mask[:, :3]))
    assert whole.shape == (2, 4, attention.width)
    assert_close(whole, short, **CLOSE)
