"""Attention weights and hidden states are read by hooks; what a hook returns is computed with."""

import pytest
import torch
from torch.testing import assert_close

from tests.conftest import perturbed
from tests.models.reference import CLOSE
from tfstudy.errors import UserError
from tfstudy.instruments.hooks import Site, joined, logits_of, observing, record_states, recorded_attention
from tfstudy.models import attention
from tfstudy.models.attention import Weights
from tfstudy.models.base import PaddedModel
from tfstudy.models.config import ModelConfig
from tfstudy.models.tokens import Tokens

NAMES = ["transformer", "cnn", "mingru", "lstm-tanh"]
ATTENDING = [*NAMES, "transformer-decoder_only", "transformer-randomised", "transformer-share_layers"]


def listened(model, source, tokens):
    """The logits and the weights of each site, with teacher forcing."""
    with recorded_attention(model) as recorded, torch.no_grad():
        logits = logits_of(model, source, tokens)
    return logits, joined(recorded)


@pytest.fixture(params=ATTENDING)
def model(request, build):
    return perturbed(build(request.param))


def test_weights_of_visible_keys_sum_to_1_and_no_other_key_has_any(model, source, tokens):
    logits, maps = listened(model, source, tokens)
    assert maps
    assert_close(logits, logits_of(model, source, tokens), **CLOSE)
    padding, later = source == 0, torch.ones(7, 7, dtype=torch.bool).triu(1)
    for site, weights in maps.items():
        shapes = {"encoder": (6, 6), "decoder": (7, 7), "prefix": (7, 13), "cross": (7, 6)}
        assert weights.shape[2:] == shapes[site.kind]
        assert_close(weights.sum(-1), torch.ones(weights.shape[:3]))
        hidden = later if site.kind == "decoder" else padding[:, None, None]
        if site.kind == "prefix":  # one stack: target tokens see the source too
            hidden = torch.cat([padding[:, None, None].expand(-1, -1, 7, -1), later.expand(3, 1, 7, 7)], 3)
        assert not weights.masked_select(hidden.expand_as(weights)).any()


@pytest.mark.parametrize("sizes", [[1] * 7, [3, 3, 1]], ids=str)
def test_decoding_in_pieces_gives_the_weights_of_teacher_forcing(model, source, tokens, sizes):
    expected = listened(model, source, tokens)[1]
    with recorded_attention(model) as recorded, torch.no_grad():
        state = model.encode(Tokens.of(source))
        for piece in tokens.split(sizes, 1):
            _, state = model.decode(Tokens.of(piece), state)
    pieces = joined(recorded)
    assert pieces.keys() == expected.keys()
    for site, weights in expected.items():
        assert_close(pieces[site], weights, **CLOSE)


def test_only_while_somebody_listens_is_the_fused_kernel_not_used(transformer, source, tokens, monkeypatch):
    calls, fused = [], attention.scaled_dot_product_attention
    monkeypatch.setattr(attention, "scaled_dot_product_attention", lambda *a, **b: calls.append(1) or fused(*a, **b))
    listened(transformer, source, tokens)
    assert not calls
    with recorded_attention(transformer) as recorded:
        pass
    logits_of(transformer, source, tokens)
    assert len(calls) == 6
    assert recorded == []


@pytest.mark.parametrize("name", ["transformer", "lstm", "cnn", "mingru"])
def test_weights_that_a_hook_returns_are_computed_with(name, build, source, tokens):
    model = perturbed(build(name))
    before = logits_of(model, source, tokens)
    handles = [
        module.register_forward_hook(lambda _, inputs, weights: torch.zeros_like(weights))
        for module in model.modules()
        if isinstance(module, Weights)
    ]
    changed = logits_of(model, source, tokens)
    for handle in handles:
        handle.remove()
    assert (changed - before).abs().amax(-1).min() > 1e-3
    assert torch.equal(logits_of(model, source, tokens), before)


@pytest.mark.parametrize("name", NAMES)
def test_embeddings_and_the_outputs_of_all_layers_are_recorded_for_each_token(name, build, source, tokens):
    model = perturbed(build(name))
    recorded = record_states(model, source, tokens)
    assert torch.equal(recorded.logits, logits_of(model, source, tokens))
    states = recorded.states()
    for kind, length in (("encoder", 6), ("decoder", 7)):
        shapes = {site.layer: x.shape[:2] for site, x in states.items() if site.kind == kind}
        assert sorted(shapes) == list(range(len(shapes)))
        assert len(shapes) > 1
        assert set(shapes.values()) == {(3, length)}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", ["encoder", "decoder"])
def test_gradients_are_finite_differences(name, kind, build, source, tokens):
    if (name, kind) == ("cnn", "encoder"):
        pytest.skip("the CNN scales the gradient of its encoder")
    model, site, position = perturbed(build(name)).double(), Site(kind, 0), 1
    recorded = record_states(model, source, tokens)
    gradient = recorded.gradients(recorded.logits[0, -1, 4], site)[0, position]
    direction = torch.randn(len(gradient), generator=torch.Generator().manual_seed(0), dtype=torch.double)

    def moved(step):
        states = recorded.states()[site].detach().clone()
        states[0, position] += step * direction
        pieces = iter(states.split([x.numel() // len(states) // x.shape[-1] for x in recorded.calls[site]], 1))
        with observing(model, lambda at, x: next(pieces).reshape(x.shape) if at == site else None), torch.no_grad():
            return logits_of(model, source, tokens)[0, -1, 4]

    assert_close((moved(1e-5) - moved(-1e-5)) / 2e-5, gradient @ direction, rtol=1e-5, atol=1e-8)


def test_a_model_that_can_not_be_observed_is_refused(source, tokens):
    class Silent(PaddedModel):
        def encode_padded(self, source, mask):
            return (source,)

        def decode_padded(self, tokens, state):
            return torch.zeros(*tokens.shape, 9), state

    with pytest.raises(UserError, match="Silent"):
        record_states(Silent(ModelConfig(), 11, 9), source, tokens)


def test_weights_of_an_architecture_of_ones_own_may_have_no_mask_or_name_it():
    model, weights = torch.nn.ModuleDict({"weights": Weights()}), torch.full((1, 1, 2, 3), 1 / 3)
    mask = torch.tensor([True, True, False]).view(1, 1, 1, 3)
    with recorded_attention(model) as recorded:
        model["weights"](weights)
        model["weights"](weights, mask=mask)
    assert [one.visible.sum().item() for one in recorded] == [6, 4]
    assert {one.site.kind for one in recorded} == {"cross"}
