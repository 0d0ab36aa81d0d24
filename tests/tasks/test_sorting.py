"""Sorting: against `sorted` on what the text of an example says."""

import re
from collections import Counter
from string import ascii_lowercase

from hypothesis import given
from hypothesis import strategies as st

from tfstudy.tasks.sorting import Sorting


def made(split, **data):
    return Sorting(Sorting.Config(split=split, **{"train_examples": 500, "eval_examples": 100} | data))


def items(task, tokens):
    """The letters or the numbers of an example, read from its text; numbers have no leading zeros."""
    if task.config.split == "symbols":
        return task.text(tokens).split(" ")
    words = task.text(tokens).replace(" ", "").split(",")
    assert all(re.fullmatch("0|[1-9][0-9]*", word) for word in words)
    return [int(word) for word in words]


@st.composite
def tasks(draw):
    """Any task that can be made with little to draw."""
    largest = draw(st.integers(2, 4))
    data = {"symbols": largest + 4, "digits": largest, "train_length": "2-4", "test_length": "5-6"}
    return made(
        draw(st.sampled_from(["symbols", "numbers"])),
        train_examples=40,
        eval_examples=20,
        seed=draw(st.integers(0, 99)),
        **data,
    )


@given(tasks())
def test_targets_are_the_sorted_items_of_their_sources(task):
    for part in task.splits().all:
        for source, target, tags in task.examples(part):
            given = items(task, source)
            assert items(task, target) == sorted(given)
            assert len(given) == tags["length"]
            assert tags["duplicates"] == ("yes" if max(Counter(given).values()) > 1 else "no")
            assert all(token == "," or (len(token) == 1 and token.isalnum()) for token in source)


@given(tasks())
def test_no_list_has_a_larger_item_than_the_settings_allow(task):
    letters = task.config.split == "symbols"
    for part in task.splits().all:
        for source, _, tags in task.examples(part):
            largest = max(ascii_lowercase.index(x) + 1 if letters else len(str(x)) for x in items(task, source))
            assert largest <= (task.config.symbols if letters else task.config.digits)
            assert letters or tags["digits"] == largest


def test_lists_may_be_typed_with_spaces_or_without():
    assert made("numbers").tokens("42, 7") == made("numbers").tokens("4 2 , 7") == ("4", "2", ",", "7")
