"""The numbers of positions: consecutive ones, random ones of a larger range, and those of digits in their numbers."""

import pytest
import torch
from torch.testing import assert_close

from tests.models.reference import CLOSE
from tfstudy.models.base import select_rows
from tfstudy.models.parts.layers import dropout_seed
from tfstudy.models.parts.positions.base import Setup
from tfstudy.models.parts.positions.numbering import DigitPositions, DigitState, Numbering, mark_digits, places
from tfstudy.models.parts.tokens import RaggedGroup
from tfstudy.models.transformer import Transformer

CPU = torch.device("cpu")
SOURCE, TOKENS = torch.tensor([[4, 5, 6, 7, 2]]), torch.tensor([[1, 5, 4, 6]])
GROUP = RaggedGroup(SOURCE, SOURCE > 0, TOKENS)


def test_places_have_bounds_of_all_distances():
    numbering = Numbering(0, 8)
    place = places(numbering(3, 2, CPU), numbering(0, 6, CPU), repeated=2)
    assert place.queries.tolist() == [[3, 4, 3, 4]]
    assert (place.lowest, place.highest) == (3 - 5, 4)
    assert (place.lowest, place.highest) == (place.distances.min(), place.distances.max())


@pytest.mark.parametrize("length", [3, 7, 30])
def test_random_positions_are_distinct_sorted_and_in_range(length):
    torch.manual_seed(0)
    numbering = Numbering(50, 30)
    drawn = [numbering.sample(length, CPU)[0].tolist() for _ in range(300)]
    for positions in drawn:
        assert len(positions) == length
        assert positions == sorted(set(positions))
        assert positions[0] >= 0
        assert positions[-1] < 50
    assert max(positions[-1] for positions in drawn) > 40


def test_the_sample_of_a_longest_sequence_is_uniform():
    torch.manual_seed(0)
    numbering = Numbering(20, 5)
    counts = sum(torch.bincount(numbering.drawn(5, CPU), minlength=20) for _ in range(2000))
    assert_close(counts / 2000, torch.full((20,), 5 / 20), atol=0.04, rtol=0)


def test_in_evaluation_a_token_has_the_same_position_in_a_sequence_of_any_length():
    numbering = Numbering(1000, 10).eval()
    whole = numbering(0, 10, CPU).all
    assert not torch.equal(whole, torch.arange(10)[None])
    assert torch.equal(Numbering(1000, 10).eval()(0, 4, CPU).all, whole[:, :4])
    assert torch.equal(numbering(3, 2, CPU).new, whole[:, 3:5])


def model(**config):
    torch.manual_seed(0)
    return Transformer(Transformer.Config(**{**Transformer.small, "dropout": 0, **config}), 9, 9)


@pytest.mark.parametrize("positions", ["sinusoidal", "learned", "rotary"])
def test_random_positions_change_each_pass_of_training_and_none_of_evaluation(positions):
    changed = model(positions=positions, randomised_positions=100)
    first, second = (changed.forward_groups([GROUP]) for _ in range(2))
    assert (first - second).abs().max() > 1e-3
    changed.eval()
    assert torch.equal(changed.forward_groups([GROUP]), changed.forward_groups([GROUP]))


@pytest.mark.parametrize("longer", ["source", "target"])
@pytest.mark.parametrize("positions", ["sinusoidal", "rotary"])
def test_in_training_source_and_target_of_a_group_have_the_first_positions_of_one_sample(positions, longer):
    changed = model(positions=positions, cross_positions="rotary", randomised_positions=100)
    group = GROUP if longer == "source" else RaggedGroup(TOKENS, TOKENS > 0, SOURCE)
    with dropout_seed(3):
        sample = changed.numbering.sample(5, CPU)[0]
    with dropout_seed(3):
        logits = changed.forward_groups([group])
    changed.eval()
    assert (changed.forward_groups([group]) - logits).abs().max() > 1e-3
    changed.numbering.fixed = sample
    assert_close(changed.forward_groups([group]), logits, **CLOSE)


# Digits

VOCAB = ["<pad>", "<bos>", "<eos>", "<unk>", "+", "0", "1", "2", "="]
DIGITS = {"0", "1", "2"}


def digit_places(text, size=50):
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
    ],
)
def test_positions_count_from_one_in_each_number_up_to_the_end_of_the_table(text, expected):
    assert digit_places(text) == expected
    assert digit_places("0120120+1", size=4) == [1, 2, 3, 3, 3, 3, 3, 0, 1]


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


def adding():
    torch.manual_seed(0)
    config = Transformer.Config(**{**Transformer.small, "dropout": 0, "positions": "none", "digit_positions": 40})
    return Transformer(config, len(VOCAB), len(VOCAB))


def ids(text):
    return torch.tensor([[VOCAB.index(token) for token in text]])


def test_swapped_operands_are_the_same_source_and_swapped_digits_are_not():
    adder = adding().eval()
    mark_digits(adder, DIGITS, VOCAB, VOCAB)
    source, start = ids("12+01="), torch.tensor([[1]])
    logits, swapped, other = (adder(text, text > 0, start) for text in (source, ids("01+12="), ids("21+01=")))
    assert_close(swapped, logits, **CLOSE)
    assert (other - logits).abs().max() > 1e-3


def test_source_and_target_have_the_same_offset_in_training():
    adder, source = adding(), ids("12+01=")
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
