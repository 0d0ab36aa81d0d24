"""FLOPs against closed forms, and peak memory, counted exactly."""

from functools import partial

import pytest
import torch
from torch import nn

from tfstudy import models
from tfstudy.models.tokens import Tokens
from tfstudy.performance.measure import count, explicit_attention, peak_bytes, size_of

CPU, FLOAT = torch.device("cpu"), 4
BATCH, DIM, INNER, LAYERS, VOCAB = 3, 16, 24, 2, 11
TRANSFORMER = models.find("transformer")


@pytest.fixture
def transformer():
    config = TRANSFORMER.Config(
        dim=DIM, heads=2, feedforward=INNER, encoder_layers=LAYERS, decoder_layers=LAYERS, dropout=0.0
    )
    return TRANSFORMER(config, VOCAB, VOCAB)


def tokens(length: int) -> Tokens:
    return Tokens.of(torch.randint(4, VOCAB, (BATCH, length)))


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
    work = partial(transformer, tokens(source), tokens(target))
    with explicit_attention(transformer) if explicit else torch.enable_grad():
        found = count(work, transformer)
    assert (found.total, found.attention, found.feedforward) == (BATCH * total, BATCH * attention, BATCH * feedforward)


def test_a_gradient_has_twice_the_flops_and_the_fused_kernel_computes_the_scores_again(transformer):
    x = tokens(6)

    def step():
        transformer(x, x).sum().backward()

    forward = count(partial(transformer, x, x), transformer)
    fused = count(step, transformer)
    with explicit_attention(transformer):
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


def test_the_peak_is_that_of_the_tensors_that_exist_at_the_same_time():
    def work():
        a = torch.zeros(1000)
        b = a + 1  # two
        del a
        c = b.view(10, 100).mul_(2)  # no memory of its own
        d = c @ c.new_ones(100, 5)  # 1000 + 500 + 50
        return d.sum()

    assert peak_bytes(work, CPU) == 2000 * FLOAT
    x = torch.zeros(100)
    assert size_of(iter([x, x[:50], x.view(10, 10)])) == 100 * FLOAT, "a tensor and its views are one"


@pytest.mark.parametrize(("explicit", "growth"), [(True, 4), (False, 2)])
def test_memory_grows_with_the_square_of_the_length_only_if_attention_is_explicit(explicit, growth):
    transformer = models.find("transformer")
    model = transformer(transformer.Config(dim=8, heads=4, feedforward=8, dropout=0.0), 9, 9)

    def peak(length: int) -> int:
        x = Tokens.of(torch.full((1, length), 5))
        with explicit_attention(model) if explicit else torch.enable_grad():
            return peak_bytes(lambda: model(x, x).sum().backward(), CPU)

    assert peak(512) / peak(256) == pytest.approx(growth, rel=0.1)
