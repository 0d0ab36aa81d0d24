"""A small task whose splits are given by hand."""

from hypothesis import settings
from hypothesis import strategies as st

from tfstudy.tasks.base import (
    Example,
    Splits,
    Task,
)

quick = settings(deadline=None, database=None)


class Toy(Task):
    """A task of whatever examples it is given: one list a split; the first is train, the second validation."""

    def __init__(self, **splits):
        self.parts = splits

    @classmethod
    def split_schemes(cls):
        return {}

    def splits(self):
        train, validation, *tests = self.parts
        return Splits(train, validation, tuple(tests))

    def examples(self, split):
        return self.parts[split]


def example(source, target, **tags):
    return Example(tuple(source.split()), tuple(target.split()), tags)


A, B, C, D, E = (example(f"{x} {x}{x}", f"{x.upper()} ä", length=2, kind=f"of {x}") for x in "abcde")


def toy():
    return Toy(train=[A, B], validation=[C], near=[D], far=[E])


TOKENS = st.lists(st.sampled_from(["a", "b", "c"]), max_size=6)
