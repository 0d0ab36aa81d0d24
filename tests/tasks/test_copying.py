"""Copies with index hints: tokens that say a symbol's place."""

import pytest

from tests.tasks.test_generated import made
from tfstudy.errors import UserError

HINTS = {"index_hints": 20, "train_length": "1-6", "test_length": "7-8"}


def places(tokens):
    return [int(hint.removeprefix("#")) for hint in tokens[::2]]


@pytest.mark.parametrize("split", ["copy", "reverse", "repeat"])
def test_index_hints_say_where_each_symbol_stood_in_the_source(split):
    task = made("copying", split, **HINTS)
    plain = made("copying", split, train_length="1-6", test_length="7-8")
    for example in task.examples("train"):
        length = len(example.source) // 2
        first = places(example.source)[0]
        assert places(example.source) == [*range(first, first + length)]
        symbol_at = dict(zip(places(example.source), example.source[1::2], strict=True))
        assert [symbol_at[place] for place in places(example.target)] == list(example.target[1::2])
        order = list(range(length))
        expected = {"copy": order, "reverse": order[::-1], "repeat": order * plain.config.repeats}[split]
        assert [place - first for place in places(example.target)] == expected


def test_training_has_every_hint_though_its_strings_are_shorter():
    seen = {place for example in made("copying", "copy", **HINTS).examples("train") for place in places(example.source)}
    assert seen == set(range(1, 21))


def test_a_string_is_held_out_with_all_of_its_hints():
    task = made("copying", "copy", symbols=2, **HINTS)
    parts = [{example.source[1::2] for example in task.examples(part)} for part in ("train", "validation", "test")]
    assert all(parts)
    assert not any(parts[i] & parts[j] for i, j in ((0, 1), (0, 2), (1, 2)))


def test_fewer_hints_than_places_are_refused():
    with pytest.raises(UserError, match=r"data\.index_hints must be 0 or at least 8, .* but is 7"):
        made("copying", "copy", **HINTS | {"index_hints": 7})
    assert made("copying", "copy", **HINTS).at_length(21) == []
