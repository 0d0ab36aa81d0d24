"""What the tests of this folder share: encoded examples of given lengths, and what batches hold."""

from collections import Counter

from hypothesis import strategies as st

from tfstudy.data.encoding import PAD, Encoded, Vocab
from tfstudy.tasks.base import Example

LENGTHS = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=40)


def encoded(lengths):
    examples = [Example(("a",) * source, ("b",) * target, {}) for source, target in lengths]
    return Encoded(examples, Vocab("a"), Vocab("b"))


def pairs(micro_batches):
    """Each row's source and target, without padding."""
    rectangles = [padded for micro_batch in micro_batches for padded in micro_batch]
    rows = [row for padded in rectangles for row in zip(padded.source.tolist(), padded.target.tolist(), strict=True)]
    return Counter(tuple(tuple(token for token in ids if token != PAD) for ids in row) for row in rows)
