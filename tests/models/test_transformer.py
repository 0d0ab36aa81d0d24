"""The layers of the Transformer and its layouts, against formulas and against torch."""

import math

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from tests.conftest import perturbed
from tests.models.reference import CLOSE, randomised, sight
from tfstudy.instruments.hooks import logits_of
from tfstudy.models.base import parameter_count
from tfstudy.models.decoder_only import after_source
from tfstudy.models.layers import Layer, feedforward
from tfstudy.models.residual import Residual
from tfstudy.models.tokens import Tokens, flat
from tfstudy.models.transformer import Transformer

# Layers


def copy_attention(ours, theirs):
    with torch.no_grad():
        theirs.in_proj_weight.copy_(torch.cat([ours.query.weight, ours.key_value.weight]))
        theirs.in_proj_bias.copy_(torch.cat([ours.query.bias, ours.key_value.bias]))
    theirs.out_proj.load_state_dict(ours.out.state_dict())


def copy_layer(ours, theirs):
    """Copy the weights of a layer into that of torch."""
    copy_attention(ours.attention, theirs.self_attn)
    copies = [(theirs.linear1, ours.feedforward[0]), (theirs.linear2, ours.feedforward[-1])]
    copies += [(theirs.norm1, ours.attention_norm)]
    if hasattr(theirs, "multihead_attn"):
        copy_attention(ours.cross, theirs.multihead_attn)
        copies += [(theirs.norm2, ours.cross_norm), (theirs.norm3, ours.feedforward_norm)]
    else:
        copies += [(theirs.norm2, ours.feedforward_norm)]
    for copy, original in copies:
        copy.load_state_dict(original.state_dict())


@pytest.mark.parametrize("norm", ["pre", "post"])
@pytest.mark.parametrize("decoder", [False, True])
def test_a_layer_agrees_with_that_of_torch(norm, decoder):
    config = Transformer.Config(dim=12, heads=3, feedforward=20, norm=norm)
    layer = randomised(Layer(config, decoder, Residual(norm)))
    cls = nn.TransformerDecoderLayer if decoder else nn.TransformerEncoderLayer
    theirs = cls(12, 3, 20, dropout=0.0, batch_first=True, norm_first=norm == "pre")
    copy_layer(layer, theirs)
    x, y, mask = torch.randn(2, 4, 12), torch.randn(2, 5, 12), torch.tensor([[True] * 5, [True] * 2 + [False] * 3])
    if decoder:
        ahead = nn.Transformer.generate_square_subsequent_mask(4).isinf()
        expected = theirs(x, y, tgt_mask=ahead, memory_key_padding_mask=~mask)
        memory = layer.cross.key_values(flat([y]), sight([(2, 5)]))
        near, far = sight([(2, 4)], causal=True), sight([(2, 4)], [mask[:, None, None]])
        got, *_ = layer(flat([x]), near, (), memory, far)
        assert_close(got.view(2, 4, 12), expected, **CLOSE)
    else:
        got = layer(flat([y]), sight([(2, 5)], [mask[:, None, None]]))[0].view(2, 5, 12)
        assert_close(got[mask], theirs(y, src_key_padding_mask=~mask)[mask], **CLOSE)


PLACEMENTS = {
    "pre": lambda x, f, first, second: x + f(first(x)),
    "post": lambda x, f, first, second: first(x + f(x)),
    "sandwich": lambda x, f, first, second: x + second(f(first(x))),
    "none": lambda x, f, first, second: x + f(x),
}


@pytest.mark.parametrize("placement", PLACEMENTS)
def test_the_sublayer_and_its_norms_stand_where_the_paper_has_them(placement):
    residual, f, x = Residual(placement, "rms"), randomised(nn.Linear(6, 6)), torch.randn(4, 6)
    norm = randomised(residual.norm(6))
    pair = norm if placement == "sandwich" else (norm, norm)
    first, second = (lambda x, n=n: x / x.square().mean(-1, keepdim=True).sqrt() * n.weight for n in pair)
    got = residual.after(norm, x, f(residual.before(norm, x)))
    assert_close(got, PLACEMENTS[placement](x, f, first, second), **CLOSE)


