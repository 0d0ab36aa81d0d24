"""Stacks of layers: what is added between them, and how often shared layers are applied."""

import torch
from torch.testing import assert_close

from tests.models.reference import CLOSE
from tfstudy.models.base import parameter_count
from tfstudy.models.parts.positions.schemes import sinusoids


def test_a_stack_of_shared_layers_adds_its_input_and_a_signal_of_the_depth(build):
    stack, x, embedded = build("transformer-universal").encoder, torch.randn(4, 16), torch.randn(4, 16)
    signals = sinusoids(torch.tensor([1, 2]), 16)
    assert_close(stack.enter(x, embedded, 1), x + signals[0])
    assert_close(stack.enter(x, embedded, 2), x + embedded + signals[1])


def test_by_default_a_layer_reads_the_output_of_the_one_before_it(build):
    stack, x = build("transformer").encoder, torch.randn(4, 16)
    assert stack.enter(x, torch.randn(4, 16), 2) is x


def test_a_universal_transformer_is_applied_more_often_at_test_than_in_training(build, source, tokens):
    mask = source > 0
    deeper, same = (
        build("transformer-universal", test_layers=5),
        build("transformer-universal", encoder_layers=5, decoder_layers=5),
    )
    same.load_state_dict(deeper.state_dict())
    assert parameter_count(deeper) == parameter_count(same)
    assert [len(list(deeper.train().encoder)), len(list(deeper.eval().encoder))] == [2, 5]
    assert_close(deeper(source, mask, tokens), same.eval()(source, mask, tokens), **CLOSE)
    assert len(deeper.encode(source, mask).past) == 5


def test_any_number_of_heads_has_the_same_parameters_at_a_fixed_width(build, source, tokens):
    models = [build("transformer", dim=32, heads=heads) for heads in (1, 2, 4, 8, 16, 32)]
    assert len({parameter_count(model) for model in models}) == 1
    assert models[-1](source, source > 0, tokens).isfinite().all()


def test_word_dropout_drops_whole_tokens_and_keeps_their_positions(build):
    embedding = build("transformer", word_dropout=0.5).source_embedding
    tokens, positions = torch.full((400,), 4), torch.arange(400)
    added = embedding(tokens, positions) - sinusoids(positions, 16)
    kept = added.abs().sum(1) > 1e-4
    assert 140 < kept.sum() < 260
    assert_close(added[kept], (2 * embedding.scale * embedding.tokens.weight[4]).expand(int(kept.sum()), -1), **CLOSE)
    assert_close(
        embedding.eval()(tokens, positions) - sinusoids(positions, 16),
        embedding.scale * embedding.tokens.weight[tokens],
        **CLOSE,
    )
