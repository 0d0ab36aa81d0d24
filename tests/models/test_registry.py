"""What is declared is read without an import, and wrong architectures and configs are refused."""

import math

import pytest
from jaxtyping import TypeCheckError
from pydantic import ValidationError

from tfstudy.errors import UserError
from tfstudy.models.cnn import CNN
from tfstudy.models.lstm import LSTM
from tfstudy.models.transformer import Transformer


def test_a_subclass_of_an_architecture_is_refused():
    with pytest.raises(TypeError, match=r"architectures are final.*add a key to its Config"):
        type("Larger", (LSTM,), {})


def test_shapes_are_checked_while_tests_of_properties_run(build, source, shapes):
    with pytest.raises(TypeCheckError):
        build("mingru").encode_padded(source, source[:2] > 0)


def test_shared_embeddings_need_one_vocabulary():
    with pytest.raises(UserError, match="share_embeddings must be false, since there are two vocabularies, of 7 and 8"):
        Transformer(Transformer.Config(dim=16, share_embeddings=True), 7, 8)


@pytest.mark.parametrize(
    ("cls", "settings", "words"),
    [
        (LSTM, {"dropout": math.nan}, ["dropout"]),
        (LSTM, {"width": 3}, ["width"]),
        (CNN, {"kernel": 1, "dilation_cycle": 2}, ["dilation_cycle must be 1"]),
        (Transformer, {"dim": 16, "heads": 3}, ["heads must divide dim (16)", "but is 3"]),
        (Transformer, {"norm": "none", "norm_type": "rms"}, ["norm_type rms", "none"]),
        (Transformer, {"layout": "decoder_only", "positions": "contextual"}, ["needs layout encoder_decoder"]),
        (Transformer, {"layout": "decoder_only", "copy_output": True}, ["copy_output needs layout encoder_decoder"]),
        (Transformer, {"dim": 12, "heads": 4, "positions": "rotary"}, ["dim must be a multiple of 2 * heads (8)"]),
        (Transformer, {"randomised_positions": 511}, ["at least max_positions (512), but is 511"]),
        (Transformer, {"randomised_positions": 600, "positions": "contextual"}, ["be 0"]),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, dict) else "",
)
def test_settings_out_of_range_or_in_contradiction_are_refused_with_one_message(cls, settings, words):
    with pytest.raises(ValidationError) as error:
        cls.Config(**settings)
    assert error.value.error_count() == 1
    assert all(word in str(error.value) for word in words)
