"""The loss by the value of a tag, and errors by position: those of models whose outputs are known."""

import pytest
import torch
from torch.nn.functional import one_hot

from tfstudy.data.encoding import EOS
from tfstudy.errors import UserError
from tfstudy.evaluation.decoding import greedy
from tfstudy.instruments.examples import TeacherForced
from tfstudy.instruments.loss_by_tag import scores_of
from tfstudy.instruments.position_error import error_positions, length_groups
from tfstudy.models.base import PaddedModel
from tfstudy.models.config import ModelConfig
from tfstudy.models.tokens import Tokens
from tfstudy.tasks.base import Example


class Successor(PaddedModel):
    """Predicts the token after the last one; 4 comes first."""

    def encode_padded(self, source, mask):
        return (source,)

    def decode_padded(self, tokens, state):
        return 10.0 * one_hot(tokens.clamp(min=3) + 1, 12), state


def test_errors_are_those_of_a_model_that_counts():
    source = torch.tensor([[4, 2]])
    tokens, gold = torch.tensor([[1, 4, 5, 7, 8]]), torch.tensor([[4, 5, 7, 8, 2]])
    batch = TeacherForced([], source, tokens, gold)
    errors = error_positions(Successor(ModelConfig(), 12, 12), batch)
    assert {name: where.int().tolist() for name, where in errors.items()} == {
        "token, teacher-forced": [[0, 0, 1, 0, 1]],
        "token, free-running": [[0, 0, 1, 1, 1]],  # 4 5 6 7 8
        "prefix": [[0, 0, 1, 1, 1]],
    }


def test_lengths_are_grouped_by_their_number_of_examples():
    assert length_groups({1: 5, 2: 5, 3: 10, 4: 10, 5: 10}) == [[1, 2], [3], [4], [5]]
    assert length_groups({7: 1}) == [[7]]


def test_the_first_error_is_the_same_with_teacher_forcing(subject, measure):
    rows = measure("position_error", subject("lstm"), split="test", examples=30)
    assert {row["length"] for row in rows} == {"5 tokens"}
    rates = {(row["error"], row["position"]): row["rate"] for row in rows}
    assert rates["token, teacher-forced", 1] == rates["token, free-running", 1] == rates["prefix", 1]
    assert [rates["prefix", i] for i in range(1, 7)] == sorted(rates["prefix", i] for i in range(1, 7))
    assert rates["prefix", 6] == pytest.approx(1, abs=0.2)


def found(rows, quantity):
    return {row["tag"]: row["value"] for row in rows if row["quantity"] == quantity}


def loss_and_match(subject, example):
    """The negative log probability of a target, token by token without teacher forcing of a batch, and exact match."""
    model, source = subject.model, torch.tensor([[*subject.data.source_vocab.encode(example.source), EOS]])
    gold, total = [*subject.data.target_vocab.encode(example.target), EOS], 0.0
    with torch.no_grad():
        state, last = model.encode(Tokens.of(source)), 1
        for token in gold:
            logits, state = model.decode(Tokens.of(torch.tensor([[last]])), state)
            total -= float(logits[0].double().log_softmax(-1)[token])
            last = token
        [output] = greedy(model, Tokens.of(source), torch.tensor([len(gold)]))
    return total, output == gold[:-1]


@pytest.mark.parametrize("name", ["transformer", "lstm-tanh", "transformer-encoder_only"])
@pytest.mark.parametrize("tag", ["length", "first"])
def test_the_numbers_are_those_of_each_example_on_its_own(subject, measure, name, tag):
    one = subject(name)
    rows = measure("loss_by_tag", one, tag=tag)
    examples = one.task.examples("validation")
    for value in {e.tags[tag] for e in examples}:
        group = [e for e in examples if e.tags[tag] == value]
        losses, matches = zip(*(loss_and_match(one, e) for e in group), strict=True)
        tokens = sum(len(e.target) + 1 for e in group)
        assert found(rows, "loss per target token (nats)")[value] == pytest.approx(sum(losses) / tokens, rel=1e-4)
        assert found(rows, "exact match")[value] == pytest.approx(sum(matches) / len(group))
        assert found(rows, "examples")[value] == len(group)


def test_an_exact_match_has_no_wrong_token():
    source, gold = torch.tensor([[4, 2]] * 2), torch.tensor([[4, 5, 6], [4, 5, 7]])
    tokens = torch.tensor([[1, 4, 5]] * 2)
    batch = TeacherForced([Example((), (), {})] * 2, source, tokens, gold)
    assert [one.exact for one in scores_of(Successor(ModelConfig(), 12, 12), batch)] == [True, False]


def test_a_message_names_the_tags_of_the_examples(subject, measure, monkeypatch):
    one = subject("lstm")
    with pytest.raises(UserError, match="unknown tag 'depth'; expected one of: length, first"):
        measure("loss_by_tag", one, tag="depth")
    examples = [e._replace(tags={}) for e in one.task.examples("train")]
    monkeypatch.setattr(one.task, "examples", lambda split: examples)
    with pytest.raises(UserError, match="needs examples with tags"):
        measure("loss_by_tag", one)
