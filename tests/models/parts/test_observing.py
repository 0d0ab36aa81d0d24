"""Attention weights and hidden states are recorded as they are computed; what an observer returns is computed with."""

import pytest
import torch
from torch.testing import assert_close

from tests.conftest import perturbed
from tests.models.reference import CLOSE
from tfstudy.data.encoding import PAD
from tfstudy.errors import UserError
from tfstudy.models.base import Model
from tfstudy.models.config import ModelConfig
from tfstudy.models.parts import attention
from tfstudy.models.parts.observing import Site, joined, observing, record_states, recorded_attention
from tfstudy.models.parts.tokens import RaggedGroup

NAMES = ["transformer", "cnn", "mingru", "lstm-input_feeding", "lstm-tanh"]
ATTENDING = [*NAMES, "mingru-hybrid", "transformer-decoder_only", "transformer-randomised", "transformer-share_layers"]


def listened(model, source, tokens):
    """The logits and the weights of each site, with teacher forcing."""
    with recorded_attention() as recorded, torch.no_grad():
        logits = model(source, source != PAD, tokens)
    return logits, joined(recorded)


@pytest.fixture(params=ATTENDING)
def model(request, build):
    return perturbed(build(request.param))


def test_weights_of_visible_keys_sum_to_1_and_no_other_key_has_any(model, source, tokens):
    logits, maps = listened(model, source, tokens)
    assert maps
    assert_close(logits, model(source, source != PAD, tokens), **CLOSE)
    padding, later = source == PAD, torch.ones(7, 7, dtype=torch.bool).triu(1)
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
    with recorded_attention() as recorded, torch.no_grad():
        state = model.encode(source, source != PAD)
        for piece in tokens.split(sizes, 1):
            _, state = model.decode(piece, state)
    pieces = joined(recorded)
    assert pieces.keys() == expected.keys()
    for site, weights in expected.items():
        assert_close(pieces[site], weights, **CLOSE)


def test_only_while_somebody_listens_is_the_fused_kernel_not_used(transformer, source, tokens, monkeypatch):
    calls, fused = [], attention.scaled_dot_product_attention
    monkeypatch.setattr(attention, "scaled_dot_product_attention", lambda *a, **b: calls.append(1) or fused(*a, **b))
    listened(transformer, source, tokens)
    assert not calls
    with recorded_attention() as recorded:
        pass
    before = transformer(source, source != PAD, tokens)
    assert len(calls) == 6
    assert recorded == []
    assert torch.equal(before, transformer(source, source != PAD, tokens))


# Hidden states


@pytest.fixture
def group(source, tokens):
    return RaggedGroup(source, source != PAD, tokens)


@pytest.mark.parametrize("name", NAMES)
def test_embeddings_and_the_outputs_of_all_layers_are_recorded_for_each_token(name, build, group):
    model = perturbed(build(name))
    recorded = record_states(model, group)
    assert_close(recorded.logits, model(*group), rtol=0, atol=0)
    states = recorded.states()
    for kind, length in (("encoder", group.source.shape[1]), ("decoder", group.tokens.shape[1])):
        shapes = {site.layer: x.shape[:2] for site, x in states.items() if site.kind == kind}
        assert sorted(shapes) == list(range(len(shapes)))
        assert len(shapes) > 1
        assert set(shapes.values()) == {(len(group.source), length)}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", ["encoder", "decoder"])
def test_gradients_are_finite_differences(name, kind, build, group):
    if (name, kind) == ("cnn", "encoder"):
        pytest.skip("the CNN scales the gradient of its encoder")
    model, site, position = perturbed(build(name)).double(), Site(kind, 0), 1
    recorded = record_states(model, group)
    gradient = recorded.gradients(recorded.logits[0, -1, 4], site)[0, position]
    direction = torch.randn(len(gradient), generator=torch.Generator().manual_seed(0), dtype=torch.double)

    def moved(step):
        states = recorded.states()[site].detach().clone()
        states[0, position] += step * direction
        pieces = iter(states.split([x.numel() // len(states) // x.shape[-1] for x in recorded.calls[site]], 1))
        with observing(lambda at, x: next(pieces).reshape(x.shape) if at == site else x), torch.no_grad():
            return model(*group)[0, -1, 4]

    assert_close((moved(1e-5) - moved(-1e-5)) / 2e-5, gradient @ direction, rtol=1e-5, atol=1e-8)


def test_a_model_that_can_not_be_observed_is_refused(group):
    class Silent(Model):
        def encode(self, source, source_mask):
            return (source,)

        def decode(self, tokens, state):
            return torch.zeros(*tokens.shape, 9), state

    with pytest.raises(UserError, match="Silent"):
        record_states(Silent(ModelConfig(), 11, 9), group)
