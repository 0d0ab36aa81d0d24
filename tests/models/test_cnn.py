"""The convolutional network against a slow computation of its paper."""

import math

import pytest
import torch
from torch.testing import assert_close

from tests.conftest import SOURCE_VOCAB, TARGET_VOCAB
from tests.models.reference import CLOSE, randomised
from tfstudy.data.encoding import EOS
from tfstudy.instruments.hooks import logits_of
from tfstudy.models.cnn import CNN
from tfstudy.models.tokens import Tokens


def convolved_by_hand(layer, rows):
    """For each full window of `rows`: a sigmoid(b) of [a b] = W window + bias (Gehring et al. 2017, section 3.2)."""
    channels, dilation = layer.in_channels, layer.dilation[0]
    kernel, out = layer.kernel_size[0], []
    span = (kernel - 1) * dilation
    for end in range(span, len(rows)):
        window = rows[end - span : end + 1 : dilation]
        both = layer.bias + sum(layer.weight[:, :, k] @ window[k] for k in range(kernel))
        out.append(both[:channels] / (1 + torch.exp(-both[channels:])))
    return torch.stack(out)


@pytest.mark.parametrize(
    ("kernel", "dilations"), [(1, [1, 1]), (3, [1, 1]), (4, [1, 1]), (4, [1, 2, 1]), (3, [1, 2, 4])]
)
def test_the_convolutional_network_agrees_with_a_slow_computation_of_its_paper(kernel, dilations):
    layers, cycle = len(dilations), max(dilations).bit_length()
    config = CNN.Config(dim=6, channels=4, layers=layers, kernel=kernel, dilation_cycle=cycle)
    model = randomised(CNN(config, SOURCE_VOCAB, TARGET_VOCAB))
    source, tokens = torch.tensor([4, 6, 5, 9, 4, 7, EOS]), torch.tensor([1, 7, 4, 4, 8, 5, 6, 4, 7])
    half = math.sqrt(0.5)
    embedded = model.source_embedding.tokens(source) + model.source_embedding.positions.weight[:7]
    x = model.encoder_in(embedded)
    for dilation, layer in zip(dilations, model.encoder, strict=True):
        left, span = (kernel - 1) // 2 * dilation, (kernel - 1) * dilation
        before, after = torch.zeros(left, 4), torch.zeros(span - left, 4)
        x = (convolved_by_hand(layer, torch.cat([before, x, after])) + x) * half
    z = model.encoder_out(x)
    values = (z + embedded) * half
    target = model.target_embedding.tokens(tokens) + model.target_embedding.positions.weight[:9]
    y = model.decoder_in(target)
    decoder = zip(dilations, model.decoder, model.query, model.attended, strict=True)
    for dilation, layer, query, attended in decoder:
        inner = convolved_by_hand(layer, torch.cat([torch.zeros((kernel - 1) * dilation, 4), y]))
        contexts = []
        for i in range(9):
            d = (query(inner[i]) + target[i]) * half
            weights = torch.stack([d @ z[j] for j in range(7)]).exp()
            weights = weights / weights.sum()
            contexts.append(sum(weights[j] * values[j] for j in range(7)) * 7 * math.sqrt(1 / 7))
        y = ((attended(torch.stack(contexts)) + inner) * half + y) * half
    expected = model.output(model.decoder_out(y))
    assert_close(logits_of(model, source[None], tokens[None])[0], expected, **CLOSE)


def test_the_encoder_is_reached_by_a_gradient_scaled_by_the_decoder_layers(source, tokens):
    grads = {}
    for layers in (1, 3):
        torch.manual_seed(0)
        model = CNN(CNN.Config(dim=6, channels=4, layers=layers, dropout=0.0), SOURCE_VOCAB, TARGET_VOCAB)
        [encoded] = model.encode(Tokens.of(source)).source
        grads[layers], exact = torch.autograd.grad(encoded.keys.sum(), [model.encoder_out.bias, encoded.keys])
        assert_close(grads[layers], exact.sum((0, 1)) / (2 * layers))


def test_weight_decay_spares_the_gains_of_weight_normalisation(build):
    model = build("cnn")
    spared = {id(parameter) for parameter in model.parameters_without_decay()}
    exempt = {name for name, parameter in model.named_parameters() if id(parameter) in spared}
    gains = {name for name, p in model.named_parameters() if p.ndim > 1 and p.numel() == p.shape[0]}
    assert len(gains) == 2 * 2 + 2 * 2 + 5, "two layers each side, and two linear layers in each of the decoder's"
    assert exempt == gains | {name for name, p in model.named_parameters() if p.ndim < 2}
