"""The decoder-only layout: a bidirectional prefix, a causal target, and one stack."""

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from tests.conftest import perturbed
from tests.models.reference import CLOSE
from tfstudy.models.base import parameter_count
from tfstudy.models.parts.observing import Site, record_states
from tfstudy.models.parts.tokens import RaggedGroup

NAMES = ["transformer-decoder_only", "transformer-decoder_only_relative", "transformer-decoder_only_learned"]


def gradients(build, name, source, tokens, place):
    """For each embedded source and target token, the gradient of the logits after target token `place`."""
    model = perturbed(build(name, attention_window=0))
    recorded = record_states(model, RaggedGroup(source, source > 0, tokens))
    output = recorded.logits[:, place].logsumexp(-1).sum()
    return [recorded.gradients(output, Site(kind, 0)).norm(dim=-1) for kind in ("encoder", "decoder")]


@pytest.mark.parametrize("name", NAMES)
def test_no_gradient_leaks_from_later_target_tokens_or_padding(build, source, tokens, name):
    of_source, of_target = gradients(build, name, source, tokens, 3)
    assert (of_target[:, :4] > 1e-5).all()
    assert not of_target[:, 4:].any()
    assert (of_source[source > 0] > 1e-5).all()
    assert not of_source[source == 0].any()


@pytest.mark.parametrize("name", NAMES)
def test_source_tokens_see_those_after_them(build, source, name):
    model = perturbed(build(name))
    changed = source.clone()
    changed[0, 4] = 9 - changed[0, 4]  # another word
    first, second = (model.encode(sources, sources > 0).past[-1] for sources in (source, changed))
    assert (first.seen.keys[0, :, 0] - second.seen.keys[0, :, 0]).abs().max() > 1e-4


def test_one_stack_has_the_layers_of_both_and_no_cross_attention(build):
    model = build("transformer-decoder_only", encoder_layers=2, decoder_layers=1)
    assert len(model.decoder.layers) == 3
    assert not any("cross" in name or name.startswith("encoder.") for name, _ in model.named_parameters())
    assert parameter_count(model) < parameter_count(build("transformer", encoder_layers=2, decoder_layers=1))


def test_it_is_a_transformer_encoder_of_torch_with_the_mask_of_a_prefix_language_model(build, source, tokens):
    model = perturbed(build("transformer-decoder_only", attention_window=0, positions="none"))
    row, target = source[:1], tokens[:1]
    theirs = nn.TransformerEncoderLayer(16, 2, 24, 0.0, batch_first=True, norm_first=True)
    stack = nn.TransformerEncoder(theirs, 2, model.decoder.norm, enable_nested_tensor=False)
    for reference, ours in zip(stack.layers, model.decoder.layers, strict=True):
        attention = ours.attention
        with torch.no_grad():
            reference.self_attn.in_proj_weight.copy_(torch.cat([attention.query.weight, attention.key_value.weight]))
            reference.self_attn.in_proj_bias.copy_(torch.cat([attention.query.bias, attention.key_value.bias]))
        copies = {reference.self_attn.out_proj: attention.out, reference.norm1: ours.attention_norm}
        copies |= {reference.norm2: ours.feedforward_norm}
        copies |= {reference.linear1: ours.feedforward[0], reference.linear2: ours.feedforward[-1]}
        for copy, original in copies.items():
            copy.load_state_dict(original.state_dict())
    scale = model.source_embedding.scale
    embedded = [
        scale * table.tokens.weight[ids]
        for table, ids in ((model.source_embedding, row), (model.target_embedding, target))
    ]
    hidden = torch.ones(13, 13, dtype=torch.bool).triu(1)
    hidden[:, :6] = False  # everybody sees the source
    hidden[:6, 6:] = True
    expected = model.output(stack.eval()(torch.cat(embedded, 1), mask=hidden))[:, 6:]
    assert_close(model(row, row > 0, target), expected, **CLOSE)


def test_positions_of_the_target_follow_those_of_the_source(build, source):
    model = build("transformer-decoder_only")
    places = model.encode(source, source > 0).places(3, 2)
    lengths = (source > 0).sum(1).tolist()
    assert places.queries.tolist() == [[n, n + 1] for n in lengths]
    assert places.keys[1].tolist() == [0, 1, 2, 3, 4, 5, lengths[1], lengths[1] + 1]


def test_learned_positions_suffice_for_a_source_and_a_target_of_the_longest_length(build):
    model = build("transformer-decoder_only_learned", max_positions=8)
    source = torch.full((1, 8), 4)
    assert model(source, source > 0, source).isfinite().all()
    assert model.max_positions == 8
