"""Settings that make no sense together are refused with one message."""

import pytest
from pydantic import ValidationError

from tfstudy.models.parts.transformer_config import TransformerConfig


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"dim": 16, "heads": 3}, ["heads", "16", "3"]),
        ({"norm": "none", "norm_type": "rms"}, ["norm_type rms", "none"]),
        ({"depth_signal": True}, ["depth_signal", "share_layers"]),
        ({"test_layers": 4}, ["test_layers", "share_layers"]),
        ({"layout": "decoder_only", "cross_positions": "t5"}, ["cross_positions", "decoder_only"]),
        ({"layout": "decoder_only", "decoder_positions": "t5"}, ["decoder_positions", "decoder_only"]),
        ({"layout": "decoder_only", "positions": "contextual"}, ["'contextual' needs layout encoder_decoder"]),
        ({"layout": "decoder_only", "copy_output": True}, ["copy_output", "decoder_only"]),
        ({"layout": "encoder_only", "tie_output": True}, ["tie_output needs layout encoder_decoder", "encoder_only"]),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, dict) else "",
)
def test_settings_that_contradict_each_other_are_refused(settings, words):
    with pytest.raises(ValidationError) as error:
        TransformerConfig(**settings)
    assert error.value.error_count() == 1
    assert all(word in str(error.value) for word in words)


@pytest.mark.parametrize(
    "settings",
    [
        {"norm": "none", "norm_type": "rms", "qk_norm": True},
        {"layout": "decoder_only", "temperature": 2.0, "score_scale": "none"},
        {"layout": "encoder_only", "positions": "contextual"},
    ],
    ids=lambda settings: " ".join(settings),
)
def test_settings_that_have_an_effect_are_allowed(settings):
    assert TransformerConfig(**settings).model_dump().items() >= settings.items()
