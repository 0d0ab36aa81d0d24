"""What every architecture promises, and each part against a slow or independent computation of its paper's formula."""

import math

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from tasks.errors import UserError
from tests.conftest import BAGS, SOURCE_VOCAB, TARGET_VOCAB
from tfstudy import models
from tfstudy.data.vocabulary import EOS, PAD
from tfstudy.models.attention import KeyValue, MultiHeadAttention
from tfstudy.models.base import Dropout, Model, parameter_count, select_rows
from tfstudy.models.cnn import CNN, GatedConvolution, scale_gradient
from tfstudy.models.lstm import LSTM, Attention
from tfstudy.models.ragged import Block, joined, parted, positions, shapes
from tfstudy.models.transformer import Layer, Transformer

CLOSE = {"atol": 3e-5, "rtol": 1e-4}  # float32 in another order of addition


def decoded(model, tokens, state, sizes):
    """Logits after all tokens, decoded in pieces of these sizes."""
    out = []
    for piece in tokens.split(sizes, 1):
        logits, state = model.decode(piece, state)
        out.append(logits)
    return torch.cat(out, 1)


def leaves(state):
    return [state] if isinstance(state, torch.Tensor) else [leaf for part in state for leaf in leaves(part)]


def randomised(module):
    for parameter in module.parameters():
        nn.init.normal_(parameter, std=0.4)
    return module.eval()


# What every architecture promises


@pytest.mark.parametrize("sizes", [[1] * 7, [2, 2, 2, 1], [3, 3, 1], [1, 4, 2]], ids=str)
def test_decoding_in_pieces_equals_teacher_forcing(model, source, tokens, sizes):
    mask = source != PAD
    assert_close(decoded(model, tokens, model.encode(source, mask), sizes), model(source, mask, tokens), **CLOSE)


@pytest.mark.parametrize("place", [1, 3, 6])
def test_no_logit_depends_on_a_later_token(model, source, tokens, place):
    changed = tokens.clone()
    changed[:, place:] = 12 - changed[:, place:]  # 4..8 becomes 8..4
    changed[:, place] = torch.where(changed[:, place] == tokens[:, place], 4, changed[:, place])
    before, after = (model(source, source != PAD, t) for t in (tokens, changed))
    assert_close(before[:, :place], after[:, :place], **CLOSE)
    assert (before[:, place] - after[:, place]).abs().amax(-1).min() > 1e-3


def test_blocks_of_any_shapes_have_the_logits_of_each_alone(model, source, tokens):
    sources = [source[:1, :4], source, source[1:], source[:0]]
    given = [tokens[:1], tokens[:, :3], tokens[1:, :1], tokens[:0]]
    blocks = [Block(s, s != PAD, t) for s, t in zip(sources, given, strict=True)]
    expected = [model(*block).flatten(0, 1) for block in blocks]
    assert_close(model.forward_blocks(blocks), torch.cat(expected), **CLOSE)
    assert_close(model.forward_blocks(blocks[1:2]), expected[1], **CLOSE)


@pytest.mark.parametrize("filler", [PAD, 7])
def test_padding_changes_nothing(model, source, tokens, filler):
    mask = source != PAD
    longer = torch.cat([source.masked_fill(~mask, filler), torch.full((3, 4), filler)], 1)
    longer_mask = torch.cat([mask, torch.zeros(3, 4, dtype=torch.bool)], 1)
    assert_close(model(longer, longer_mask, tokens), model(source, mask, tokens), **CLOSE)


@pytest.mark.parametrize("row", range(3))
def test_a_batch_of_one_equals_its_row_of_a_larger_batch(model, source, tokens, row):
    whole = model(source, source != PAD, tokens)
    alone = source[row : row + 1, : (source[row] != PAD).sum()]
    assert_close(model(alone, alone != PAD, tokens[row : row + 1])[0], whole[row], **CLOSE)


def test_an_empty_batch_gives_no_logits(model, source, tokens):
    assert model(source[:0], source[:0] != PAD, tokens[:0]).shape == (0, 7, TARGET_VOCAB)


def test_source_order_matters_except_to_bags(model, variant, source, tokens):
    mask = source != PAD
    swapped = source[:1, [3, 1, 2, 0, 4, 5]]
    difference = (model(swapped, mask[:1], tokens[:1]) - model(source[:1], mask[:1], tokens[:1])).abs().max()
    if variant in BAGS:
        assert difference < 3e-5
    else:
        assert difference > 1e-3


def test_select_rows_reorders_repeats_and_drops_rows(model, source, tokens):
    mask, rows = source != PAD, torch.tensor([2, 0, 2, 2])
    _, state = model.decode(tokens[:, :3], model.encode(source, mask))
    logits, _ = model.decode(tokens[rows, 3:], select_rows(state, rows))
    assert_close(logits, model(source, mask, tokens)[rows, 3:], **CLOSE)


