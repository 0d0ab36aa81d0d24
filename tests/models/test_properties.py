"""Properties that every architecture has, in each of its variants. `conftest.py` finds them by name."""

import pytest
import torch
from torch import nn
from torch.nn.utils.parametrize import is_parametrized
from torch.testing import assert_close

from tests.conftest import TARGET_VOCAB
from tests.models.reference import CLOSE
from tfstudy import models
from tfstudy.data.vocabulary import PAD
from tfstudy.evaluation.decoding import greedy
from tfstudy.models.base import RaggedModel, select_hypotheses, select_rows
from tfstudy.models.cache import Cache
from tfstudy.models.ragged import RaggedGroup


def decoded(model, tokens, state, sizes):
    """Logits after all tokens, decoded in pieces of these sizes."""
    out = []
    for piece in tokens.split(sizes, 1):
        logits, state = model.decode(piece, state)
        out.append(logits)
    return torch.cat(out, 1)


def leaves(state):
    if isinstance(state, Cache):
        return leaves(state.seen)
    return [state] if isinstance(state, torch.Tensor) else [leaf for part in state for leaf in leaves(part)]


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


def test_groups_of_any_shapes_have_the_logits_of_each_alone(model, source, tokens):
    sources = [source[:1, :4], source, source[1:], source[:0]]
    given = [tokens[:1], tokens[:, :3], tokens[1:, :1], tokens[:0]]
    groups = [RaggedGroup(s, s != PAD, t) for s, t in zip(sources, given, strict=True)]
    expected = [model(*group).flatten(0, 1) for group in groups]
    assert_close(model.forward_groups(groups), torch.cat(expected), **CLOSE)
    assert_close(model.forward_groups(groups[1:2]), expected[1], **CLOSE)


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
    arch, _, name = variant.partition("-")
    if name in models.find(arch).bags:
        assert difference < 3e-5
    else:
        assert difference > 1e-3


def test_select_rows_reorders_repeats_and_drops_rows(model, source, tokens):
    mask, rows = source != PAD, torch.tensor([2, 0, 2, 2])
    _, state = model.decode(tokens[:, :3], model.encode(source, mask))
    logits, _ = model.decode(tokens[rows, 3:], select_rows(state, rows))
    assert_close(logits, model(source, mask, tokens)[rows, 3:], **CLOSE)


def test_hypotheses_of_one_source_share_its_state(model, source, tokens):
    mask, sources, first = source != PAD, torch.tensor([2, 0]), torch.tensor([2, 2, 2, 0, 0, 0])
    prefixes = torch.stack([tokens.roll(k, 0) for k in range(3)], 1)[sources]  # (sources, hypotheses, tokens)
    state = select_hypotheses(model.encode(source, mask), first, sources)
    _, state = model.decode(prefixes[..., :2].flatten(0, 1), state)
    order = torch.tensor([1, 0, 0, 5, 4, 5])
    logits, _ = model.decode(prefixes[..., 2:].flatten(0, 1)[order], select_hypotheses(state, order))
    expected = model(source[first], mask[first], prefixes.flatten(0, 1)[order])[:, 2:]
    assert_close(logits, expected, **CLOSE)


def test_select_rows_refuses_what_is_no_tensor():
    with pytest.raises(TypeError, match="list"):
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


def test_one_batch_can_be_memorised(variant, build, source):
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
    assert greedy(model.eval(), source, mask, torch.full((3,), 9)) == [[4, 5, 6, 7], [8], [6, 7, 4]]


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


def test_groups_with_caches_of_different_length_decode_as_each_alone(model, source, tokens):
    if not isinstance(model, RaggedModel):
        pytest.skip("it decodes one group at a time")
    sources, decoded_before = (source[:1], source[1:]), (tokens[:1, :4], tokens[1:, :1])
    following = [tokens[:1, 4:6], tokens[1:, 1:4]]
    states = [model.decode(t, model.encode(s, s != PAD))[1] for s, t in zip(sources, decoded_before, strict=True)]
    logits, after = model.decode_groups(following, states)
    alone = [model.decode(t, state) for t, state in zip(following, states, strict=True)]
    assert_close(logits, torch.cat([single.flatten(0, 1) for single, _ in alone]), **CLOSE)
    for together, (_, single) in zip(after, alone, strict=True):
        assert_close(leaves(together), leaves(single), **CLOSE)


def test_weight_decay_spares_vectors_and_no_weight_of_a_layer(model):
    spared = {id(parameter) for parameter in model.parameters_without_decay()}
    assert spared <= {id(parameter) for parameter in model.parameters()}
    assert all(id(parameter) in spared for parameter in model.parameters() if parameter.ndim < 2)
    for layer in model.modules():
        if isinstance(layer, nn.Linear | nn.Embedding | nn.LSTM) and not is_parametrized(layer):
            assert not [p for p in layer.parameters(recurse=False) if p.ndim > 1 and id(p) in spared]
