"""The gated linear recurrence against loops over its steps."""

import pytest
import torch
from pydantic import ValidationError
from torch.testing import assert_close

from tests.conftest import SOURCE_VOCAB, TARGET_VOCAB
from tests.models.reference import CLOSE, randomised
from tfstudy.data.encoding import PAD
from tfstudy.models.mingru import MinGRU, recurrence
from tfstudy.models.parts.observing import Site, joined, recorded_attention


def stepwise(gates, state):
    """The states of minGRU, one step after the other."""
    states = []
    for gate in gates.unbind(1):
        update, candidate = gate[:, :4].sigmoid(), gate[:, 4:]
        state = (1 - update) * state + update * candidate
        states.append(state)
    return torch.stack(states, 1)


def test_the_recurrence_is_that_of_the_paper():
    gates, start, zero = torch.randn(2, 6, 8), torch.randn(2, 4), torch.zeros(2, 4)
    assert_close(recurrence(gates, start, None, False), stepwise(gates, start), **CLOSE)
    assert_close(recurrence(gates, None, None, True), stepwise(gates.flip(1), zero).flip(1), **CLOSE)


@pytest.mark.parametrize("backwards", [False, True])
def test_padding_leaves_the_state_as_it_is(backwards):
    gates, mask = torch.randn(1, 6, 8), torch.tensor([[True, True, True, False, False, False]])
    states = recurrence(gates, None, mask, backwards)
    assert_close(states[:, :3], recurrence(gates[:, :3], None, None, backwards), **CLOSE)
    if not backwards:
        assert_close(states[:, 3:], states[:, 2:3].expand(1, 3, 4))


def test_decoding_keeps_one_vector_for_each_layer_however_long_the_target(source):
    model = randomised(MinGRU(MinGRU.Config(**MinGRU.small, layers=3, attention="none"), SOURCE_VOCAB, TARGET_VOCAB))
    state = model.encode(source, source != PAD)
    for length in (1, 5, 40):
        _, after = model.decode(torch.full((3, length), 4), state)
        assert [tuple(hidden.shape) for hidden in after.hidden] == [(3, 20)] * 3


@pytest.mark.parametrize(
    "changes",
    [{"self_attention_every": 1}, {"self_attention_every": 3}, {"heads": 2}, {"self_attention_every": 2, "heads": 3}],
)
def test_layers_and_heads_of_self_attention_that_do_not_fit_are_refused(changes):
    with pytest.raises(ValidationError, match=r"self_attention_every|heads must divide dim"):
        MinGRU.Config(dim=16, layers=2, **changes)


def test_a_hybrid_attends_to_all_tokens_in_every_second_layer(build, source, tokens):
    model, mask = build("mingru-hybrid").eval(), source != PAD
    with recorded_attention() as recorded:
        model(source, mask, tokens)
    weights = {site: found for site, found in joined(recorded).items() if site.kind != "cross"}
    assert list(weights) == [Site("encoder", 2), Site("decoder", 2)]
    assert [tuple(found.shape) for found in weights.values()] == [(3, 2, 6, 6), (3, 2, 7, 7)]
    assert (weights[Site("encoder", 2)] > 0).all(1).all(1).equal(mask), "the encoder sees all tokens, and no padding"
    assert (weights[Site("decoder", 2)] > 0).equal(torch.ones(3, 2, 7, 7).tril() > 0)


def test_the_encoder_of_a_hybrid_in_one_direction_sees_no_later_token(build, source):
    model, mask = build("mingru-hybrid-forwards").eval(), source != PAD
    changed = source.clone()
    changed[0, 4] = 4
    before, after = (model.encode(tokens, mask).source.values[0] for tokens in (source, changed))
    assert_close(before[:4], after[:4])
    assert (before[4] - after[4]).abs().max() > 1e-3
