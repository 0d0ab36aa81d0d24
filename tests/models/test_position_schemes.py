"""Every position scheme in encoder and decoder, with and without a window, in both layouts that decode with a cache."""

from itertools import product
from typing import get_args

import pytest

from tfstudy.models.parts.transformer_config import Positions
from tfstudy.models.transformer import Transformer
from tfstudy.testing.architecture_properties import (
    ArchitectureVariant,
    decoding_in_pieces_equals_teacher_forcing,
    no_logit_depends_on_a_later_token,
)

PROPERTIES = (decoding_in_pieces_equals_teacher_forcing, no_logit_depends_on_a_later_token)
REFUSED = ("decoder_only", "contextual")


SETTINGS = {
    f"{layout}, {scheme}, window {window}": {"layout": layout, "positions": scheme, "attention_window": window}
    for layout, scheme, window in product(("encoder_decoder", "decoder_only"), get_args(Positions), (0, 2))
    if (layout, scheme) != REFUSED
}


class SchemeVariant(ArchitectureVariant):
    """A Transformer with one of `SETTINGS`."""

    def build(self, **changes):
        return super().build(**SETTINGS[self.name], **changes)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow if name.endswith("window 2") else ()) for name in SETTINGS]
)
def test_a_scheme_has_the_properties_of_a_decoder(name):
    for holds in PROPERTIES:
        holds(SchemeVariant(Transformer, name))
