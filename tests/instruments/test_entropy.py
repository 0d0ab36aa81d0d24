"""Attention entropy, by an independent computation."""

import math

import pytest
import torch
from torch.testing import assert_close

from tfstudy.instruments.entropy import entropy_share


def one_hot(*keys, count=4):
    return torch.nn.functional.one_hot(torch.tensor(keys), count).float()[None, None]


def test_uniform_attention_has_the_entropy_share_1_whatever_the_number_of_keys():
    uniform = torch.ones(3, 3).tril()
    uniform = (uniform / uniform.sum(-1, keepdim=True))[None, None]
    assert_close(entropy_share(uniform), torch.ones(1, 1, dtype=torch.double))


def test_attention_to_one_key_has_the_entropy_0():
    assert entropy_share(one_hot(2, 0)).tolist() == [[0.0]]


def test_the_share_is_the_mean_over_queries_that_see_several_keys():
    weights = torch.tensor([[1.0, 0.0, 0.0], [0.9, 0.1, 0.0], [0.2, 0.3, 0.5]])[None, None]
    shares = [-sum(w * math.log(w) for w in row) / math.log(len(row)) for row in ((0.9, 0.1), (0.2, 0.3, 0.5))]
    assert entropy_share(weights).item() == pytest.approx(sum(shares) / 2, abs=1e-6)
