"""Recorded attention: what is recorded is what was computed, in every architecture; without a listener nothing is."""

import pytest
import torch
from torch.testing import assert_close

from tests.models.reference import CLOSE
from tfstudy.data.encoding import PAD
from tfstudy.models.parts import attention, layers
from tfstudy.models.parts.attention import MultiHeadAttention
from tfstudy.models.parts.observing import Site, joined, recorded_attention
from tfstudy.models.parts.tokens import RaggedGroup


def listened(model, source, tokens):
    """The logits and the weights of each site, with teacher forcing."""
    with recorded_attention() as recorded, torch.no_grad():
        logits = model(source, source != PAD, tokens)
    return logits, joined(recorded)


def test_outputs_are_the_same_to_rounding_while_somebody_listens(model, source, tokens):
    assert_close(listened(model, source, tokens)[0], model(source, source != PAD, tokens), **CLOSE)


def test_weights_of_visible_keys_sum_to_1_and_no_other_key_has_any(model, variant, source, tokens):
    _, maps = listened(model, source, tokens)
    assert maps or variant.endswith("-none")
    padding, later = source == PAD, torch.ones(7, 7, dtype=torch.bool).triu(1)
    for site, weights in maps.items():
        shapes = {"encoder": (6, 6), "decoder": (7, 7), "prefix": (7, 13), "cross": (7, 6)}
        assert weights.shape[2:] == shapes[site.kind]
        assert_close(weights.sum(-1), torch.ones(weights.shape[:3]))
        hidden = later if site.kind == "decoder" else padding[:, None, None]
        if site.kind == "prefix":  # one stack: target tokens see the source too
            hidden = torch.cat([padding[:, None, None].expand(-1, -1, 7, -1), later.expand(3, 1, 7, 7)], 3)
        assert not weights.masked_select(hidden.expand_as(weights)).any()


@pytest.mark.parametrize("sizes", [[1] * 7, [3, 3, 1]], ids=str)
def test_decoding_in_pieces_gives_the_weights_of_teacher_forcing(model, source, tokens, sizes):
    expected = listened(model, source, tokens)[1]
    with recorded_attention() as recorded, torch.no_grad():
        state = model.encode(source, source != PAD)
        for piece in tokens.split(sizes, 1):
            _, state = model.decode(piece, state)
    pieces = joined(recorded)
    assert pieces.keys() == expected.keys()
    for site, weights in expected.items():
        assert_close(pieces[site], weights, **CLOSE)


def test_padding_does_not_change_the_weights(model, source, tokens):
    row = source[1:2, :3]
    batched, alone = (listened(model, *pair)[1] for pair in ((source, tokens), (row, tokens[1:2])))
    for site, weights in alone.items():
        seen = batched[site][1:2, :, : weights.shape[2]]
        tokens = [0, 1, 2, *range(6, 13)]  # of 6 source positions of the batch, 3 are padding
        seen = seen[..., tokens] if site.kind == "prefix" else seen[..., : weights.shape[3]]
        assert_close(seen, weights, **CLOSE)


def test_ragged_groups_are_recorded_one_after_the_other(transformer, source, tokens):
    groups = [RaggedGroup(source[1:2, :3], torch.ones(1, 3, dtype=torch.bool), tokens[1:2, :4]),
              RaggedGroup(source[:1], source[:1] != PAD, tokens[:1])]  # fmt: skip
    with recorded_attention() as recorded, torch.no_grad():
        transformer.forward_groups(groups)
    for number, group in enumerate(groups):
        expected = listened(transformer, group.source, group.tokens)[1]
        got = [call.weights for call in recorded if call.site == Site("cross", 2)][number]
        assert_close(got, expected[Site("cross", 2)], **CLOSE)


@pytest.mark.parametrize(
    ("name", "sites"),
    [
        ("transformer", {"encoder": (2, 2), "decoder": (2, 2), "cross": (2, 2)}),
        ("transformer-share_layers", {"encoder": (2, 2), "decoder": (3, 2), "cross": (3, 2)}),
        ("lstm", {"cross": (1, 1)}),
        ("lstm-input_feeding", {"cross": (1, 1)}),
        ("cnn", {"cross": (2, 1)}),
        ("lstm-none", {}),
    ],
)
def test_every_layer_and_head_is_recorded(build, source, tokens, name, sites):
    maps = listened(build(name).eval(), source, tokens)[1]
    expected = {Site(kind, layer + 1): heads for kind, (layers, heads) in sites.items() for layer in range(layers)}
    assert {site: weights.shape[1] for site, weights in maps.items()} == expected