def test_select_rows_refuses_what_is_no_tensor():
    with pytest.raises(TypeError, match="has a list"):
        select_rows((torch.zeros(2), [1]), torch.tensor([0]))


def test_a_state_is_a_value(model, source, tokens):
    _, state = model.decode(tokens[:, :2], model.encode(source, source != PAD))
    before = [leaf.clone() for leaf in leaves(state)]
    first, _ = model.decode(tokens[:, 2:4], state)
    model.decode(tokens[:, 4:], state)
    second, _ = model.decode(tokens[:, 2:4], state)
    assert torch.equal(first, second)
    assert all(torch.equal(a, b) for a, b in zip(before, leaves(state), strict=True))


def test_every_tensor_of_a_state_has_the_batch_first(model, source, tokens):
    state = model.encode(source, source != PAD)
    assert {len(leaf) for leaf in leaves(state) + leaves(model.decode(tokens, state)[1])} == {3}


def test_gradients_reach_every_parameter(variant, build, source, tokens):
    model = build(variant, dropout=0.0)
    nn.functional.cross_entropy(
        model(source, source != PAD, tokens).flatten(0, 1), tokens.roll(-1).flatten()
    ).backward()
    assert [n for n, p in model.named_parameters() if p.grad is None or not p.grad.abs().max() > 1e-9] == []


def test_one_batch_can_be_learnt_by_heart(variant, build, source):
    from tfstudy.evaluation.decoding import greedy

    model, mask = build(variant, dropout=0.0), source != PAD
    target = torch.tensor([[1, 4, 5, 6, 7, 2], [1, 8, 2, 0, 0, 0], [1, 6, 7, 4, 2, 0]])
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01, fused=True)
    for _ in range(200):
        logits = model(source, mask, target[:, :-1]).flatten(0, 1)
        loss = nn.functional.cross_entropy(logits, target[:, 1:].flatten(), ignore_index=PAD)
        if loss < 0.01:
            break
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert loss < 0.01
    assert greedy(model.eval(), source, mask, 9) == [[4, 5, 6, 7], [8], [6, 7, 4]]


def test_dropout_acts_in_training_only(variant, build, source, tokens):
    model = build(variant, dropout=0.3)
    assert (model(source, source != PAD, tokens) - model(source, source != PAD, tokens)).abs().max() > 1e-4
    model.eval()
    assert torch.equal(model(source, source != PAD, tokens), model(source, source != PAD, tokens))


def test_a_model_works_in_double_precision(model, source, tokens):
    single = model(source, source != PAD, tokens)
    double = model.double()(source, source != PAD, tokens)
    assert double.dtype == torch.float64
    assert_close(double.float(), single, **CLOSE)


def test_weights_can_be_saved_and_loaded(variant, build, model, source, tokens):
    other = build(variant).eval()
    other.load_state_dict(model.state_dict())
    assert torch.equal(other(source, source != PAD, tokens), model(source, source != PAD, tokens))


# Blocks


def test_blocks_are_joined_row_by_row_and_parted_again():
    blocks = [torch.tensor([[1, 2, 3], [4, 5, 6]]), torch.tensor([[7]]), torch.zeros(0, 4, dtype=torch.long)]
    assert joined(blocks).tolist() == [1, 2, 3, 4, 5, 6, 7]
    again = parted(joined(blocks), shapes(blocks))
    assert all(torch.equal(a, b) for a, b in zip(again, blocks, strict=True))
    assert positions(blocks, 5).tolist() == [5, 6, 7, 5, 6, 7, 5]
    assert joined(blocks[:1]).data_ptr() == blocks[0].data_ptr(), "one block is not copied"


# The registry and wrong configs


def test_architectures_are_found_by_name():
    assert {"cnn", "lstm", "transformer"} <= set(models.names())
    assert [models.find(name) for name in ("cnn", "lstm", "transformer")] == [CNN, LSTM, Transformer]


def test_an_unknown_architecture_is_refused_with_the_nearest_name():
    with pytest.raises(UserError, match="did you mean 'transformer'"):
        models.find("transfomer")


def test_a_subclass_of_an_architecture_is_refused():
    with pytest.raises(TypeError, match="architectures are final"):
        type("Larger", (LSTM,), {})


def test_a_model_without_decode_is_refused():
    with pytest.raises(TypeError, match="abstract"):
        type("Half", (Model,), {"encode": lambda *_: None})(None, 5, 5)


