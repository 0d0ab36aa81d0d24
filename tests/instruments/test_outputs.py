"""The loss by the value of a tag, and errors by position: those of models whose outputs are known."""

import pytest
import torch
from torch.nn.functional import one_hot

from tfstudy.instruments.examples import TeacherForced
from tfstudy.instruments.position_error import error_positions, length_groups
from tfstudy.models.base import PaddedModel
from tfstudy.models.config import ModelConfig


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