def test_only_while_somebody_listens_is_the_fused_kernel_not_used(transformer, source, tokens, monkeypatch):
    calls, fused = [], attention.scaled_dot_product_attention
    monkeypatch.setattr(attention, "scaled_dot_product_attention", lambda *a, **b: calls.append(1) or fused(*a, **b))
    listened(transformer, source, tokens)
    assert not calls
    with recorded_attention() as recorded:
        pass
    before = transformer(source, source != PAD, tokens)
    assert len(calls) == 6
    assert recorded == []
    assert torch.equal(before, transformer(source, source != PAD, tokens))


def test_one_listener_within_another_records_alone(cnn, source, tokens):
    with recorded_attention() as outer:
        assert listened(cnn, source, tokens)[1]
        assert outer == []
        cnn(source, source != PAD, tokens)
    assert len(outer) == 2


@pytest.mark.parametrize("name", ["transformer-relative", "lstm-additive", "cnn"])
def test_attention_that_is_computed_in_chunks_is_recorded_as_a_whole(build, name, source, tokens, monkeypatch):
    model = build(name).eval()
    expected = listened(model, source, tokens)[1]
    monkeypatch.setattr(layers, "MAX_ELEMENTS", 1)
    got = listened(model, source, tokens)[1]
    for site, weights in expected.items():
        assert_close(got[site], weights, **CLOSE)


def test_weights_are_recorded_before_dropout(build, source, tokens):
    model = build("transformer", attention_dropout=0.5)
    for weights in listened(model, source, tokens)[1].values():
        assert_close(weights.sum(-1), torch.ones(weights.shape[:3]))


def test_the_weights_are_those_of_the_formula(transformer, source):
    """softmax(Q K^T / sqrt(d_k)) of the first encoder layer, written out from its parameters."""
    mask, layer = source != PAD, transformer.encoder.layers[0]
    with recorded_attention() as recorded, torch.no_grad():
        transformer.encode(source, mask)
        x = layer.attention_norm(transformer.source_embedding(source, torch.arange(6).expand(3, 6)))
    query, key = layer.attention.query, layer.attention.key_value
    with torch.no_grad():
        for head in range(2):
            own = slice(8 * head, 8 * head + 8)
            q = x @ query.weight[own].T + query.bias[own]
            k = x @ key.weight[own].T + key.bias[own]
            scores = torch.einsum("bqd,bkd->bqk", q, k) / 8**0.5
            scores[~mask[:, None].expand(3, 6, 6)] = -1e9
            expected = scores.exp() / scores.exp().sum(-1, keepdim=True)
            assert_close(recorded[0].weights[:, head], expected, **CLOSE)


def test_exchanging_two_heads_exchanges_their_weights():
    heads, x = MultiHeadAttention(8, 2).eval(), torch.randn(5, 8)
    order = torch.tensor([4, 5, 6, 7, 0, 1, 2, 3])

    def weights():
        with recorded_attention() as recorded, torch.no_grad():
            heads(x, [(1, 5)], heads.project(x, [(1, 5)]), site=Site("encoder", 1))
        return recorded[0].weights

    before = weights()
    with torch.no_grad():
        heads.query.weight.copy_(heads.query.weight[order])
        heads.key_value.weight.copy_(heads.key_value.weight[torch.cat([order, order + 8])])
    assert (before[:, 0] - before[:, 1]).abs().max() > 1e-3
    assert_close(weights(), before.flip(1), **CLOSE)


def test_attention_without_a_site_is_not_recorded():
    heads, x = MultiHeadAttention(8, 2).eval(), torch.randn(5, 8)
    with recorded_attention() as recorded:
        heads(x, [(1, 5)], heads.project(x, [(1, 5)]))
    assert recorded == []
