"""Hidden states are recorded at every depth of every architecture; what an observer returns is computed with."""

import pytest
import torch
from torch.testing import assert_close

from tests.conftest import perturbed
from tfstudy import models
from tfstudy.data.encoding import PAD
from tfstudy.errors import UserError
from tfstudy.models.base import Model
from tfstudy.models.config import ModelConfig
from tfstudy.models.parts.observing import Site, observing, record_states
from tfstudy.models.parts.tokens import RaggedGroup

BUILT_IN = models.built_in()
NAMES = [*BUILT_IN, "lstm-input_feeding", "lstm-tanh"]


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
