"""Every architecture, in each of its variants, has the properties of `tfstudy.testing`. It is found by its name."""

from itertools import product
from typing import get_args

import pytest
import torch

from tests.conftest import VARIANTS, perturbed
from tfstudy import models
from tfstudy.instruments.hooks import logits_of
from tfstudy.models.config import Positions
from tfstudy.models.tokens import Tokens
from tfstudy.models.transformer import Transformer
from tfstudy.testing.architecture_properties import PROPERTIES, ArchitectureVariant

CORE = ("decoding in pieces equals teacher forcing", "no logit depends on a later token", "padding changes nothing")
CHOSEN = (
    "transformer",
    "transformer-randomised",
    "transformer-decoder_only",
    "lstm",
    "cnn",
    "mingru",
    "deltanet-negative",
    "stack_rnn",
)
CASES = [(name, title) for name in VARIANTS for title in PROPERTIES if title in CORE or name in CHOSEN]


@pytest.mark.parametrize(("name", "title"), CASES)
def test_the_property_holds(name, title, request):
    """With the three that every variant has, the shapes in signatures are checked."""
    if title in CORE:
        request.getfixturevalue("shapes")
    arch, _ = VARIANTS[name]
    PROPERTIES[title](ArchitectureVariant(models.find(arch), name.removeprefix(arch).removeprefix("-")))


SCHEMES = {
    f"{layout}, {scheme}": {"layout": layout, "positions": scheme}
    for layout, scheme in product(("encoder_decoder", "decoder_only"), get_args(Positions))
    if (layout, scheme) != ("decoder_only", "contextual")
}


class SchemeVariant(ArchitectureVariant):
    """A Transformer with one of `SCHEMES`."""

    def build(self, **changes):
        return super().build(**SCHEMES[self.name], **changes)


@pytest.mark.parametrize("name", SCHEMES)
def test_each_position_scheme_has_the_properties_of_a_decoder(name):
    for title in CORE[:2]:
        PROPERTIES[title](SchemeVariant(Transformer, name))


@pytest.mark.parametrize("name", CHOSEN)
def test_outputs_in_bfloat16_are_close_to_those_in_float32(build, name, source, tokens):
    model = perturbed(build(name))
    expected = logits_of(model, source, tokens)
    with torch.autocast("cpu", torch.bfloat16):
        found = logits_of(model, source, tokens)
    found.float().logsumexp(-1).sum().backward()
    assert (found.float() - expected).abs().mean() < 0.05 * expected.std()
    assert all(one.grad.isfinite().all() for one in model.parameters() if one.grad is not None)


def test_several_rectangles_are_neither_continued_nor_encoded_by_a_padded_model(build, source, tokens):
    model, sources = build("transformer").eval(), Tokens.of(source, source)
    _, state = model.decode(Tokens.of(tokens, tokens[:, :3]), model.encode(sources))
    with pytest.raises(ValueError, match="after several rectangles"):
        model.decode(Tokens.of(tokens, tokens), state)
    with pytest.raises(ValueError, match="takes one rectangle, got 2"):
        build("mingru").encode(sources)
