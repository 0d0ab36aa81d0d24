"""Attention and the layers of the Transformer, against slow computations and against torch."""

import math

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from tests.models.reference import CLOSE, randomised
from tfstudy.data.encoding import PAD
from tfstudy.models.base import parameter_count
from tfstudy.models.parts.attention import Cache, KeyValue, MultiHeadAttention, Scores
from tfstudy.models.parts.observing import Site, recorded_attention
from tfstudy.models.parts.tokens import flatten_groups
from tfstudy.models.parts.transformer_layers import Layer
from tfstudy.models.transformer import Transformer


def by_hand(attention, x, y, allowed):
    """softmax(Q K^T / sqrt(d)) V for one row, head by head and query by query."""
    head = x.shape[-1] // attention.heads
    q, k, v = attention.query(x), *attention.key_value(y).chunk(2, -1)
    rows = []
    for i in range(len(x)):
        parts = []
        for h in range(attention.heads):
            at = slice(h * head, (h + 1) * head)
            seen = [j for j in range(len(y)) if allowed(i, j)]
            weights = torch.stack([q[i, at] @ k[j, at] / math.sqrt(head) for j in seen]).exp()
            parts.append(sum(w * v[j, at] for w, j in zip(weights / weights.sum(), seen, strict=True)))
        rows.append(attention.out(torch.cat(parts)))
    return torch.stack(rows)


def test_attention_is_softmax_of_scaled_dot_products():
    attention, x, y = randomised(MultiHeadAttention(12, 3)), torch.randn(4, 12), torch.randn(5, 12)
    mask = torch.tensor([True, False, True, True, False]).view(1, 1, 1, 5)
    expected = by_hand(attention, x, y, lambda i, j: bool(mask[0, 0, 0, j]))
    assert_close(attention(x, [(1, 4)], attention.project(y, [(1, 5)]), [mask]), expected, **CLOSE)


@pytest.mark.parametrize("causal", [True, False])
def test_attention_looks_at_its_own_row_of_its_own_group_only(causal):
    attention, places = randomised(MultiHeadAttention(12, 3)), [(1, 4), (2, 3)]
    x = torch.randn(10, 12)
    got = attention(x, places, attention.project(x, places), causal=causal)
    for start, end in ((0, 4), (4, 7), (7, 10)):
        expected = by_hand(attention, x[start:end], x[start:end], lambda i, j: j <= i or not causal)
        assert_close(got[start:end], expected, **CLOSE)


@pytest.mark.parametrize("new", [1, 2, 5])
def test_causal_attention_sees_the_past_and_itself(new):
    attention, x = randomised(MultiHeadAttention(12, 3)), torch.randn(5, 12)
    expected = by_hand(attention, x, x, lambda i, j: j <= i)[5 - new :]
    seen = attention.project(x, [(1, 5)])
    assert_close(attention(x[5 - new :], [(1, new)], seen, causal=True), expected, **CLOSE)


def test_attention_agrees_with_that_of_torch():
    attention, x, y = randomised(MultiHeadAttention(12, 3)), torch.randn(2, 4, 12), torch.randn(2, 5, 12)
    reference = nn.MultiheadAttention(12, 3, batch_first=True)
    copy_attention(attention, reference)
    mask = torch.tensor([[True] * 5, [True, True, False, False, False]])
    expected = reference(x, y, y, key_padding_mask=~mask, need_weights=False)[0]
    got = attention(
        flatten_groups([x]), [(2, 4)], attention.project(flatten_groups([y]), [(2, 5)]), [mask[:, None, None]]
    )
    assert_close(got.view(2, 4, 12), expected, **CLOSE)


@pytest.mark.parametrize("scaled", [True, False])
@pytest.mark.parametrize("d_k", [16, 64, 256, 1024])
def test_scores_have_the_variance_1_if_scaled_and_d_k_otherwise(d_k, scaled):
    torch.manual_seed(0)
    attention = MultiHeadAttention(d_k, 1, scores=Scores(scaled=scaled)).double()
    with torch.no_grad():  # queries and keys are the inputs
        attention.query.weight.copy_(torch.eye(d_k))
        attention.key_value.weight.copy_(torch.eye(d_k).repeat(2, 1))
        queries, inputs = torch.randn(1000, d_k).double(), torch.randn(400, d_k).double()
        keys = attention.project(inputs, [(1, 400)])
        with recorded_attention() as recorded:
            attention(queries, [(1, 1000)], keys, site=Site("encoder", 1))
    scores = recorded[0].weights.log()  # up to a constant for each query
    assert scores.var(-1).mean().item() == pytest.approx(1 if scaled else d_k, rel=0.05)


def copy_attention(ours, theirs):
    with torch.no_grad():
        theirs.in_proj_weight.copy_(torch.cat([ours.query.weight, ours.key_value.weight]))
        theirs.in_proj_bias.copy_(torch.cat([ours.query.bias, ours.key_value.bias]))
    theirs.out_proj.load_state_dict(ours.out.state_dict())


