"""Residual connections and norms against their formulas, written out."""

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from tests.models.reference import CLOSE, randomised
from tfstudy.models.parts.layers import Residual, norm_layer
from tfstudy.models.transformer import Transformer


def layer_norm(norm, x):
    centred = x - x.mean(-1, keepdim=True)
    return centred / (centred.square().mean(-1, keepdim=True) + 1e-5).sqrt() * norm.weight + norm.bias


def rms_norm(norm, x):
    return x / x.square().mean(-1, keepdim=True).sqrt() * norm.weight


@pytest.mark.parametrize(("norm_type", "formula"), [("layer", layer_norm), ("rms", rms_norm)])
def test_a_norm_is_that_of_its_formula(norm_type, formula):
    norm, x = randomised(norm_layer(norm_type, 6)), torch.randn(4, 6)
    assert_close(norm(x), formula(norm, x), **CLOSE)


FORMULAS = {
    "pre": lambda x, f, first, second: x + f(first(x)),
    "post": lambda x, f, first, second: first(x + f(x)),
    "sandwich": lambda x, f, first, second: x + second(f(first(x))),
    "none": lambda x, f, first, second: x + f(x),
}


@pytest.mark.parametrize("placement", FORMULAS)
def test_the_sublayer_and_its_norms_stand_where_the_paper_has_them(placement):
    residual, f, x = Residual(placement, "rms"), randomised(nn.Linear(6, 6)), torch.randn(4, 6)
    norm = randomised(residual.norm(6))
    first, second = norm if placement == "sandwich" else (norm, norm)
    got = residual.after(norm, x, f(residual.before(norm, x)))
    assert_close(got, FORMULAS[placement](x, f, first, second), **CLOSE)


@pytest.mark.parametrize(("connection", "of_x", "of_update"), [("sum", 1, 1), ("scaled", 1, 0.25), ("none", 0, 1)])
def test_a_connection_weights_its_input_and_the_update(connection, of_x, of_update):
    residual, x, update = Residual("pre", "layer", connection, 0.25), torch.randn(4, 6), torch.randn(4, 6)
    assert_close(residual.after(residual.norm(6), x, update), of_x * x + of_update * update)


def test_scaled_sublayers_are_divided_by_the_root_of_twice_the_number_of_layers():
    config = Transformer.Config(dim=8, heads=1, encoder_layers=8, decoder_layers=2, residual="scaled")
    model = Transformer(config, 5, 5)
    assert {layer.residual.factor for layer in model.encoder} == {0.25}
    assert {layer.residual.factor for layer in model.decoder} == {0.5}
