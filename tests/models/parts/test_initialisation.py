"""The initial weight matrices of the Transformer's layers: their variance by depth; all else stays as it is."""

import math

import pytest
import torch
from torch import nn

from tfstudy.models.transformer import Transformer

SIZES = {"dim": 64, "feedforward": 256, "encoder_layers": 3, "decoder_layers": 4, "positions": "relative"}


def built(name, **settings):
    torch.manual_seed(0)
    return Transformer(Transformer.Config(**SIZES, layer_init=name, **settings), 11, 12)


def matrices(layer):
    return {name: m.weight for name, m in layer.named_modules() if isinstance(m, nn.Linear)}


def layers(model):
    return [(number, layer) for stack in (model.encoder, model.decoder) for number, layer in enumerate(stack, 1)]


def test_small_matrices_have_the_variance_of_xavier_between_dim_and_4_dim():
    for _, layer in layers(built("small")):
        for weight in matrices(layer).values():
            error = 5 * math.sqrt(2 / weight.numel())  # relative standard error of a variance, five times
            assert weight.var().item() == pytest.approx(2 / (64 + 4 * 64), rel=error)
            assert abs(weight.mean().item()) < 5 * weight.std().item() / math.sqrt(weight.numel())


def test_depth_scaled_matrices_are_those_of_xavier_divided_by_the_root_of_their_depth():
    for (number, scaled), (_, xavier) in zip(layers(built("depth_scaled")), layers(built("xavier")), strict=True):
        expected = matrices(xavier)
        attention = 2 if hasattr(xavier, "cross") else 1  # query, keys and values, out
        assert len(expected) == 3 * attention + 1 + 2, "attention, relative positions, feed-forward"
        for name, weight in matrices(scaled).items():
            torch.testing.assert_close(weight, expected[name] / math.sqrt(number))


def test_only_matrices_of_layers_after_the_first_are_scaled():
    model, xavier = built("depth_scaled"), built("xavier")
    changed = {key for key, value in model.state_dict().items() if not torch.equal(value, xavier.state_dict()[key])}
    assert changed
    assert all(key.split(".")[1] == "layers" and key.endswith(".weight") for key in changed)
    assert not [key for key in changed if "norm" in key or ".layers.0." in key]


def test_shared_layers_have_no_depth_to_scale_by():
    with pytest.raises(ValueError, match="layer_init 'depth_scaled' needs a layer for each depth"):
        Transformer.Config(layer_init="depth_scaled", share_layers=True)
