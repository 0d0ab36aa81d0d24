"""Settings of positions that do not fit together are refused, and each side has the scheme that it is given."""

import pytest
import torch
from pydantic import ValidationError
from torch import nn

from tfstudy.models.parts.positions.schemes import ALiBi, KerpleLog, Learned, Rotary, Sinusoidal, T5Buckets
from tfstudy.models.transformer import Transformer

Config = Transformer.Config


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"positions": "rotery"}, "rotary"),
        ({"cross_positions": "sinusoidal"}, "cross_positions"),
        ({"cross_positions": "contextual"}, "cross_positions"),
        ({"dim": 12, "heads": 4, "positions": "rotary"}, r"dim must be a multiple of 2 \* heads \(8\) with rotary"),
        (
            {"dim": 12, "heads": 4, "cross_positions": "rotary"},
            r"dim must be a multiple of 2 \* heads \(8\) with rotary",
        ),
        ({"share_embeddings": True, "decoder_positions": "none"}, "sinusoidal and none"),
        ({"randomised_positions": 511}, r"at least max_positions \(512\), but is 511"),
        ({"randomised_positions": 600, "positions": "none"}, "must be 0"),
        ({"randomised_positions": 600, "positions": "contextual", "decoder_positions": "none"}, "must be 0"),
    ],
    ids=str,
)
def test_settings_that_do_not_fit_are_refused(settings, named):
    with pytest.raises(ValidationError, match=named):
        Config(**settings)


def test_embeddings_are_shared_if_neither_side_adds_positions_to_them():
    config = Config(share_embeddings=True, positions="rotary", decoder_positions="none")
    assert config.position_schemes == ("rotary", "none", "none")


def test_random_positions_need_one_scheme_that_takes_numbers():
    assert Config(positions="none", cross_positions="alibi", randomised_positions=512).positions_are_limited


def schemes(**settings):
    model = Transformer(Config(**{**Transformer.small, **settings}), 9, 9)
    on_attention = [model.encoder.layers[0].attention, model.decoder.layers[0].attention, model.decoder.layers[0].cross]
    embeddings = [model.source_embedding, model.target_embedding]
    return [type(e.positions) for e in embeddings], [type(a.relative) for a in on_attention]


def test_encoder_decoder_and_cross_attention_have_schemes_of_their_own():
    embedded, attending = schemes(positions="rotary", decoder_positions="t5", cross_positions="alibi")
    assert attending == [Rotary, T5Buckets, ALiBi]
    embedded, attending = schemes(positions="learned", decoder_positions="kerple")
    assert embedded[0] is Learned
    assert attending == [type(None), KerpleLog, type(None)]
    assert schemes()[0] == [Sinusoidal, Sinusoidal]


def test_the_decoder_has_the_scheme_of_the_encoder_by_default():
    assert schemes(positions="alibi")[1] == [ALiBi, ALiBi, type(None)]


@pytest.mark.parametrize("name", ["relative", "t5", "kerple", "fire"])
def test_weight_decay_spares_biases_of_positions(name):
    model = Transformer(Config(**{**Transformer.small, "positions": name}), 9, 9)
    spared = {id(parameter) for parameter in model.parameters_without_decay()}
    scheme = model.encoder.layers[0].attention.relative
    decayed = [parameter for parameter in scheme.parameters() if id(parameter) not in spared]
    weights = [layer.weight for layer in scheme.modules() if isinstance(layer, nn.Linear)]
    assert [id(parameter) for parameter in decayed] == [id(weight) for weight in weights]


def test_cached_decoding_has_rotary_and_cross_positions_of_the_whole_target():
    torch.manual_seed(0)
    settings = {"positions": "rotary", "cross_positions": "rotary", "dropout": 0}
    model = Transformer(Config(**{**Transformer.small, **settings}), 9, 9).eval()
    source, tokens = torch.tensor([[4, 5, 6]]), torch.tensor([[1, 4, 5, 6]])
    whole, state = model(source, source > 0, tokens), model.encode(source, source > 0)
    for position in range(4):
        logits, state = model.decode(tokens[:, position : position + 1], state)
        torch.testing.assert_close(logits[:, 0], whole[:, position], atol=3e-5, rtol=1e-4)
