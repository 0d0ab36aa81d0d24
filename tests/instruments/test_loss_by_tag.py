"""The loss by the value of a tag: an independent computation, and messages that name the tags of the examples."""

import pytest
import torch

from tests.instruments.test_position_error import Successor
from tfstudy.data.encoding import EOS
from tfstudy.errors import UserError
from tfstudy.evaluation.decoding import greedy
from tfstudy.instruments.examples import TeacherForced
from tfstudy.instruments.loss_by_tag import LossByTag, scores_of
from tfstudy.models.config import ModelConfig
from tfstudy.tasks.base import Example


def found(rows, quantity):
    return {row["tag"]: row["value"] for row in rows if row["quantity"] == quantity}


def loss_and_match(subject, example):
    """The negative log probability of a target, token by token without teacher forcing of a batch, and exact match."""
    model, source = subject.model, torch.tensor([[*subject.data.source_vocab.encode(example.source), EOS]])
    gold, total = [*subject.data.target_vocab.encode(example.target), EOS], 0.0
    state, last = model.encode(source, source > 0), 1
    with torch.no_grad():
        for token in gold:
            logits, state = model.decode(torch.tensor([[last]]), state)
            total -= float(logits[0, -1].double().log_softmax(-1)[token])
            last = token
        [output] = greedy(model, source, source > 0, torch.tensor([len(gold)]))
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
    batch = TeacherForced([Example((), (), {})] * 2, source, source > 0, tokens, gold)
    assert [one.exact for one in scores_of(Successor(ModelConfig(), 12, 12), batch)] == [True, False]


def test_values_are_in_order_and_examples_without_the_tag_are_left_out(subject, measure, monkeypatch):
    one = subject("lstm")
    examples = [e._replace(tags={"depth": 10 - len(e.source)} if len(e.source) > 2 else {}) for e in
                one.task.examples("train")]  # fmt: skip
    monkeypatch.setattr(one.task, "examples", lambda split: examples)
    rows = measure("loss_by_tag", one, tag="depth")
    assert list(found(rows, "examples")) == [6, 7]
    assert sum(found(rows, "examples").values()) == sum(len(e.source) > 2 for e in examples)


def test_a_message_names_the_tags_of_the_examples(subject, measure, monkeypatch):
    one = subject("lstm")
    with pytest.raises(UserError, match="unknown tag 'depth'; expected one of: length, first"):
        measure("loss_by_tag", one, tag="depth")
    examples = [e._replace(tags={}) for e in one.task.examples("train")]
    monkeypatch.setattr(one.task, "examples", lambda split: examples)
    with pytest.raises(UserError, match="needs examples with tags"):
        measure("loss_by_tag", one)


def test_the_default_tag_is_the_length():
    assert LossByTag.Config().tag == "length"
