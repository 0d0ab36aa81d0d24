"""Decoding in steps of fixed shapes gives what decoding with growing caches gives, and no step waits for the device."""

import pytest
import torch

from tests.training.replayed import Repeated
from tfstudy import models
from tfstudy.config.schema import DecodeConfig
from tfstudy.evaluation import static_decoding
from tfstudy.evaluation.decoding import beam, generate_both, greedy_both
from tfstudy.evaluation.static_decoding import StaticDecoder
from tfstudy.models.base import Model

ROWS = 11
CASES = [
    ("lstm", {}),
    ("lstm", {"input_feeding": True, "layers": 2}),
    ("lstm", {"cell": "gru", "copy_output": True}),
    ("cnn", {}),
    ("cnn", {"layers": 3, "kernel": 4, "dilation_cycle": 2}),
    ("mingru", {}),
    ("mingru", {"self_attention_every": 2, "heads": 2, "copy_output": True}),
    ("transformer", {}),
    ("transformer", {"positions": "learned", "attention_window": 2}),
    ("transformer", {"positions": "relative"}),
    ("transformer", {"positions": "rotary", "cross_positions": "rotary", "randomised_positions": 128}),
    ("transformer", {"positions": "t5", "decoder_positions": "fire", "cross_positions": "kerple"}),
    ("transformer", {"positions": "contextual", "cross_positions": "alibi"}),
    ("transformer", {"digit_positions": 20, "positions": "none", "copy_output": True}),
]


def made(arch: str, **changes) -> Model:
    torch.manual_seed(1)
    cls = models.find(arch)
    model = cls(cls.Config(**{**cls.small, **changes}), 12, 12).eval()
    for parameter in model.parameters():
        if parameter.ndim > 1:
            parameter.data.mul_(2)  # outputs of many lengths
    return model


def batch(rows: int = ROWS) -> tuple[torch.Tensor, ...]:
    """Sources, their mask, limits and lengths, some of them 0."""
    torch.manual_seed(rows)
    mask = torch.arange(9) < torch.randint(1, 10, (rows, 1))
    source = torch.randint(4, 12, (rows, 9)) * mask
    return source, mask, torch.randint(0, 16, (rows,)), torch.randint(0, 12, (rows,))


@pytest.mark.parametrize(("arch", "changes"), CASES)
def test_graphed_decoding_equals_decoding_with_growing_caches(arch, changes):
    model, (source, mask, limits, lengths) = made(arch, **changes), batch()
    graphs = Repeated(watch=True)
    decoder = StaticDecoder(model, graphs)
    greedy = greedy_both(model, source, mask, limits, lengths)
    assert decoder.greedy_both(source, mask, limits, lengths) == greedy
    assert decoder.greedy_both(source, mask, limits, lengths) == greedy, "all shapes are captured now"
    assert decoder.beam(source, mask, limits, 3, 0.6) == beam(model, source, mask, limits, 3, 0.6)
    assert graphs.captures < graphs.replays


def test_finished_rows_are_dropped_by_halves(monkeypatch):
    rows = []
    monkeypatch.setattr(static_decoding, "CHECK", 2)
    decoder, (source, mask, _, lengths) = StaticDecoder(made("lstm"), Repeated()), batch(40)
    advance = decoder._advance
    monkeypatch.setattr(decoder, "_advance", lambda search: rows.append(search.rows) or advance(search))
    limits = torch.arange(40) // 2 + 1
    found = decoder.greedy_both(source, mask, limits, 0 * lengths)
    assert found == greedy_both(decoder._model, source, mask, limits, 0 * lengths)
    assert rows == sorted(rows, reverse=True)
    assert set(rows) > {64, 8}


def test_other_weights_are_decoded_by_the_same_graphs():
    model, (source, mask, limits, lengths) = made("transformer"), batch()
    graphs = Repeated()
    decoder = StaticDecoder(model, graphs)
    decoder.greedy_both(source, mask, limits, lengths)
    captures = graphs.captures
    torch.manual_seed(2)
    model.load_state_dict({name: torch.randn_like(value) for name, value in model.state_dict().items()})
    assert decoder.greedy_both(source, mask, limits, lengths) == greedy_both(model, source, mask, limits, lengths)
    assert graphs.captures == captures


@pytest.mark.parametrize(
    ("changes", "refuse"), [({"attention": "linear"}, False), ({"layout": "decoder_only"}, False), ({}, True)]
)
def test_a_model_that_can_not_be_graphed_is_decoded_as_before_and_this_is_said_once(changes, refuse):
    lines, model, inputs = [], made("transformer", **changes), batch()
    decoder = StaticDecoder(model, Repeated(refuse), lines.append)
    for decode in (DecodeConfig(), DecodeConfig(method="beam")):
        assert decoder.generate_both(*inputs, decode) == generate_both(model, *inputs, decode)
    assert len(lines) == 1
