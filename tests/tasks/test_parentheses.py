"""Brackets: against checks that remove adjacent pairs, all strings of a length, and known numbers of strings."""

import re
from collections import Counter
from itertools import product

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.tasks.generated_tasks import ALL, made
from tfstudy.tasks.base import Example
from tfstudy.tasks.parentheses import Space, opening_probabilities, swapped

PAIRS = ("()", "[]", "{}", "<>")


def rest(string):
    """What is left when neighbours that are a pair are removed until there are none."""
    text = "".join(string)
    while (less := re.sub(r"\(\)|\[\]|\{\}|<>", "", text)) != text:
        text = less
    return text


def depth(string):
    return max(len(rest(string[:i])) for i in range(len(string) + 1))


def longest(string):
    """The longest way from a bracket to its partner: what stands between them must vanish, and so must all of it."""
    spans = [(i, j) for i in range(len(string)) for j in range(i + 1, len(string), 2)]
    return max(j - i for i, j in spans if not rest(string[i + 1 : j]) and not rest(string[i : j + 1]))


@st.composite
def balanced_strings(draw):
    """Balanced strings of up to 14 pairs, each pair put in at a random place, so that they owe the sampler nothing."""
    text = ""
    for pair in draw(st.lists(st.sampled_from(PAIRS), min_size=2, max_size=14)):
        place = draw(st.integers(0, len(text)))
        text = text[:place] + pair + text[place:]
    return tuple(text)


@given(st.integers(1, 6), st.integers(1, 2), st.integers(0, 3), st.integers(0, 3), st.integers(0, 2), st.integers(0, 3))
def test_a_space_has_as_many_strings_as_can_be_found(length, types, least, above, first, more):
    space = Space(types, least, least + above, range(first, first + more + 1))
    every = [
        string
        for string in product("".join(PAIRS[:types]), repeat=length)
        if not set(rest(string)) & set(")]}>") and len(rest(string)) in space.ends
        if least <= depth(string) <= space.max_depth
    ]
    assert opening_probabilities(length, space)[0] == len(every)


@given(balanced_strings(), st.integers(0, 9))
def test_an_unbalanced_partner_is_one_swap_away_and_keeps_both_ends(string, seed):
    partner = swapped(string, seed)
    assume(partner is not None)
    assert rest(partner)
    assert sum(a != b for a, b in zip(string, partner, strict=True)) == 2
    assert sorted(partner) == sorted(string)
    assert (partner[0], partner[-1]) == (string[0], string[-1])
    assert swapped(string, seed) == partner


def closes_too_early(string, pairs):
    prefixes = [string[:i] for i in range(len(string) + 1)]
    return any(sum(p.count(a) - p.count(b) for a, b in pairs) < 0 for p in prefixes)


@pytest.mark.parametrize("types", [1, 4])
def test_answers_are_right_and_a_fault_is_the_least_that_shows_it(types):
    task, faults = made("parentheses", "recognition", bracket_types=types, eval_examples=800), Counter()
    for part in ("test", "test_depth", "test_31_40"):
        for source, target, tags in task.examples(part)[: 800 if part == "test" else 60]:
            assert target == (("unbalanced" if rest(source) else "balanced"),) == (tags["answer"],)
            assert len(source) == 2 * tags["length"]
            if target == ("balanced",) and part == "test":
                assert tags["depth"] == depth(source)
                assert tags["distance"] / 2 < longest(source) <= tags["distance"]
            faults[found := tags["fault"]] += 1
            typed = any(closes_too_early(source, [pair]) for pair in PAIRS)
            if found in ("none", "order"):
                assert (typed, bool(rest(source))) == (False, found == "order")
            else:
                assert (typed, closes_too_early(source, PAIRS)) == (True, found == "depth")
    if types > 1:
        assert faults["order"] > 0.3 * (faults.total() - faults["none"])  # these need a stack


@pytest.mark.parametrize("types", [1, 4])
def test_a_completion_is_the_shortest_that_balances_a_prefix(types):
    task = made("parentheses", "completion", bracket_types=types)
    for part in task.splits().all:
        for source, target, tags in task.examples(part):
            assert rest(source + target) == ""
            assert len(target) == len(rest(source)) > 0
            assert len(source) == tags["length"]


def test_only_the_split_of_deeper_strings_is_deeper_and_depth_is_labelled_after_each_symbol():
    for split in ALL["parentheses"].schemes:
        task = made("parentheses", split, train_depth=4, test_depth=6)
        for part in task.splits().all:
            depths = {example.tags["depth"] for example in task.examples(part)}
            assert depths <= ({5, 6} if part == "test_depth" else {1, 2, 3, 4})
            assert max(depths) == (6 if part == "test_depth" else 4)
    task = made("parentheses", "recognition", train_length="3", test_length="4")
    assert "test_depth" not in task.splits().tests, "the train lengths have no room for deeper strings"
    assert task.tokens("([ ])") == ("(", "[", "]", ")")
    assert task.labels(Example(tuple("([])){"), (), {}))["depth"] == [1, 2, 1, 0, -1, 0]
