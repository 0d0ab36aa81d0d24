"""Counting: answers against Python's own counts of the source, and no answer that can be guessed."""

from collections import Counter
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfstudy.tasks.counting import Counting, spread

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
def test_parity_is_that_of_a_walk_between_two_states(seed, length):
    example = drawn("parity", seed, length)
    state = "even"
    for symbol in example.source:
        if symbol == "b":
            state = {"even": "odd", "odd": "even"}[state]
    assert example.target == (state,) == (example.tags["answer"],)
    assert len(example.source) == length


@given(seeds, lengths, alphabets)
def test_the_majority_has_more_places_than_any_other_symbol_by_its_margin(seed, length, symbols):
    example = drawn("majority", seed, length, symbols=symbols)
    (first, most), *others = Counter(example.source).most_common()
    assert example.target == (first,) == (example.tags["answer"],)
    assert example.tags["margin"] == most - (others[0][1] if others else 0) > 0
    assert len(example.source) == length


@given(st.sampled_from(["occurrences", "length", "unary", "parity", "majority"]), lengths)
def test_answers_in_digits_are_one_token_a_digit(split, length):
    example = drawn(split, 0, length)
    assert all(len(token) == 1 or token in ("odd", "even") for token in (*example.source, *example.target))


# What can be guessed


@pytest.mark.parametrize(("split", "answers"), [("parity", 2), ("majority", 3)])
@pytest.mark.parametrize("part", ["train", "test_51_60"])
def test_no_answer_is_more_frequent_than_another(split, answers, part):
    examples = made(split, train_examples=4000, eval_examples=4000).examples(part)
    found = Counter(e.target for e in examples)
    assert len(found) == answers
    assert all(abs(count / len(examples) - 1 / answers) < 0.03 for count in found.values())


def test_close_and_clear_majorities_are_both_common():
    examples = made("majority", train_examples=10, eval_examples=2000).examples("test_51_60")
    margins = [e.tags["margin"] for e in examples]
    assert sum(margin <= 3 for margin in margins) > 0.2 * len(margins)
    assert sum(margin >= 15 for margin in margins) > 0.2 * len(margins)


def test_counts_reach_from_none_to_all_of_the_string():
    examples = made("occurrences", train_examples=4000, train_length="10", test_length="").examples("train")
    assert {e.tags["count"] for e in examples} == set(range(11))


def test_the_string_says_nothing_of_the_query():
    examples = made("occurrences", train_examples=3000).examples("train")
    queried = Counter(e.source[-1] for e in examples)
    assert all(abs(queried[symbol] / len(examples) - 1 / 3) < 0.04 for symbol in "abc")
    commonest = [Counter(e.source[:-2]).most_common(1)[0][0] == e.source[-1] for e in examples]
    assert abs(sum(commonest) / len(commonest) - 1 / 3) < 0.04


def test_all_compositions_of_a_string_are_as_likely():
    random = Random(0)
    found = Counter("".join(sorted(spread(random, "abc", 4))) for _ in range(15000))
    assert len(found) == 15  # 4 symbols of 3 kinds: 6 choose 2
    assert all(850 < count < 1150 for count in found.values())


def test_split_schemes_with_one_source_per_length_have_every_length_once():
    for split in ("length", "unary"):
        task = made(split)
        parts = ("train", "validation", "test")
        assert sorted(e.tags["length"] for part in parts for e in task.examples(part)) == list(range(1, 41))