@pytest.mark.parametrize(("connection", "of_x", "of_update"), [("sum", 1, 1), ("scaled", 1, 0.25), ("none", 0, 1)])
def test_a_connection_weights_its_input_and_the_update(connection, of_x, of_update):
    config = Transformer.Config(dim=8, heads=1, encoder_layers=8, residual=connection)
    residual, x, update = Transformer(config, 5, 5).encoder.layers[0].residual, torch.randn(4, 8), torch.randn(4, 8)
    assert_close(residual.after(residual.norm(8), x, update), of_x * x + of_update * update)


def phi(x):
    return 0.5 * (1 + torch.erf(x / math.sqrt(2)))


ACTIVATIONS = {
    "relu": lambda x: x * (x > 0),
    "gelu": lambda x: x * phi(x),
    "swiglu": lambda x: x / (1 + torch.exp(-x)),
    "geglu": lambda x: x * phi(x),
}


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_an_activation_is_that_of_its_formula(activation):
    config = Transformer.Config(dim=6, heads=1, feedforward=10, dropout=0.3, activation=activation)
    network, x = randomised(feedforward(config)), torch.randn(4, 6)
    inner, outer = network[0], network[-1]
    hidden = ACTIVATIONS[activation](x @ inner.weight[:10].T + inner.bias[:10])
    if activation.endswith("glu"):  # (g(x W) * x V) W2
        hidden = hidden * (x @ inner.weight[10:].T + inner.bias[10:])
    assert_close(network(x), hidden @ outer.weight.T + outer.bias, **CLOSE)
    assert network[2].probability == 0.3
    assert feedforward(config.model_copy(update={"activation_dropout": 0.1}))[2].probability == 0.1


# Layouts


def test_decoder_only_is_an_encoder_of_torch_with_the_mask_of_a_prefix_language_model(build, source, tokens):
    model = perturbed(build("transformer-decoder_only", positions="none"))
    row, target = source[:1], tokens[:1]
    theirs = nn.TransformerEncoderLayer(16, 2, 24, 0.0, batch_first=True, norm_first=True)
    stack = nn.TransformerEncoder(theirs, 2, model.decoder.norm, enable_nested_tensor=False)
    for copy, original in zip(stack.layers, model.decoder.layers, strict=True):
        copy_layer(original, copy)
    scale = model.source_embedding.scale
    tables = ((model.source_embedding, row), (model.target_embedding, target))
    embedded = torch.cat([scale * table.tokens.weight[ids] for table, ids in tables], 1)
    hidden = torch.ones(13, 13, dtype=torch.bool).triu(1)
    hidden[:, :6] = False  # everybody sees the source
    hidden[:6, 6:] = True
    assert_close(logits_of(model, row, target), model.output(stack.eval()(embedded, mask=hidden))[:, 6:], **CLOSE)


def test_in_decoder_only_positions_of_the_target_follow_those_of_the_source(build, source):
    new = Tokens.of(torch.full((3, 2), 4))
    target, seen = after_source(new, Tokens.of(source))
    lengths = (source > 0).sum(1).tolist()
    assert seen.places[0].queries.tolist() == [[n, n + 1] for n in lengths]
    assert target.positions.tolist() == seen.places[0].queries.flatten().tolist()
    assert seen.places[0].keys[1].tolist() == [0, 1, 2, 3, 4, 5, lengths[1], lengths[1] + 1]
    longest = build("transformer-decoder_only_learned", max_positions=8)
    source = torch.full((1, 8), 4)
    assert logits_of(longest, source, source).isfinite().all(), "learned positions suffice for source and target"


def test_the_original_transformer_has_63_million_parameters():
    config = Transformer.Config(
        dim=512, heads=8, feedforward=2048, encoder_layers=6, decoder_layers=6, norm="post", tie_output=True,
        share_embeddings=True,
    )  # fmt: skip
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
