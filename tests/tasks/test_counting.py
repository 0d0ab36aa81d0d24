"""Counting: answers against Python's own counts of the source, and no answer that can be guessed."""

from collections import Counter
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfstudy.tasks.counting import Counting

seeds = st.integers(0, 2**32)
lengths = st.integers(1, 80)
alphabets = st.integers(2, 26)


def made(split, **data):
    return Counting(Counting.Config(split=split, **{"train_examples": 300, "eval_examples": 60} | data))


def drawn(split, seed, length, **data):
    """One example; of the draws with this seed, the first that makes one."""
    random = Random(seed)
    attempts = (made(split, **data).draw(random, length, "train") for _ in range(1000))
    return next(filter(None, attempts))


# What is counted


@given(seeds, lengths, alphabets)
def test_occurrences_are_the_places_that_hold_the_queried_symbol(seed, length, symbols):
    example = drawn("occurrences", seed, length, symbols=symbols)
    *string, mark, query = example.source
    places = [at for at, symbol in enumerate(string) if symbol == query]
    assert (mark, len(string)) == ("?", length)
    assert int("".join(example.target)) == len(places) == example.tags["count"]


@given(lengths)
def test_length_and_unary_are_each_other_s_inverse(length):
    there, back = drawn("length", 0, length), drawn("unary", 0, length)
    assert int("".join(there.target)) == len(there.source) == length
    assert (there.source, there.target) == (back.target, back.source)


@given(seeds, lengths)
def test_parity_and_its_scratchpad_are_those_of_a_walk_between_two_states(seed, length):
    example, worked = drawn("parity", seed, length), drawn("parity", seed, length, scratchpad=True)
    states = ["even"]
    for symbol in example.source:
        states.append({"even": "odd", "odd": "even"}[states[-1]] if symbol == "b" else states[-1])
    assert example.target == (states[-1],) == (example.tags["answer"],)
    assert worked.target == (*states[1:], ":", states[-1])
    assert len(example.source) == length


@given(seeds, lengths, alphabets)
def test_the_majority_has_more_places_than_any_other_symbol_by_its_margin(seed, length, symbols):
    example = drawn("majority", seed, length, symbols=symbols)
    (first, most), *others = Counter(example.source).most_common()
    assert example.target == (first,) == (example.tags["answer"],)
    assert example.tags["margin"] == most - (others[0][1] if others else 0) > 0
    assert len(example.source) == length


# What can be guessed


@pytest.mark.parametrize(("split", "answers"), [("parity", 2), ("majority", 3)])
@pytest.mark.parametrize("part", ["train", "test_51_60"])
def test_no_answer_is_more_frequent_than_another(split, answers, part):
    examples = made(split, train_examples=4000, eval_examples=4000).examples(part)
    found = Counter(e.target for e in examples)
    assert len(found) == answers
    assert all(abs(count / len(examples) - 1 / answers) < 0.03 for count in found.values())


def test_split_schemes_with_one_source_per_length_have_every_length_once():
    for split in ("length", "unary"):
        task = made(split)
        parts = ("train", "validation", "test")
        assert sorted(e.tags["length"] for part in parts for e in task.examples(part)) == list(range(1, 41))
