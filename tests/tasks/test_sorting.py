"""Sorting: against `sorted` on what the text of an example says."""

import re
from collections import Counter
from string import ascii_lowercase

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfstudy.errors import UserError
from tfstudy.tasks.base import overlap
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
    largest, more = draw(st.integers(2, 4)), draw(st.integers(0, 3))
    data = {
        "symbols": largest + 4,
        "test_symbols": (largest + 4 + more) * (more > 0),
        "digits": largest,
        "test_digits": (largest + more) * (more > 0),
        "train_length": "2-4",
        "test_length": "5-6",
    }
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
def test_items_beyond_training_are_in_every_list_of_their_split_and_in_no_other(task):
    config = task.config
    letters = config.split == "symbols"
    trained, tested = (config.symbols, config.test_symbols) if letters else (config.digits, config.test_digits)
    for part in task.splits().all:
        for source, _, tags in task.examples(part):
            largest = max(ascii_lowercase.index(x) + 1 if letters else len(str(x)) for x in items(task, source))
            assert trained < largest <= tested if part == "test_vocabulary" else largest <= trained
            assert letters or tags["digits"] == largest
    assert ("test_vocabulary" in task.splits().tests) == (tested > 0)
    assert set(overlap(task).values()) == {0}


def test_letters_that_are_only_tested_have_ids():
    task = made("symbols", symbols=6, test_symbols=9)
    assert task.vocabulary() == (set("abcdefghi"), set("abcdefghi"))
    assert {t for e in task.examples("train") for t in e.source} == set("abcdef")
    assert {t for e in task.examples("test_vocabulary") for t in e.source} == set("abcdefghi")


@pytest.mark.parametrize(
    ("split", "data", "message"),
    [
        ("symbols", {"test_symbols": 20}, "data.test_symbols must be 0 or more than data.symbols (20), but is 20"),
        ("numbers", {"test_digits": 2}, "data.test_digits must be 0 or more than data.digits (3), but is 2"),
        ("number", {}, "did you mean 'numbers'?"),
    ],
)
def test_settings_that_cannot_be_generated_are_refused(split, data, message):
    with pytest.raises(UserError, match=re.escape(message)):
        made(split, **data)


def test_lists_may_be_typed_with_spaces_or_without():
    assert made("numbers").tokens("42, 7") == made("numbers").tokens("4 2 , 7") == ("4", "2", ",", "7")
