"""The numbers of positions: consecutive ones, random ones of a larger range, and those of digits in their numbers."""

import pytest
import torch
from torch.testing import assert_close

from tests.models.reference import CLOSE
from tfstudy.models.base import select_rows
from tfstudy.models.dropout import dropout_seed
from tfstudy.models.positions import Setup
from tfstudy.models.positions.numbering import DigitPositions, DigitState, Numbering, mark_digits
from tfstudy.models.tokens import Tokens
from tfstudy.models.transformer import Transformer

CPU = torch.device("cpu")
LONGER, SHORTER = Tokens.of(torch.tensor([[4, 5, 6, 7, 2]])), Tokens.of(torch.tensor([[1, 5, 4, 6]]))


def tokens(length, start=0):
    return Tokens.of(torch.full((2, length), 4)).following(start)


@pytest.mark.parametrize("length", [3, 7, 30])
def test_random_positions_are_distinct_sorted_and_in_range(length):
    torch.manual_seed(0)
    numbering = Numbering(50, 30)
    drawn = [numbering.sample(length, CPU).tolist() for _ in range(300)]
    for positions in drawn:
        assert len(positions) == length
        assert positions == sorted(set(positions))
        assert positions[0] >= 0
        assert positions[-1] < 50
    assert max(positions[-1] for positions in drawn) > 40


def test_in_evaluation_a_token_has_the_same_position_in_a_sequence_of_any_length():
    numbering = Numbering(1000, 10).eval()
    whole = numbering(tokens(10)).positions[:10]
    assert not torch.equal(whole, torch.arange(10))
    assert torch.equal(Numbering(1000, 10).eval()(tokens(4)).positions[:4], whole[:4])
    assert torch.equal(numbering(tokens(2, start=3)).positions[:2], whole[3:5])
    with pytest.raises(IndexError, match="for 10 tokens, but a sequence has 11"):
        numbering(tokens(1, start=10))


def model(**config):
    torch.manual_seed(0)
    return Transformer(Transformer.Config(**{**Transformer.small, "dropout": 0, **config}), 9, 9)


@pytest.mark.parametrize("longer", ["source", "target"])
@pytest.mark.parametrize("positions", ["sinusoidal", "rotary"])
def test_in_training_source_and_target_of_a_rectangle_have_the_first_positions_of_one_sample(positions, longer):
    changed = model(positions=positions, randomised_positions=100)
    batch = (LONGER, SHORTER) if longer == "source" else (SHORTER, LONGER)
    with dropout_seed(3):
        sample = changed.numbering.sample(5, CPU)
    with dropout_seed(3):
        logits = changed(*batch)
    changed.eval()
    assert (changed(*batch) - logits).abs().max() > 1e-3
    changed.numbering.fixed = sample
    assert_close(changed(*batch), logits, **CLOSE)


# Digits

VOCAB = ["<pad>", "<bos>", "<eos>", "<unk>", "+", "0", "1", "2", "="]
DIGITS = {"0", "1", "2"}


def ids(text, rows=1):
    return Tokens.of(torch.tensor([[VOCAB.index(token) for token in text]] * rows))


@pytest.mark.parametrize(
    ("text", "size", "expected"),
    [
        ("012+10=", 50, [1, 2, 3, 0, 1, 2, 0]),
        ("+0+", 50, [0, 1, 0]),
        ("2", 50, [1]),
        ("0120120+1", 4, [1, 2, 3, 3, 3, 3, 3, 0, 1]),
    ],
)
def test_positions_count_from_one_in_each_number_up_to_the_end_of_the_table(text, size, expected):
    digits = DigitPositions(Setup(4, positions=size), len(VOCAB), len(VOCAB)).eval()
    mark_digits(digits, DIGITS, VOCAB, VOCAB)
    read = ids(text)
    assert digits.positions(read, digits.source_digits, digits.start(read))[0].tolist() == expected


def test_the_offset_is_random_in_training_and_keeps_numbers_within_the_table():
    digits, source = DigitPositions(Setup(4, positions=30), 9, 9), tokens(10)
    offsets = torch.stack([digits.start(source).offset for _ in range(300)])
    assert torch.equal(offsets[:, 0], offsets[:, 1])
    assert set(offsets[:, 0].tolist()) == set(range(20))
    largest = DigitState(torch.full((2,), 19), torch.zeros(2, dtype=torch.int64))
    assert digits.positions(source, digits.source_digits, largest)[0].max() == 29
    assert not digits.eval().start(source).offset.any()


def adding():
    return model(positions="none", digit_positions=40)


def test_swapped_operands_are_the_same_source_and_swapped_digits_are_not():
    adder = adding().eval()
    mark_digits(adder, DIGITS, VOCAB, VOCAB)
    start = Tokens.of(torch.tensor([[1]]))
    logits, swapped, other = (adder(ids(text), start) for text in ("12+01=", "01+12=", "21+01="))
    assert_close(swapped, logits, **CLOSE)
    assert (other - logits).abs().max() > 1e-3


@torch.no_grad()
def test_source_and_target_have_the_same_offset_in_training():
    adder = adding()
    mark_digits(adder, DIGITS, VOCAB, VOCAB)
    with dropout_seed(1):
        state = adder.encode(ids("12+01=", rows=3))
    with dropout_seed(1):
        expected = adder.digits.start(ids("12+01=")).offset
    assert state.digits.offset.tolist() == expected.tolist() * 3
    assert expected > 0
    _, after = adder.decode(Tokens.of(torch.tensor([[1, 5], [5, 6], [5, 4]])), state)
    assert after.digits.last.tolist() == [1, 2, 0]
    assert select_rows(after, torch.tensor([1])).digits.last.tolist() == [2]
