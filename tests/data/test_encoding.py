"""Vocabularies, examples as padded tensors, and batches divided into micro-batches and rectangles without a change."""

import itertools

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.data.generated_data import LENGTHS, encoded, pairs
from tfstudy.data.encoding import BOS, EOS, PAD, RECTANGLE_OVERHEAD, SPECIAL, UNK, Encoded, Vocab, least_padding
from tfstudy.tasks.base import Example


def test_a_source_ends_with_eos_and_a_target_begins_with_bos():
    data = Encoded([Example(("a", "z"), ("b",), {}), Example((), ("b", "b"), {})], Vocab("a"), Vocab("b"))
    assert data.source.tolist() == [[4, UNK, EOS], [EOS, PAD, PAD]]
    assert data.target.tolist() == [[BOS, 4, EOS, PAD], [BOS, 4, 4, EOS]]


@given(st.lists(st.lists(st.text(max_size=5), max_size=6), max_size=6))
def test_what_is_encoded_is_decoded_to_itself(sequences):
    vocab = Vocab({token for sequence in sequences for token in sequence})
    for sequence in sequences:
        assert vocab.decode([*vocab.encode(sequence), EOS, 4]) == tuple(sequence)
    assert Vocab(["a", "<unk>"]).decode([UNK, PAD, 4]) == ("⁇", "⁇", "<unk>"), "what is no word is equal to none"


def test_a_word_that_is_spelt_like_a_special_token_is_a_word_and_unknown_if_it_is_not_in_train():
    assert Vocab(["a"]).encode(["<pad>", "<eos>", "<unk>", "a"]) == [UNK, UNK, UNK, 4]
    literal = Vocab([*SPECIAL, "a"])
    assert literal.decode(literal.encode(SPECIAL)) == SPECIAL
    assert not {PAD, BOS, EOS, UNK} & {*literal.encode(SPECIAL)}
    assert literal.ids_of(Vocab([*SPECIAL, "b"])) == [0, 1, 2, 3, *literal.encode(sorted(SPECIAL)), UNK]


@given(LENGTHS, st.integers(1, 4), st.integers(1, 3))
def test_a_divided_batch_has_the_same_rows_and_counts_their_tokens(lengths, micro_batches, rectangles):
    data, index = encoded(lengths), torch.randperm(len(lengths))
    whole, found = data.rows(index), data.batch(index, micro_batches, rectangles)
    assert found.tokens == (whole.target[:, 1:] != PAD).sum()
    assert pairs(found.micro_batches) == pairs([[whole]])
    assert len(found.micro_batches) <= micro_batches
    assert all(0 < len(micro_batch) <= rectangles for micro_batch in found.micro_batches)


def cost(source, target, ranges):
    return sum(
        (end - start) * (source[start:end].max() + target[start:end].max()) + RECTANGLE_OVERHEAD
        for start, end in ranges
    )


@given(st.lists(st.tuples(st.integers(1, 300), st.integers(1, 300)), max_size=7), st.integers(1, 4))
def test_rectangles_are_those_with_the_least_padding(lengths, rectangles):
    source, target = (np.array([pair[side] for pair in lengths], dtype=np.int64) for side in (0, 1))
    n, ranges = len(lengths), least_padding(source, target, rectangles)
    possible = [
        list(itertools.pairwise([0, *inner, n]))
        for size in range(min(rectangles, n))
        for inner in itertools.combinations(range(1, n), size)
    ]
    assert cost(source, target, ranges) == min((cost(source, target, p) for p in possible), default=0)
    assert [i for start, end in ranges for i in range(start, end)] == list(range(n))
    assert len(ranges) <= rectangles
