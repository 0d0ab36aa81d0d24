"""FLOPs against closed forms."""

from functools import partial

import pytest
import torch
from torch import nn

from tfstudy import models
from tfstudy.models.parts.observing import explicit_attention
from tfstudy.performance.flops import count, uses_fused_attention

BATCH, DIM, INNER, LAYERS, VOCAB = 3, 16, 24, 2, 11
TRANSFORMER = models.find("transformer")


@pytest.fixture
def transformer():
    config = TRANSFORMER.Config(
        dim=DIM, heads=2, feedforward=INNER, encoder_layers=LAYERS, decoder_layers=LAYERS, dropout=0.0
    )
    return TRANSFORMER(config, VOCAB, VOCAB)


def tokens(length: int) -> torch.Tensor:
    return torch.randint(4, VOCAB, (BATCH, length))


def products(queries: int, keys: int) -> int:
    """FLOPs of the scores and of the weighted values of one sequence."""
    return 4 * queries * keys * DIM


@pytest.mark.parametrize("explicit", [False, True])
def test_a_transformer_has_the_flops_of_its_formula(transformer, explicit):
    source, target = 7, 5
    feedforward = LAYERS * (source + target) * 2 * 2 * DIM * INNER
    encoder = LAYERS * (source * 2 * 4 * DIM**2 + products(source, source))
    own = target * 2 * 4 * DIM**2 + products(target, target)
    cross = (target + source) * 2 * 2 * DIM**2 + products(target, source)
    attention = LAYERS * (products(source, source) + products(target, target) + products(target, source))
    total = encoder + LAYERS * (own + cross) + feedforward + 2 * target * DIM * VOCAB
    x = tokens(source)
    work = partial(transformer, x, x != 0, tokens(target))
    with explicit_attention() if explicit else torch.enable_grad():
        found = count(work, transformer)
    assert (found.total, found.attention, found.feedforward) == (BATCH * total, BATCH * attention, BATCH * feedforward)


def test_a_gradient_has_twice_the_flops_and_the_fused_kernel_computes_the_scores_again(transformer):
    x = tokens(6)

    def step():
        transformer(x, x != 0, x).sum().backward()

    forward = count(partial(transformer, x, x != 0, x), transformer)
    fused = count(step, transformer)
    with explicit_attention():
        explicit = count(step, transformer)
    assert explicit.total == 3 * forward.total
    assert explicit.feedforward == 3 * forward.feedforward
    assert fused.total - explicit.total == forward.attention / 2


def test_an_lstm_has_8_h_times_d_plus_h_flops_for_each_token():
    dim, hidden, length = 5, 7, 4
    lstm, x = nn.LSTM(dim, hidden, batch_first=True), torch.randn(BATCH, length, dim)
    forward = 8 * hidden * (dim + hidden) * BATCH * length
    assert count(partial(lstm, x), lstm).total == forward
    cell = nn.LSTMCell(dim, hidden)  # the same arithmetic as separate products of matrices
    assert count(lambda: [cell(step) for step in x.unbind(1)], cell).total == forward
    x.requires_grad_()
    assert count(lambda: lstm(x)[0].sum().backward(), lstm).total == 3 * forward


def test_only_a_fused_kernel_hides_its_weights(transformer):
    x = tokens(3)
    work = partial(transformer, x, x != 0, x)
    assert uses_fused_attention(work, transformer)
    with explicit_attention():
        assert not uses_fused_attention(work, transformer)