def test_heads_must_divide_dim():
    with pytest.raises(ValueError, match=r"heads must divide dim \(16\), but is 3"):
        Transformer.Config(dim=16, heads=3)


def test_shared_embeddings_need_one_vocabulary():
    with pytest.raises(ValueError, match="share_embeddings needs one vocabulary, but there are 7 and 8"):
        Transformer(Transformer.Config(dim=16, share_embeddings=True), 7, 8)


@pytest.mark.parametrize("wrong", [{"dim": 0}, {"dropout": 1.0}, {"dropout": math.nan}, {"width": 3}], ids=str)
@pytest.mark.parametrize("cls", [CNN, LSTM, Transformer])
def test_values_out_of_range_and_unknown_keys_are_refused(cls, wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        cls.Config(**wrong)


def test_shapes_are_checked_while_tests_run(transformer, source):
    from jaxtyping import TypeCheckError

    with pytest.raises(TypeCheckError):
        transformer.encode(source, source[:2] != PAD)


# Attention and the Transformer


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
def test_attention_looks_at_its_own_row_of_its_own_block_only(causal):
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


def test_a_cache_grows_at_its_end():
    attention, x = randomised(MultiHeadAttention(12, 3)), torch.randn(2, 5, 12)
    [whole] = attention.project(x.flatten(0, 1), [(2, 5)])
    first, second = attention.project(joined([x[:, :3], x[:, 3:]]), [(2, 3), (2, 2)])
    assert_close(tuple(first.append(second)), tuple(whole))


def test_attention_agrees_with_that_of_torch():
    attention, x, y = randomised(MultiHeadAttention(12, 3)), torch.randn(2, 4, 12), torch.randn(2, 5, 12)
    reference = nn.MultiheadAttention(12, 3, batch_first=True)
    copy_attention(attention, reference)
    mask = torch.tensor([[True] * 5, [True, True, False, False, False]])
    expected = reference(x, y, y, key_padding_mask=~mask, need_weights=False)[0]
    got = attention(joined([x]), [(2, 4)], attention.project(joined([y]), [(2, 5)]), [mask[:, None, None]])
    assert_close(got.view(2, 4, 12), expected, **CLOSE)


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
    got = layer.encode(joined([x]), [(2, 5)], [mask[:, None, None]]).view(2, 5, 12)
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
    none = KeyValue(torch.zeros(2, 3, 0, 4), torch.zeros(2, 3, 0, 4))
    ahead = nn.Transformer.generate_square_subsequent_mask(4)
    expected = theirs(x, y, tgt_mask=ahead.isinf(), memory_key_padding_mask=~mask)
    memory = layer.cross.project(joined([y]), [(2, 5)])
    got, _ = layer.decode(joined([x]), [(2, 4)], [none], memory, [mask[:, None, None]])
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
    assert parameter_count(model) == 37_000 * 512 + encoder + decoder == 63_082_496


# The LSTM


@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("bidirectional", [True, False])
def test_the_lstm_encoder_agrees_with_that_of_torch_on_packed_sequences(source, layers, bidirectional):
    config = LSTM.Config(dim=8, hidden=6, layers=layers, bidirectional=bidirectional)
    model = randomised(LSTM(config, SOURCE_VOCAB, TARGET_VOCAB))
    reference = nn.LSTM(8, 6, layers, bidirectional=bidirectional, batch_first=True)
    with torch.no_grad():
        for theirs, ours in zip(reference.parameters(), model.encoder.parameters(), strict=True):
            theirs.copy_(ours)
    mask = source != PAD
    state = model.encode(source, mask)
    packed = nn.utils.rnn.pack_padded_sequence(
        model.source_embedding(source), mask.sum(1), batch_first=True, enforce_sorted=False
    )
    outputs, (last, _) = reference(packed)
    expected = nn.utils.rnn.pad_packed_sequence(outputs, batch_first=True)[0]
    assert_close(state.values[mask], expected[mask], **CLOSE)
    for layer in range(layers):
        ends = torch.cat(list(last.unflatten(0, (layers, -1))[layer]), -1)
        hidden, cell = model.bridge[layer](ends).chunk(2, -1)
        assert_close((state.hidden[:, layer], state.cell[:, layer]), (hidden.tanh(), cell), **CLOSE)


@pytest.mark.parametrize("input_feeding", [True, False])
@pytest.mark.parametrize("attention", ["multiplicative", "additive", "none"])
def test_the_lstm_decoder_agrees_with_a_loop_over_cells(source, tokens, attention, input_feeding):
    config = LSTM.Config(dim=8, hidden=6, attention=attention, input_feeding=input_feeding)
    model = randomised(LSTM(config, SOURCE_VOCAB, TARGET_VOCAB))
    mask = source != PAD
    start = model.encode(source, mask)
    cell = nn.LSTMCell(8 + 6 * input_feeding, 6)
    cell.load_state_dict({name.removesuffix("_l0"): value for name, value in model.decoder[0].state_dict().items()})
    for row in range(3):
        encoded = start.values[row, mask[row]]
        hidden, memory, fed = start.hidden[row], start.cell[row], torch.zeros(1, 6)
        for step, token in enumerate(tokens[row]):
            x = model.target_embedding(token)[None]
            hidden, memory = cell(torch.cat([x, fed], 1) if input_feeding else x, (hidden, memory))
            fed = torch.tanh(model.combine(torch.cat([hidden, context_by_hand(model.attention, hidden, encoded)], 1)))
            expected = model.output(fed)[0]
            assert_close(model(source, mask, tokens)[row, step], expected, **CLOSE)


def context_by_hand(attention, query, encoded):
    if attention.kind == "none":
        return query[:, :0]
    if attention.kind == "additive":  # v^T tanh(W s + U h), Bahdanau et al. 2015, appendix A.1.2
        scores = [attention.score(torch.tanh(attention.query(query[0]) + attention.key(h))) for h in encoded]
    else:  # s^T W h, Luong et al. 2015, eq. 8, scaled by sqrt(hidden)
        scores = [(query[0] @ attention.key(h) / math.sqrt(query.shape[1]))[None] for h in encoded]
    weights = torch.cat(scores).exp()
    return (weights / weights.sum() @ encoded)[None]


def test_attention_none_has_no_parameters():
    assert parameter_count(Attention("none", 6, 12)) == 0


def test_forget_gates_start_with_a_bias_of_one(build):
    state = build("lstm").decoder[0].state_dict()
    bias = state["bias_ih_l0"] + state["bias_hh_l0"]
    assert_close(bias.view(4, 20), torch.tensor([0.0, 1.0, 0.0, 0.0])[:, None].expand(4, 20))


# The convolutional network


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
    blocks = [torch.randn(rows, length + kernel - 1, 6).double() for rows, length in ((2, 1), (1, 7), (3, 4))]
    assert_close(layer.product(blocks), layer.convolution(blocks))
    assert layer(blocks).shape == (2 * 1 + 1 * 7 + 3 * 4, 4)


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
        grads[layers], exact = torch.autograd.grad(state.keys.sum(), [model.encoder_out.bias, state.keys])
        assert_close(grads[layers], exact.sum((0, 1)) / (2 * layers))


# Dropout


@pytest.mark.parametrize("probability", [0.1, 0.5, 0.9])
def test_dropout_keeps_the_expectation_and_drops_its_share(probability):
    torch.manual_seed(0)
    n = 400_001
    y = Dropout(probability)(torch.ones(n))
    error = math.sqrt(probability * (1 - probability) / n)
    assert abs((y == 0).double().mean() - probability) < 4 * error
    assert abs(y.double().mean() - 1) < 4 * error / (1 - probability)
    assert_close(y[y != 0].unique(), torch.tensor([1 / (1 - probability)]), rtol=1e-4, atol=0)


def test_dropped_elements_are_independent_of_their_neighbours():
    torch.manual_seed(0)
    n = 400_000
    dropped = (Dropout(0.3)(torch.ones(n)) == 0).double() - 0.3
    for lag in (1, 2, 3, 4, 5):
        assert abs((dropped[lag:] * dropped[:-lag]).mean()) < 4 * 0.3 * 0.7 / math.sqrt(n)


def test_dropout_in_eval_mode_is_the_identity():
    x = torch.randn(7)
    assert Dropout(0.5).eval()(x) is x
    assert Dropout(0.0)(x) is x


def test_dropout_is_reproducible_by_seed():
    def draw(seed):
        torch.manual_seed(seed)
        return Dropout(0.5)(torch.ones(101))

    assert torch.equal(draw(3), draw(3))
    assert not torch.equal(draw(3), draw(4))


@pytest.mark.parametrize("shape", [(), (1,), (3,), (5,), (2, 3, 7), (0, 4)], ids=str)
def test_dropout_takes_any_shape_and_kind_of_float(shape):
    for dtype in (torch.float32, torch.float64, torch.bfloat16):
        y = Dropout(0.5)(torch.ones(shape, dtype=dtype))
        assert y.shape == shape
        assert y.dtype == dtype
        assert set(y.flatten().tolist()) <= {0.0, 2.0}


def test_dropout_scales_the_gradient_as_it_scales_the_value():
    x = torch.ones(50, requires_grad=True)
    y = Dropout(0.5)(x)
    y.sum().backward()
    assert torch.equal(x.grad, y.detach())
