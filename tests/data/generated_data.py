"""Data that the tests of this folder share: a task, encoded examples of given lengths, and what batches hold."""

from collections import Counter

from hypothesis import strategies as st

from tfstudy.data.encoding import PAD, Encoded, Vocab
from tfstudy.tasks.base import Example, Splits, Task

WORDS = "abcdefgh"
LENGTHS = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=40)


class Reverse(Task):
    """a b c -> c b a"""

    def __init__(self, config):
        self.rows = [tuple(WORDS[(i * k) % 8] for k in range(1, 2 + i % 6)) for i in range(50)]

    @classmethod
    def split_schemes(cls):
        return {"all": "nothing is held out"}

    def splits(self):
        return Splits("train", "validation", ("test",))

    def examples(self, split):
        rows = {"train": self.rows[:37], "validation": self.rows[37:43], "test": self.rows[43:]}[split]
        return [Example(row, row[::-1], {"length": len(row)}) for row in rows]


class Unvalidated(Reverse):
    def splits(self):
        return Splits("train", None, ("test",))


def encoded(lengths):
    examples = [Example(("a",) * source, ("b",) * target, {}) for source, target in lengths]
    return Encoded(examples, Vocab("a"), Vocab("b"))


def pairs(micro_batches):
    """Each row's source and target, without padding."""
    rectangles = [padded for micro_batch in micro_batches for padded in micro_batch]
    rows = [row for padded in rectangles for row in zip(padded.source.tolist(), padded.target.tolist(), strict=True)]
    return Counter(tuple(tuple(token for token in ids if token != PAD) for ids in row) for row in rows)
