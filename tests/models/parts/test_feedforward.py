"""Feed-forward networks and mixtures of experts against their formulas, written out."""

import math

import pytest
import torch
from torch.testing import assert_close

from tests.models.reference import CLOSE, randomised
from tfstudy.models.parts.feedforward import MixtureOfExperts, feedforward, recorded_routing
from tfstudy.models.parts.listening import Site
from tfstudy.models.transformer import Transformer

SITE = Site("encoder", 1)


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


@pytest.mark.parametrize("chosen", [1, 2, 3])
def test_a_mixture_is_the_sum_of_the_most_probable_experts_weighted_by_their_probability(chosen):
    experts, x = randomised(MixtureOfExperts(config(experts=3, experts_per_token=chosen))), torch.randn(5, 6)
    expected = []
    for row in x:
        probabilities = (experts.router.weight @ row).exp()
        probabilities = probabilities / probabilities.sum()
        best = sorted(range(3), key=lambda e: -probabilities[e].item())[:chosen]
        expected.append(sum(probabilities[e] * experts.experts[e](row) for e in best))
    assert_close(experts(x, SITE), torch.stack(expected), **CLOSE)


def test_the_router_learns_even_if_a_token_has_one_expert_only():
    experts = randomised(MixtureOfExperts(config(experts=3)))
    experts(torch.randn(5, 6), SITE).sum().backward()
    assert experts.router.weight.grad.abs().max() > 1e-3


def test_routing_counts_the_load_and_the_balancing_loss_is_least_when_it_is_even():
    experts = MixtureOfExperts(config(experts=2, expert_balance=0.5))
    experts.router.weight = torch.nn.Parameter(torch.tensor([[1.0, 0, 0, 0, 0, 0], [0, 1.0, 0, 0, 0, 0]]))
    x = torch.eye(6)[[0, 0, 0, 1]] * 20  # nearly certain choices: three rows for one expert, one for the other
    with recorded_routing() as routings:
        experts(x, SITE)
        experts(x[2:], SITE)
    uneven, even = routings
    assert uneven.site == SITE
    assert_close(uneven.load, torch.tensor([0.75, 0.25]))
    assert_close(uneven.loss.item(), 0.5 * 4 * 2 * (0.75**2 + 0.25**2), atol=1e-4, rtol=0)  # weight, rows, experts
    assert_close(even.loss.item(), 0.5 * 2, atol=1e-4, rtol=0)


def test_a_routing_of_some_positions_is_that_of_their_inputs():
    experts, x = randomised(MixtureOfExperts(config(experts=2))), torch.randn(5, 6)
    mask = torch.tensor([True, False, True, True, False])
    with recorded_routing() as routings:
        experts(x, SITE)
        experts(x[mask], SITE)
    some, expected = routings[0].only(mask), routings[1]
    assert (some.positions, routings[0].positions) == (3, 5)
    assert_close(some.load, expected.load)
    assert_close(some.loss, expected.loss)
    assert routings[0].only(mask & False).loss == 0


def test_in_mixed_precision_the_sum_keeps_the_precision_of_its_input():
    # each token has all experts: rounding could change which ones it has otherwise, and so its whole output
    experts, x = randomised(MixtureOfExperts(config(experts=2, experts_per_token=2))), torch.randn(5, 6)
    with torch.autocast("cpu", torch.bfloat16):
        found = experts(x, SITE)
    assert found.dtype == torch.float32
    assert_close(found, experts(x, SITE), atol=0.1, rtol=0.1)


def test_without_a_listener_nothing_is_recorded():
    with recorded_routing() as routings:
        pass
    MixtureOfExperts(config(experts=2))(torch.randn(3, 6), SITE)
    assert routings == []