@pytest.mark.parametrize("norm", ["pre", "post"])
def test_an_encoder_layer_agrees_with_that_of_torch(norm):
    layer = randomised(Layer(Transformer.Config(dim=12, heads=3, feedforward=20, norm=norm), decoder=False))
    theirs = nn.TransformerEncoderLayer(12, 3, 20, dropout=0.0, batch_first=True, norm_first=norm == "pre")
    copy_attention(layer.attention, theirs.self_attn)
    copies = {theirs.linear1: layer.feedforward[0], theirs.linear2: layer.feedforward[-1]}
    copies |= {theirs.norm1: layer.attention_norm, theirs.norm2: layer.feedforward_norm}
    for reference, ours in copies.items():
        reference.load_state_dict(ours.state_dict())
    x, mask = torch.randn(2, 5, 12), torch.tensor([[True] * 5, [True, True, False, False, False]])
    got = layer.encode(flatten_groups([x]), [(2, 5)], [mask[:, None, None]], 1).view(2, 5, 12)
    assert_close(got[mask], theirs(x, src_key_padding_mask=~mask)[mask], **CLOSE)


@pytest.mark.parametrize("norm", ["pre", "post"])
def test_a_decoder_layer_agrees_with_that_of_torch(norm):
    layer = randomised(Layer(Transformer.Config(dim=12, heads=3, feedforward=20, norm=norm), decoder=True))
    theirs = nn.TransformerDecoderLayer(12, 3, 20, dropout=0.0, batch_first=True, norm_first=norm == "pre")
    copy_attention(layer.attention, theirs.self_attn)
    copy_attention(layer.cross, theirs.multihead_attn)
    copies = {theirs.linear1: layer.feedforward[0], theirs.linear2: layer.feedforward[-1]}
    copies |= {theirs.norm1: layer.attention_norm, theirs.norm2: layer.cross_norm, theirs.norm3: layer.feedforward_norm}
    for reference, ours in copies.items():
        reference.load_state_dict(ours.state_dict())
    x, y, mask = torch.randn(2, 4, 12), torch.randn(2, 5, 12), torch.tensor([[True] * 5, [True] * 2 + [False] * 3])
    none = Cache(KeyValue(torch.zeros(2, 3, 0, 4), torch.zeros(2, 3, 0, 4)))
    ahead = nn.Transformer.generate_square_subsequent_mask(4)
    expected = theirs(x, y, tgt_mask=ahead.isinf(), memory_key_padding_mask=~mask)
    memory = layer.cross.project(flatten_groups([y]), [(2, 5)])
    got, _ = layer.decode_self(flatten_groups([x]), [(2, 4)], [none], 1)
    got, _ = layer.decode_cross(got, [(2, 4)], memory, [mask[:, None, None]], 1)
    assert_close(got.view(2, 4, 12), expected, **CLOSE)


def test_pre_norm_ends_with_a_norm_and_post_norm_does_not(build):
    pre, post = build("transformer"), build("transformer-postnorm")
    assert parameter_count(pre) - parameter_count(post) == 2 * 2 * 16


def test_shared_layers_count_once_and_apply_at_every_depth(build, source, tokens):
    shared, deeper = (build("transformer-share_layers", encoder_layers=n).eval() for n in (1, 3))
    assert parameter_count(shared) == parameter_count(deeper)
    assert not torch.allclose(shared(source, source != PAD, tokens), deeper(source, source != PAD, tokens))
    assert len(shared.encode(source, source != PAD).past) == 3


def test_the_original_transformer_has_63_million_parameters():
    config = Transformer.Config(
        dim=512,
        heads=8,
        feedforward=2048,
        encoder_layers=6,
        decoder_layers=6,
        norm="post",
        positions="sinusoidal",
        tie_output=True,
        share_embeddings=True,
    )
    with torch.device("meta"):
        model = Transformer(config, 37_000, 37_000)
    attention = 4 * (512 * 512 + 512)  # query, key, value, out
    feedforward = (512 * 2048 + 2048) + (2048 * 512 + 512)
    norm = 2 * 512
    encoder = 6 * (attention + norm + feedforward + norm)
    decoder = 6 * (2 * (attention + norm) + feedforward + norm)
    assert parameter_count(model.encoder) == encoder == 18_914_304
    assert parameter_count(model.decoder) == decoder == 25_224_192
    assert parameter_count(model.target_embedding) == 37_000 * 512 == 18_944_000
    assert parameter_count(model) == 37_000 * 512 + encoder + decoder == 63_082_496


def test_weight_decay_spares_the_biases_of_relative_positions(build):
    model = build("transformer-relative")
    spared = {id(parameter) for parameter in model.parameters_without_decay()}
    exempt = {name for name, p in model.named_parameters() if id(p) in spared and p.ndim > 1}
    layers = [f"{side}.layers.{i}.attention.relative" for side in ("encoder", "decoder") for i in (0, 1)]
    assert exempt == {f"{layer}.{name}" for layer in layers for name in ("content_bias", "position_bias")}
