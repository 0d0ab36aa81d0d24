"""Positions of digits in their numbers."""

import pytest
import torch

from tfstudy.models.base import select_rows
from tfstudy.models.parts.layers import dropout_seed
from tfstudy.models.parts.positions.base import Setup
from tfstudy.models.parts.positions.numbering import DigitPositions, DigitState, mark_digits
from tfstudy.models.transformer import Transformer

VOCAB = ["<pad>", "<bos>", "<eos>", "<unk>", "+", "0", "1", "2", "="]
DIGITS = {"0", "1", "2"}


def places(text, size=50):
    """The positions of the tokens of `text`, without spaces."""
    digits = DigitPositions(Setup(4, positions=size), len(VOCAB), len(VOCAB)).eval()
    mark_digits(digits, DIGITS, VOCAB, VOCAB)
    tokens = torch.tensor([[VOCAB.index(token) for token in text]])
    return digits.positions(tokens, digits.source_digits, digits.start(tokens))[0][0].tolist()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("012+10=", [1, 2, 3, 0, 1, 2, 0]),
        ("+0+", [0, 1, 0]),
        ("2", [1]),
        ("==", [0, 0]),
    ],
)
def test_positions_count_from_one_in_each_number(text, expected):
    assert places(text) == expected


def test_positions_beyond_the_table_are_its_last():
    assert places("0120120+1", size=4) == [1, 2, 3, 3, 3, 3, 3, 0, 1]


def test_positions_of_a_target_decoded_in_pieces_are_those_of_the_whole():
    digits = DigitPositions(Setup(4, positions=90), 9, 9)
    tokens = torch.randint(0, 9, (20, 12), generator=torch.Generator().manual_seed(0))
    table = torch.arange(9) > 3
    start = DigitState(torch.arange(20), torch.zeros(20, dtype=torch.int64))
    whole, _ = digits.positions(tokens, table, start)
    pieces, state = [], start
    for piece in tokens.split([1, 4, 1, 6], 1):
        positions, state = digits.positions(piece, table, state)
        pieces.append(positions)
    assert torch.equal(torch.cat(pieces, 1), whole)
    after = torch.where(table[tokens], whole - start.offset[:, None], 0)[:, -1]
    assert torch.equal(state.last, after)


def test_the_offset_is_random_in_training_and_keeps_numbers_within_the_table():
    digits, source = DigitPositions(Setup(4, positions=30), 9, 9), torch.full((2, 10), 5)
    offsets = torch.stack([digits.start(source).offset for _ in range(300)])
    assert torch.equal(offsets[:, 0], offsets[:, 1])
    assert set(offsets[:, 0].tolist()) == set(range(20))
    assert (
        digits.positions(source, digits.source_digits, DigitState(offsets[0] * 0 + 19, offsets[0] * 0))[0].max() == 29
    )
    assert not digits.eval().start(source).offset.any()


def test_a_source_longer_than_the_table_has_no_offset():
    digits = DigitPositions(Setup(4, positions=5), 9, 9)
    assert not digits.start(torch.full((2, 10), 5)).offset.any()


def model():
    torch.manual_seed(0)
    config = Transformer.Config(**{**Transformer.small, "dropout": 0, "positions": "none", "digit_positions": 40})
    return Transformer(config, len(VOCAB), len(VOCAB))


def ids(text):
    return torch.tensor([[VOCAB.index(token) for token in text]])


def test_swapped_operands_are_the_same_source_and_swapped_digits_are_not():
    adder = model().eval()
    mark_digits(adder, DIGITS, VOCAB, VOCAB)
    source, start = ids("12+01="), torch.tensor([[1]])
    logits, swapped, other = (adder(text, text > 0, start) for text in (source, ids("01+12="), ids("21+01=")))
    torch.testing.assert_close(swapped, logits, atol=3e-5, rtol=1e-4)
    assert (other - logits).abs().max() > 1e-3


def test_source_and_target_have_the_same_offset_in_training():
    adder, source = model(), ids("12+01=")
    mark_digits(adder, DIGITS, VOCAB, VOCAB)
    with dropout_seed(1):
        state = adder.encode(source.repeat(3, 1), source.repeat(3, 1) > 0)
    with dropout_seed(1):
        expected = adder.digits.start(source).offset
    assert state.digits[0].tolist() == expected.tolist() * 3
    assert expected > 0
    _, after = adder.decode(torch.tensor([[1, 5], [5, 6], [5, 4]]), state)
    assert after.digits[1].tolist() == [1, 2, 0]
    assert select_rows(after, torch.tensor([1])).digits[1].tolist() == [2]


def test_marks_depend_on_each_vocabulary():
    adder = Transformer(model().config, 9, 6)
    mark_digits(adder, {"0"}, VOCAB, ["<pad>", "<bos>", "<eos>", "<unk>", "0", "r"])
    assert adder.digits.source_digits.nonzero().flatten().tolist() == [5]
    assert adder.digits.target_digits.nonzero().flatten().tolist() == [4]


def test_a_model_without_positions_of_digits_keeps_no_state_of_them():
    plain = Transformer(Transformer.Config(**Transformer.small), 9, 9)
    mark_digits(plain, DIGITS, VOCAB, VOCAB)
    assert plain.encode(ids("12"), ids("12") > 0).digits == ()
    assert not [name for name in plain.state_dict() if "digits" in name]
