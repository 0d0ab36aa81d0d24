"""Examples as padded tensors."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.data.generated_data import LENGTHS, encoded
from tfstudy.data.encoding import BOS, EOS, PAD, UNK, Encoded, Vocab, pad
from tfstudy.tasks.base import Example


@given(st.lists(st.lists(st.integers(1, 9), max_size=6), max_size=6))
def test_padding_follows_the_tokens(sequences):
    out, lengths = pad(sequences)
    assert out.shape == (len(sequences), max(map(len, sequences), default=0))
    assert lengths.tolist() == [len(s) for s in sequences]
    assert [row[:n].tolist() for row, n in zip(out, lengths.tolist(), strict=True)] == sequences
    assert all((row[n:] == PAD).all() for row, n in zip(out, lengths.tolist(), strict=True))


def test_a_source_ends_with_eos_and_a_target_begins_with_bos():
    data = Encoded([Example(("a", "z"), ("b",), {}), Example((), ("b", "b"), {})], Vocab("a"), Vocab("b"))
    assert data.source.tolist() == [[4, UNK, EOS], [EOS, PAD, PAD]]
    assert data.target.tolist() == [[BOS, 4, EOS, PAD], [BOS, 4, 4, EOS]]


@given(LENGTHS, st.data())
def test_rows_are_cut_to_their_own_longest(lengths, data):
    index = torch.tensor(data.draw(st.lists(st.integers(0, len(lengths) - 1), min_size=1, max_size=5)))
    padded = encoded(lengths).rows(index)
    assert padded.source.shape == (len(index), max(lengths[i][0] for i in index) + 1)
    assert padded.target.shape == (len(index), max(lengths[i][1] for i in index) + 2)
    assert [(row != PAD).sum() for row in padded.source] == [lengths[i][0] + 1 for i in index]
    assert [(row != PAD).sum() for row in padded.target] == [lengths[i][1] + 2 for i in index]
