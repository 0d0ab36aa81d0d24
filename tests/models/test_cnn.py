"""The convolutional network against a slow computation of its paper."""

import math

import pytest
import torch
from torch.testing import assert_close

from tests.conftest import SOURCE_VOCAB, TARGET_VOCAB
from tests.models.reference import CLOSE, randomised
from tfstudy.data.vocabulary import EOS, PAD
from tfstudy.models.cnn import CNN, GatedConvolution, scale_gradient


def convolved_by_hand(layer, rows):
    """For each full window of `rows`: a sigmoid(b) of [a b] = W window + bias (Gehring et al. 2017, section 3.2)."""
    channels = layer.in_channels
    kernel, out = layer.kernel_size[0], []
    for end in range(kernel, len(rows) + 1):
        window = rows[end - kernel : end]
        both = layer.bias + sum(layer.weight[:, :, k] @ window[k] for k in range(kernel))
        out.append(both[:channels] / (1 + torch.exp(-both[channels:])))
    return torch.stack(out)


@pytest.mark.parametrize("kernel", [1, 3, 4])
@pytest.mark.parametrize("weight_norm", [True, False])
def test_the_convolutional_network_agrees_with_a_slow_computation_of_its_paper(kernel, weight_norm):
    config = CNN.Config(dim=6, channels=4, layers=2, kernel=kernel, weight_norm=weight_norm)
    model = randomised(CNN(config, SOURCE_VOCAB, TARGET_VOCAB))
    source, tokens, half = torch.tensor([4, 6, 5, EOS]), torch.tensor([1, 7, 4, 4, 8]), math.sqrt(0.5)
    embedded = model.source_embedding.tokens(source) + model.source_embedding.positions.weight[:4]
    x = model.encoder_in(embedded)
    left = (kernel - 1) // 2
    for layer in model.encoder:
        before, after = torch.zeros(left, 4), torch.zeros(kernel - 1 - left, 4)
        x = (convolved_by_hand(layer, torch.cat([before, x, after])) + x) * half
    z = model.encoder_out(x)
    values = (z + embedded) * half
    target = model.target_embedding.tokens(tokens) + model.target_embedding.positions.weight[:5]
    y = model.decoder_in(target)
    for layer, query, attended in zip(model.decoder, model.query, model.attended, strict=True):
        inner = convolved_by_hand(layer, torch.cat([torch.zeros(kernel - 1, 4), y]))
        contexts = []
        for i in range(5):
            d = (query(inner[i]) + target[i]) * half
            weights = torch.stack([d @ z[j] for j in range(4)]).exp()
            weights = weights / weights.sum()
            contexts.append(sum(weights[j] * values[j] for j in range(4)) * 4 * math.sqrt(1 / 4))
        y = ((attended(torch.stack(contexts)) + inner) * half + y) * half
    expected = model.output(model.decoder_out(y))
    assert_close(model(source[None], source[None] != PAD, tokens[None])[0], expected, **CLOSE)


@pytest.mark.parametrize("kernel", [1, 2, 5])
def test_a_convolution_as_a_product_equals_that_of_torch(kernel):
    layer = randomised(GatedConvolution(6, 8, kernel)).double()
    groups = [torch.randn(rows, length + kernel - 1, 6).double() for rows, length in ((2, 1), (1, 7), (3, 4))]
    assert_close(layer.product(groups), layer.convolution(groups))
    assert layer(groups).shape == (2 * 1 + 1 * 7 + 3 * 4, 4)


def test_weight_norm_starts_from_the_same_function(build, source, tokens):
    plain, normed = (build(name).eval() for name in ("cnn-plain-weights", "cnn"))
    logits = [model(source, source != PAD, tokens) for model in (plain, normed)]
    assert_close(*logits, **CLOSE)


def test_scale_gradient_leaves_the_value_and_scales_the_gradient():
    x = torch.randn(5, requires_grad=True)
    y = scale_gradient(x, 0.25)
    assert torch.equal(y, x)
    (y**2).sum().backward()
    assert_close(x.grad, 0.25 * 2 * x.detach())


def test_the_encoder_is_reached_by_a_gradient_scaled_by_the_decoder_layers(source, tokens):
    grads = {}
    for layers in (1, 3):
        torch.manual_seed(0)
        model = CNN(CNN.Config(dim=6, channels=4, layers=layers, dropout=0.0), SOURCE_VOCAB, TARGET_VOCAB)
        state = model.encode(source, source != PAD)
        grads[layers], exact = torch.autograd.grad(state.source.keys.sum(), [model.encoder_out.bias, state.source.keys])
        assert_close(grads[layers], exact.sum((0, 1)) / (2 * layers))


def test_weight_decay_spares_the_gains_of_weight_normalisation(build):
    model = build("cnn")
    spared = {id(parameter) for parameter in model.parameters_without_decay()}
    exempt = {name for name, parameter in model.named_parameters() if id(parameter) in spared}
    gains = {name for name, p in model.named_parameters() if p.ndim > 1 and p.numel() == p.shape[0]}
    assert len(gains) == 2 * 2 + 2 * 2 + 5, "two layers each side, and two linear layers in each of the decoder's"
    assert exempt == gains | {name for name, p in model.named_parameters() if p.ndim < 2}
