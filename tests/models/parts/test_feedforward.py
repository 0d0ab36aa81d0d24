"""Feed-forward networks against their formulas, written out."""

import math

import pytest
import torch
from torch.testing import assert_close

from tests.models.reference import CLOSE, randomised
from tfstudy.models.parts.transformer_layers import feedforward
from tfstudy.models.transformer import Transformer


def config(**changes):
    return Transformer.Config(dim=6, heads=1, feedforward=10, dropout=0.0, **changes)


def phi(x):
    return 0.5 * (1 + torch.erf(x / math.sqrt(2)))


@pytest.mark.parametrize(
    ("activation", "function"),
    [
        ("relu", lambda x: x * (x > 0)),
        ("gelu", lambda x: x * phi(x)),
        ("swiglu", lambda x: x / (1 + torch.exp(-x))),
        ("geglu", lambda x: x * phi(x)),
    ],
)
def test_an_activation_is_that_of_its_formula(activation, function):
    network, x = randomised(feedforward(config(activation=activation))), torch.randn(4, 6)
    inner, outer = network[0], network[-1]
    if activation.endswith("glu"):  # (g(x W) * x V) W2
        left, right = inner.weight[:10], inner.weight[10:]
        hidden = function(x @ left.T + inner.bias[:10]) * (x @ right.T + inner.bias[10:])
    else:
        hidden = function(x @ inner.weight.T + inner.bias)
    assert_close(network(x), hidden @ outer.weight.T + outer.bias, **CLOSE)


@pytest.mark.parametrize(("given", "expected"), [(None, 0.3), (0.0, 0.0), (0.6, 0.6)])
def test_dropout_behind_the_activation_is_as_elsewhere_unless_it_is_given(given, expected):
    built = Transformer.Config(dropout=0.3, activation_dropout=given)
    assert feedforward(built)[2].probability == expected
