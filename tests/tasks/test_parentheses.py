"""Brackets: against checks that remove adjacent pairs, all strings of a length, and known numbers of strings."""

import re
from collections import Counter
from itertools import product
from random import Random

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tfstudy.tasks.base import Example
from tfstudy.tasks.parentheses import Parentheses, Space, opening_probabilities, swapped, walk

PAIRS = ("()", "[]", "{}", "<>")
BALANCED, OPEN = range(1), range(1, 99)  # how many brackets may be open at the end


def made(split="recognition", **data):
    return Parentheses(Parentheses.Config(split=split, **{"train_examples": 400, "eval_examples": 80} | data))


def rest(string):
    """What is left when neighbours that are a pair are removed until there are none."""
    text = "".join(string)
    while (less := re.sub(r"\(\)|\[\]|\{\}|<>", "", text)) != text:
        text = less
    return text


def begins(string):
    """Whether a balanced string may begin so."""
    return not set(rest(string)) & set(")]}>")


def depth(string):
    return max(len(rest(string[:i])) for i in range(len(string) + 1))


def longest(string):
    """The longest way from a bracket to its partner: what stands between them must vanish, and so must all of it."""
    spans = [(i, j) for i in range(len(string)) for j in range(i + 1, len(string), 2)]
    return max(j - i for i, j in spans if not rest(string[i + 1 : j]) and not rest(string[i : j + 1]))


def every(length, space):
    """All strings of a space, sorted out of all there are."""
    symbols = "".join(PAIRS[: space.types])
    return [
        s
        for s in product(symbols, repeat=length)
        if begins(s) and len(rest(s)) in space.ends and space.min_depth <= depth(s) <= space.max_depth
    ]


def size(length, space):
    return opening_probabilities(length, space)[0]


@st.composite
def balanced_strings(draw, fewest=1):
    """Balanced strings of up to 14 pairs, each pair put in at a random place, so that they owe the sampler nothing."""
    text = ""
    for pair in draw(st.lists(st.sampled_from(PAIRS), min_size=fewest, max_size=14)):
        place = draw(st.integers(0, len(text)))
        text = text[:place] + pair + text[place:]
    return tuple(text)


@given(st.integers(1, 6), st.integers(1, 2), st.integers(0, 3), st.integers(0, 3), st.integers(0, 2), st.integers(0, 3))
def test_a_space_has_as_many_strings_as_can_be_found(length, types, least, above, first, more):
    space = Space(types, least, least + above, range(first, first + more + 1))
    assert size(length, space) == len(every(length, space))


@pytest.mark.parametrize("types", [1, 4])
def test_answers_are_right(types):
    for part in ("train", "test_depth", "test_31_40"):
        for example in made(bracket_types=types).examples(part):
            assert example.target == (("unbalanced" if rest(example.source) else "balanced"),)
            assert example.tags["answer"] == example.target[0]
            assert len(example.source) == 2 * example.tags["length"]


@given(balanced_strings(fewest=2), st.integers(0, 9))
def test_an_unbalanced_partner_is_one_swap_away_and_keeps_both_ends(string, seed):
    partner = swapped(string, seed)
    assume(partner is not None)
    assert rest(partner)
    assert sum(a != b for a, b in zip(string, partner, strict=True)) == 2
    assert sorted(partner) == sorted(string)
    assert (partner[0], partner[-1]) == (string[0], string[-1])
    assert swapped(string, seed) == partner


def test_a_fault_is_the_least_that_shows_it():
    def closes_too_early(string, pairs):
        prefixes = [string[:i] for i in range(len(string) + 1)]
        return any(sum(p.count(a) - p.count(b) for a, b in pairs) < 0 for p in prefixes)

    faults = Counter()
    for example in made(eval_examples=2000).examples("test"):
        source, found = example.source, example.tags["fault"]
        faults[found] += 1
        if found == "none" or found == "order":
            assert not any(closes_too_early(source, [pair]) for pair in PAIRS)
            assert bool(rest(source)) == (found == "order")
        else:
            assert closes_too_early(source, PAIRS) == (found == "depth")
            assert any(closes_too_early(source, [pair]) for pair in PAIRS)
    assert faults["order"] > 0.3 * (faults["order"] + faults["type"] + faults["depth"])  # these need a stack


def test_an_unbalanced_string_has_the_tags_of_its_balanced_partner():
    task = made()
    for seed, pairs in product(range(30), (8, 20)):
        string, _ = walk(Random(seed), 2 * pairs, Space(2, 0, 6, BALANCED))
        drawn = task.draw(Random(seed), pairs, "train")
        assert drawn.source in (string, swapped(string, 0))
        assert drawn.tags["depth"] == depth(string)
        assert drawn.tags["distance"] / 2 < longest(string) <= drawn.tags["distance"]


@pytest.mark.parametrize("types", [1, 4])
def test_a_completion_is_the_shortest_that_balances_a_prefix(types):
    task = made("completion", bracket_types=types)
    for part in task.splits().all:
        for source, target, tags in task.examples(part):
            assert rest(source + target) == ""
            assert len(target) == len(rest(source)) > 0
            assert len(source) == tags["length"]


def test_only_the_split_of_deeper_strings_is_deeper():
    tasks = [made(split, train_depth=4, test_depth=6) for split in Parentheses.split_schemes()]
    for task, part in [(one, part) for one in tasks for part in one.splits().all]:
        depths = {example.tags["depth"] for example in task.examples(part)}
        assert depths <= ({5, 6} if part == "test_depth" else {1, 2, 3, 4})
        assert max(depths) == (6 if part == "test_depth" else 4)


def test_depth_is_labelled_after_each_symbol():
    task = Parentheses(Parentheses.Config(train_length="3", test_length="4"))
    assert "test_depth" not in task.splits().tests, "the train lengths have no room for deeper strings"
    assert task.tokens("([ ])") == ("(", "[", "]", ")")
    assert task.labels(Example(tuple("([])){"), (), {}))["depth"] == [1, 2, 1, 0, -1, 0]
