"""Attention entropy, by an independent computation."""

import math

import pytest
import torch
from torch.testing import assert_close

from tfstudy.instruments.entropy import entropy_share


def one_hot(*keys, count=4):
    return torch.nn.functional.one_hot(torch.tensor(keys), count).float()[None, None]


def causal(count):
    return torch.ones(1, 1, count, count, dtype=torch.bool).tril()


def test_uniform_attention_has_the_entropy_share_1_whatever_the_number_of_keys():
    uniform = causal(3) / causal(3).sum(-1, keepdim=True)
    assert_close(entropy_share(uniform, causal(3)), torch.ones(1, 1, dtype=torch.double))


def test_attention_to_one_key_has_the_entropy_0():
    assert entropy_share(one_hot(2, 0), torch.ones(1, 1, 2, 4, dtype=torch.bool)).tolist() == [[0.0]]


def test_the_share_is_the_mean_over_queries_that_see_several_keys():
    weights = torch.tensor([[1.0, 0.0, 0.0], [0.9, 0.1, 0.0], [0.2, 0.3, 0.5]])[None, None]
    shares = [-sum(w * math.log(w) for w in row) / math.log(len(row)) for row in ((0.9, 0.1), (0.2, 0.3, 0.5))]
    assert entropy_share(weights, causal(3)).item() == pytest.approx(sum(shares) / 2, abs=1e-6)


def test_a_visible_key_counts_even_if_its_weight_underflows():
    scores = torch.tensor([[200.0, 200, 0, 0], [300, 0, 0, 0]])[None, None]
    shares = [entropy_share(row.softmax(-1), torch.ones_like(row, dtype=torch.bool)) for row in scores.split(1, 2)]
    assert [share.item() for share in shares] == pytest.approx([0.5, 0.0])
    assert entropy_share(scores.softmax(-1), torch.ones_like(scores, dtype=torch.bool)).item() == pytest.approx(0.25)


def test_each_head_has_a_row_at_each_layer_and_length(subject, measure):
    one = subject("transformer")
    rows = measure("head_entropy", one, split="test", examples=5)
    assert rows == measure("entropy", one, split="test", examples=5)
    assert {(row["layer"], row["head"]) for row in rows} == {(1, 1), (1, 2), (2, 1), (2, 2)}
