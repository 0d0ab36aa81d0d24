"""Edit distances of brackets: against a search over all strings, and of the examples of the task."""

from collections import Counter, deque
from itertools import product
from random import Random

import pytest

from tests.tasks.test_parentheses import PAIRS, made, rest
from tfstudy.tasks.parentheses.edits import at_distance, edit_distance


def searched(symbols, longest):
    """The distance of each string up to a length, by breadth-first search from all balanced strings."""
    strings = [s for n in range(longest + 1) for s in product(symbols, repeat=n)]
    distance = {s: 0 for s in strings if not rest(s)}
    queue = deque(distance)
    while queue:
        s = queue.popleft()
        deleted = [s[:i] + s[i + 1 :] for i in range(len(s))]
        replaced = [(*s[:i], c, *s[i + 1 :]) for i in range(len(s)) for c in symbols]
        inserted = [(*s[:i], c, *s[i:]) for i in range(len(s) + 1) for c in symbols if len(s) < longest]
        for other in (*deleted, *replaced, *inserted):
            if other not in distance:
                distance[other] = distance[s] + 1
                queue.append(other)
    assert len(distance) == len(strings)
    return distance


@pytest.mark.parametrize(("symbols", "longest"), [("()", 9), ("()[]", 5)])
def test_an_edit_distance_is_that_of_the_shortest_path_to_a_balanced_string(symbols, longest):
    assert {s: edit_distance(s) for s in searched(symbols, longest)} == searched(symbols, longest)


def test_a_distance_with_one_bracket_type_is_that_of_the_closed_form():
    """What is left of a string is a closing and b opening brackets: (a + 1) // 2 + (b + 1) // 2 edits."""
    for example in made("edit_distance", bracket_types=1, train_length="10-30").examples("train"):
        left = rest(example.source)
        assert example.tags["edit_distance"] == (left.count(")") + 1) // 2 + (left.count("(") + 1) // 2


@pytest.mark.parametrize("types", [1, 2, 4])
def test_strings_have_the_distance_of_their_tag_and_the_answer_that_follows(types):
    task = made("edit_distance", bracket_types=types, max_edit_distance=4)
    for part in ("train", "test_depth", "test_31_40"):
        for example in task.examples(part):
            distance = example.tags["edit_distance"]
            assert distance == edit_distance(example.source) <= min(4, example.tags["length"])
            assert example.target == (("balanced",) if distance == 0 else ("unbalanced",))
            assert (rest(example.source) == "") == (distance == 0)
            assert len(example.source) == 2 * example.tags["length"]


def test_half_of_the_strings_are_balanced_and_other_distances_are_equally_likely():
    counts = Counter(e.tags["edit_distance"] for e in made("edit_distance", train_length="10-30").examples("train"))
    assert 160 <= counts[0] <= 240
    assert all(50 <= counts[distance] <= 90 for distance in (1, 2, 3))


@pytest.mark.parametrize("types", [1, 2])
def test_strings_are_found_at_every_distance_up_to_the_number_of_pairs(types):
    string, random = ("(", ")") * 9, Random(0)
    for distance in range(1, 10):
        found = [at_distance(random, string, distance, types) for _ in range(5)]
        assert None not in found
        assert {edit_distance(other) for other in found} == {distance}


def test_a_distance_that_no_string_has_is_not_found():
    assert at_distance(Random(0), ("(", ")"), 3, 2) is None


def test_at_distance_1_counting_is_enough_and_at_distance_2_it_is_not():
    examples = made("edit_distance", train_length="10-30", train_examples=1000).examples("train")
    equal = {
        distance: sum(
            all(e.source.count(opening) == e.source.count(closing) for opening, closing in PAIRS)
            for e in examples
            if e.tags["edit_distance"] == distance
        )
        for distance in (1, 2)
    }
    assert equal[1] == 0 < equal[2]
