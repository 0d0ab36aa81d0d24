"""Patching: a state of the same source has no effect, and the embedding of the only token that differs has all."""

import pytest
import torch
from torch.testing import assert_close

from tfstudy.errors import UserError
from tfstudy.instruments.patching import Difference, Patch, nearest_pair, patching_effects
from tfstudy.models.parts.observing import observing, record_states
from tfstudy.models.parts.tokens import RaggedGroup
from tfstudy.tasks.base import Example

NAMES = ["transformer", "lstm", "lstm-input_feeding", "cnn", "mingru"]
SOURCES = torch.tensor([[4, 5, 6, 2], [4, 7, 6, 2]])
INPUTS = torch.tensor([[1, 4, 5]] * 2)


@pytest.mark.parametrize("name", NAMES)
def test_the_embedding_of_the_token_that_differs_has_the_whole_effect(name, build):
    model = build(name).double().eval()
    found = dict(patching_effects(model, Difference(SOURCES, INPUTS, torch.tensor([4, 6]))))
    effects = {site: effect for site, effect in found.items() if site.layer == 0}
    assert_close(list(effects.values()), [torch.tensor([0.0, 1, 0, 0]).double(), torch.zeros(3).double()])
    assert len(found) > len(effects)


@pytest.mark.parametrize("name", NAMES)
def test_patching_with_the_states_of_the_same_source_changes_nothing(name, build):
    model = build(name).eval()
    group = RaggedGroup(SOURCES[:1], SOURCES[:1] > 0, INPUTS[:1])
    recorded = record_states(model, group)
    for site, states in recorded.states().items():
        rows = RaggedGroup(*(x.expand(states.shape[1], -1) for x in group))
        with observing(Patch(site, states[0])):
            logits = model(*rows)
        assert_close(logits, recorded.logits.expand_as(logits))


def test_the_pair_that_differs_in_the_fewest_tokens_is_chosen():
    examples = [Example(tuple(s), tuple(t), {}) for s, t in (("abc", "x"), ("abd", "x"), ("aad", "y"), ("ab", "z"))]
    assert nearest_pair(examples) == (tuple("abd"), tuple("aad"))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"source": "a b", "other": "a b c"}, "2 and 3"),
        ({"source": "a b"}, "other is missing"),
        ({"source": "a b", "other": "a d"}, "'d'"),
        ({"source": "a b", "other": "a b"}, "the same"),
    ],
)
def test_sources_that_can_not_be_compared_are_refused(settings, message, subject, measure):
    with pytest.raises(UserError, match=message):
        measure("patching", subject("transformer"), **settings)


@pytest.mark.parametrize("name", ["transformer-share_embeddings", "lstm-tanh", "cnn-dilated", "mingru-hybrid"])
def test_a_model_that_copies_reads_tokens_that_can_not_be_patched(name, subject, measure):
    with pytest.raises(UserError, match=r"model\.copy_output=false"):
        measure("patching", subject(name), source="a b", other="a c")


def test_positions_are_named_by_both_tokens_where_they_differ(subject, measure):
    given = subject("transformer", positions="sinusoidal")
    rows = measure("patching", given, source="a b c", other="a c c")
    names = list(dict.fromkeys(row["position"] for row in rows if row["sequence"] == "source"))
    assert names == ["1 a", "2 b/c", "3 c", "4 <eos>"]
