"""Attention over the source and copying from it, against sums written out."""

import pytest
import torch
from torch.testing import assert_close

from tests.conftest import VARIANTS, perturbed
from tests.models.reference import CLOSE
from tfstudy.instruments.hooks import joined, logits_of, recorded_attention
from tfstudy.models import checkpointing
from tfstudy.models.attention import Weights
from tfstudy.models.copying import CopyOutput, copied_ids, match_tokens
from tfstudy.models.source_attention import Source, attend, dot_product
from tfstudy.models.tokens import Tokens

WEIGHTS = Weights()


@pytest.mark.parametrize("bound", [2**24, 1])
def test_the_weights_are_returned_where_a_model_copies(monkeypatch, bound):
    monkeypatch.setattr(checkpointing, "MAX_ELEMENTS", bound)
    query, mask, ids = torch.randn(2, 4, 3), torch.ones(2, 5) > 0, torch.zeros(2, 5, dtype=torch.long)
    source = Source(torch.randn(2, 5, 3), torch.randn(2, 5, 7), mask)
    plain, copying = (attend(query, one, dot_product, WEIGHTS) for one in (source, source._replace(copied=ids)))
    assert plain.weights.shape == (2, 4, 0)
    assert_close(copying.weights, dot_product(query, source.keys).softmax(-1))
    assert_close(copying.contexts, plain.contexts)


@pytest.mark.parametrize("bound", [2**24, 50, 1])
def test_contexts_are_means_weighted_by_the_softmax_of_the_scores(monkeypatch, bound):
    monkeypatch.setattr(checkpointing, "MAX_ELEMENTS", bound)
    query, mask = torch.randn(2, 4, 3), torch.tensor([[True] * 5, [True, True, False, False, False]])
    source = Source(torch.randn(2, 5, 3), torch.randn(2, 5, 7), mask)
    got = attend(query, source, dot_product, WEIGHTS).contexts
    for row in range(2):
        keys, values = source.keys[row, mask[row]], source.values[row, mask[row]]
        assert_close(got[row], (query[row] @ keys.T).softmax(-1) @ values, **CLOSE)


# Copying

COPYING = [name for name, (_, config) in VARIANTS.items() if config.get("copy_output")]


def half_copying(source_vocab=6, target_vocab=5):
    """A copy output that copies with the probability 1/4, whatever it reads."""
    copy = CopyOutput(2, source_vocab, target_vocab)
    torch.nn.init.zeros_(copy.generate.weight)
    torch.nn.init.constant_(copy.generate.bias, torch.tensor(3.0).log().item())
    return copy


def test_the_distribution_is_that_of_the_paper_in_a_case_computed_by_hand():
    copy = half_copying()
    match_tokens(copy, [0, 1, 2, 3, 4, 3])  # the last token is not in the target vocabulary
    [ids] = copied_ids(copy, Tokens.of(torch.tensor([[4, 5, 4, 2]])))
    weights = torch.tensor([[[0.1, 0.2, 0.3, 0.4], [0.0, 0.0, 0.0, 1.0]]])
    logits = torch.tensor([[0.0, 0.0, 0.0, 0.0, 0.0], [0.0, 0.0, float(torch.tensor(6.0).log()), 0.0, 0.0]])
    found = copy(torch.randn(2, 2), logits, copy.copied([weights], [ids])).exp()
    first = [0.15, 0.15, 0.15 + 0.25 * 0.4, 0.15 + 0.25 * 0.2, 0.15 + 0.25 * (0.1 + 0.3)]
    assert_close(found, torch.tensor([first, [0.075, 0.075, 0.45 + 0.25, 0.075, 0.075]]))


def test_the_probabilities_sum_to_one_and_gradients_are_finite_where_nothing_is_copied():
    copy, logits = half_copying(), torch.randn(1, 5, requires_grad=True)
    weights = torch.tensor([[[1.0, 0.0]]], requires_grad=True)
    found = copy(torch.randn(1, 2), logits, copy.copied([weights], [torch.tensor([[3, 4]])]))
    assert_close(found.exp().sum(-1), torch.ones(1))
    found.logsumexp(-1).sum().backward()
    found = copy(torch.randn(1, 2), logits - 200 * torch.eye(5)[4], copy.copied([weights], [torch.tensor([[3, 3]])]))
    found[0, 4].backward()
    assert logits.grad.isfinite().all()
    assert weights.grad.isfinite().all()
    assert found[0, 4] < -80


@pytest.mark.parametrize("name", COPYING)
def test_a_model_mixes_its_output_with_the_attention_of_its_last_layer(build, name, source, tokens):
    model, read = perturbed(build(name)), []
    ids = torch.arange(3, 14) % 9 if len(model.copy.target_ids) == 11 else torch.arange(3, 12) % 9
    match_tokens(model, ids.tolist())
    model.output.register_forward_hook(lambda _, inputs, logits: read.append((inputs[0], logits)))
    with recorded_attention(model) as recorded:
        found = logits_of(model, source, tokens).exp()
    [(features, logits)] = read
    weights = joined(recorded)[max(item.site for item in recorded if item.site.kind == "cross")].mean(1)
    onehot = torch.nn.functional.one_hot(ids[source], 9).float()
    generate = model.copy.generate(features).sigmoid()
    mixed = generate * logits.softmax(-1) + (1 - generate) * (weights @ onehot).view(logits.shape)
    assert_close(found, mixed.view(found.shape), **CLOSE)
    assert_close(found.sum(-1), torch.ones(found.shape[:2]), **CLOSE)


def test_attention_that_is_copied_is_computed_once_with_dropout_or_a_listener(build, source, tokens):
    model, calls = build("transformer-share_embeddings", attention_dropout=0.3, dropout=0), []
    for layer in model.decoder.layers:
        layer.cross.register_forward_hook(lambda module, *_: calls.append(module))
    with recorded_attention(model) as recorded:
        logits_of(model, source, tokens)
    assert calls == [layer.cross for layer in model.decoder.layers]
    assert [item.site.layer for item in recorded if item.site.kind == "cross"] == [1, 2]
