"""Sorting: against `sorted` on what the text of an example says."""

import re
from collections import Counter
from random import Random
from string import ascii_lowercase

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

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
    never = draw(st.booleans())
    data = {
        "symbols": largest + 4,
        "test_symbols": (largest + 4 + more) * (more > 0),
        "digits": largest,
        "test_digits": (largest + more) * (more > 0),
        "duplicates": "never" if never else "allowed",
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


@given(tasks())
def test_no_item_occurs_twice_where_that_is_refused(task):
    if task.config.duplicates == "never":
        for part in task.splits().all:
            assert {e.tags["duplicates"] for e in task.examples(part)} == {"no"}


@pytest.mark.parametrize("split", ["symbols", "numbers"])
def test_duplicates_occur_where_they_are_allowed(split):
    assert {e.tags["duplicates"] for e in made(split).examples("train")} == {"yes", "no"}


def test_letters_that_are_only_tested_have_ids():
    task = made("symbols", symbols=6, test_symbols=9)
    assert task.vocabulary() == (set("abcdefghi"), set("abcdefghi"))
    assert {t for e in task.examples("train") for t in e.source} == set("abcdef")
    assert {t for e in task.examples("test_vocabulary") for t in e.source} == set("abcdefghi")


def test_numbers_add_no_tokens_that_are_only_tested():
    assert made("numbers", test_digits=5).vocabulary() == (set("0123456789,"), set("0123456789,"))


@pytest.mark.parametrize("duplicates", ["allowed", "never"])
def test_strings_are_uniform(duplicates):
    task, random = made("symbols", symbols=4, duplicates=duplicates, train_length="1-3", test_length="4"), Random(3)
    drawn = Counter(task.draw(random, 3, "train").source for _ in range(4000))
    assert len(drawn) == (4**3 if duplicates == "allowed" else 4 * 3 * 2)
    assert 0.001 < chisquare(list(drawn.values())).pvalue < 0.999


@pytest.mark.parametrize("duplicates", ["allowed", "never"])
def test_lists_reach_each_number_of_digits_alike(duplicates):
    task, random = made("numbers", duplicates=duplicates), Random(3)
    drawn = Counter(task.draw(random, 7, "train").tags["digits"] for _ in range(3000))
    assert chisquare([drawn[digits] for digits in (1, 2, 3)]).pvalue > 0.001


def test_the_largest_item_may_stand_anywhere():
    task, random = made("numbers", test_digits=5), Random(3)
    lists = [items(task, task.draw(random, 5, "test_vocabulary").source) for _ in range(3000)]
    places = Counter(numbers.index(max(numbers)) for numbers in lists)
    assert chisquare([places[place] for place in range(5)]).pvalue > 0.001


def test_most_lists_of_longer_numbers_can_t_be_sorted_as_strings():
    task = made("numbers")
    long = [e for e in task.examples("test_11_15") if e.tags["digits"] > 1]
    by_text = [sorted(items(task, e.source), key=str) == sorted(items(task, e.source)) for e in long]
    assert sum(by_text) < 0.05 * len(by_text)


def test_a_list_longer_than_the_number_of_items_is_not_drawn():
    assert made("symbols", duplicates="never").at_length(21) == []
    assert made("numbers", duplicates="never", digits=2).at_length(101) == []


@pytest.mark.parametrize(
    ("split", "data", "message"),
    [
        ("symbols", {"test_symbols": 20}, "data.test_symbols must be 0 or more than data.symbols (20), but is 20"),
        ("numbers", {"test_digits": 2}, "data.test_digits must be 0 or more than data.digits (3), but is 2"),
        ("symbols", {"symbols": 12, "duplicates": "never"}, "lists of 20 items"),
        ("numbers", {"digits": 1, "duplicates": "never"}, "10 different items of data.digits=1"),
        ("number", {}, "did you mean 'numbers'?"),
    ],
)
def test_settings_that_cannot_be_generated_are_refused(split, data, message):
    with pytest.raises(UserError, match=re.escape(message)):
        made(split, **data)


def test_lists_may_be_typed_with_spaces_or_without():
    assert made("numbers").tokens("42, 7") == made("numbers").tokens("4 2 , 7") == ("4", "2", ",", "7")
