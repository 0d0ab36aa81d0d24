"""Shapes to which batches are padded: the fewest tokens that a few shapes allow."""

import itertools

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tfstudy.data.batching import ResidentRows, Shape, choose_shapes, smallest
from tfstudy.data.encoding import BOS, EOS, PAD, Encoded, Vocab
from tfstudy.tasks.base import Example

SIZES = st.builds(Shape, st.integers(1, 4), st.integers(1, 6), st.integers(2, 7))


def fewest_tokens(batches, most):
    """The tokens of the best division of the ordered batches, found by trying all."""
    ordered = sorted(set(batches), key=lambda shape: (shape.source + shape.target, shape))
    totals = []
    for number in range(min(most, len(ordered))):
        for cuts in itertools.combinations(range(1, len(ordered)), number):
            parts = [ordered[start:end] for start, end in itertools.pairwise([0, *cuts, len(ordered)])]
            largest = [Shape(*map(max, zip(*part, strict=True))) for part in parts]
            totals.append(
                sum(batches.count(x) * big.tokens for part, big in zip(parts, largest, strict=True) for x in part)
            )
    return min(totals)


@settings(max_examples=60, deadline=None)
@given(st.lists(SIZES, min_size=1, max_size=12), st.integers(1, 4))
def test_the_chosen_shapes_hold_all_batches_with_the_least_padding(batches, most):
    shapes = choose_shapes(batches, most)
    assert 1 <= len(shapes) <= most
    padded = [smallest(shapes, batch) for batch in batches]
    assert all(shape.holds(batch) for shape, batch in zip(padded, batches, strict=True))
    assert sum(shape.tokens for shape in padded) <= fewest_tokens(batches, most)


def test_more_shapes_than_batches_differ_are_not_chosen():
    assert choose_shapes([Shape(8, 5, 6)] * 9, 4) == [Shape(8, 5, 6)]
    assert smallest([Shape(8, 5, 6)], Shape(8, 6, 6)) is None


def test_resident_rows_end_with_a_filler_without_target_tokens():
    words = Vocab("ab")
    encoded = Encoded([Example(("a",), ("b",), {}), Example(("a", "b"), ("b", "a", "a"), {})], words, words)
    rows = ResidentRows.of(encoded, torch.device("cpu"))
    index = torch.tensor([1])
    assert rows.shape(index) == Shape(1, 3, 5)
    shape = Shape(3, 3, 5)
    batch = rows.gather(rows.padded(index, shape), shape)
    assert torch.equal(batch.source[0], encoded.source[1])
    assert batch.source[1:].tolist() == [[EOS, PAD, PAD]] * 2
    assert batch.target[1:].tolist() == [[BOS, PAD, PAD, PAD, PAD]] * 2
