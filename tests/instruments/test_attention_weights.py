"""Attention entropy and what heads attend to, by independent computations."""

import math

import pytest
import torch

from tfstudy.data.encoding import BOS, EOS
from tfstudy.instruments.entropy import entropy_share
from tfstudy.instruments.examples import ExampleSettings, recorded_weights
from tfstudy.instruments.head_roles import ROLES, Keys, role_sums, roles, tokens_of


def causal(count):
    return torch.ones(1, 1, count, count, dtype=torch.bool).tril()


def test_the_share_is_the_mean_over_queries_that_see_several_keys():
    weights = torch.tensor([[1.0, 0.0, 0.0], [0.9, 0.1, 0.0], [0.2, 0.3, 0.5]])[None, None]
    shares = [-sum(w * math.log(w) for w in row) / math.log(len(row)) for row in ((0.9, 0.1), (0.2, 0.3, 0.5))]
    assert entropy_share(weights, causal(3)).item() == pytest.approx(sum(shares) / 2, abs=1e-6)


def test_a_visible_key_counts_even_if_its_weight_underflows():
    scores = torch.tensor([[200.0, 200, 0, 0], [300, 0, 0, 0]])[None, None]
    shares = [entropy_share(row.softmax(-1), torch.ones_like(row, dtype=torch.bool)) for row in scores.split(1, 2)]
    assert [share.item() for share in shares] == pytest.approx([0.5, 0.0])
    assert entropy_share(scores.softmax(-1), torch.ones_like(scores, dtype=torch.bool)).item() == pytest.approx(0.25)


IDS = torch.tensor([[7, 8, 7, 9, EOS]])
HEADS = {  # the keys that a hand-made head attends to
    "previous": [0, 0, 1, 2, 3],
    "next": [1, 2, 3, 4, 4],
    "same": [0, 1, 2, 3, 4],
    "delimiter": [4, 4, 4, 4, 4],
    "content": [2, 1, 0, 3, 4],
}


def scores(weights, ids=IDS):
    visible = torch.ones_like(weights, dtype=torch.bool)
    sums = {role: role_sums(weights, visible, keys) for role, keys in roles(Keys(ids, ids), {BOS, EOS}).items()}
    return {role: (total / count).tolist() for role, (total, _, count) in sums.items()}


@pytest.mark.parametrize("role", ROLES)
def test_a_hand_made_head_has_the_score_1_in_its_role(role):
    weights = torch.eye(5)[HEADS[role]][None, None]
    assert scores(weights)[role] == pytest.approx([1.0], abs=1e-6)


def test_roles_are_means_over_the_queries_that_have_such_a_key():
    found = scores(torch.full((1, 2, 5, 5), 0.2))
    assert found == {role: pytest.approx([0.2, 0.2]) for role in ROLES}
    previous = torch.eye(5)[HEADS["previous"]][None, None]
    assert scores(previous)["same"] == pytest.approx([1 / 5], abs=1e-6)  # the first query attends to itself


def test_masked_keys_have_no_role():
    visible = causal(5)
    weights = visible / visible.sum(-1, keepdim=True)
    _, uniform, count = role_sums(weights, visible, roles(Keys(IDS, IDS), {EOS})["next"])
    assert (float(uniform), count) == (0.0, 0.0)
    total, uniform, count = role_sums(weights, visible, roles(Keys(IDS, IDS), {EOS})["previous"])
    assert (float(total), float(uniform), count) == (pytest.approx(77 / 60), pytest.approx(77 / 60), 4.0)


@pytest.mark.parametrize("variant", ["transformer", "transformer-relative", "transformer-decoder_only", "lstm"])
def test_visible_keys_are_those_of_the_mask_even_if_weights_underflow(subject, variant):
    one = subject(variant)
    with torch.no_grad():
        for parameter in one.model.parameters():
            parameter.mul_(300)
    underflowed = 0
    for site, weights, visible, batch in recorded_weights(one, ExampleSettings(examples=4)):
        queries, keys = weights.shape[-2:]
        before = {"decoder": 0, "prefix": batch.source.shape[1]}.get(site.kind, keys)
        expected = torch.ones(queries, keys, dtype=torch.bool).tril(before)
        assert torch.equal(visible, expected.expand_as(weights))
        assert not weights[~visible].any()
        underflowed += int((weights[visible] == 0).sum())
    assert underflowed


def test_queries_of_cross_attention_are_the_tokens_that_are_predicted(subject):
    one = subject("lstm")
    names = one.data.target_vocab.tokens
    for site, _, _, batch in recorded_weights(one, ExampleSettings(examples=4)):
        for ids, words in zip(tokens_of(site, batch, one.data), ("target", "source"), strict=True):
            assert [[names[i] for i in row] for row in ids] == [[*getattr(e, words), "<eos>"] for e in batch.examples]


@pytest.mark.parametrize("variant", ["transformer", "transformer-decoder_only", "lstm", "cnn", "mingru"])
def test_every_architecture_with_attention_has_scores_and_entropies(subject, measure, variant):
    one = subject(variant)
    rows = measure("head_roles", one, examples=6)
    assert {"delimiter", "content", "same"} <= {row["role"] for row in rows if row["kind"] in ("cross", "prefix")}
    assert all(0 <= row["score"] <= 1 and 0 < row["uniform"] <= 1 for row in rows)
    shares = measure("entropy", one, examples=6)
    assert {row["kind"] for row in shares} == {row["kind"] for row in rows}
    assert all(0 <= row["entropy"] <= 1 + 1e-9 for row in shares)
