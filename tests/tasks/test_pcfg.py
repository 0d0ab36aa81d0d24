"""PCFG SET: values against an interpreter that works on text, and what each scheme holds out."""

from collections import Counter
from itertools import pairwise

import pytest

from tests.tasks import generated_tasks
from tfstudy.tasks.pcfg import FUNCTIONS, PAIRS, Pcfg

VALUES = {  # of each function
    "copy": lambda a: a,
    "reverse": lambda a: a[::-1],
    "shift": lambda a: [*a[1:], a[0]],
    "echo": lambda a: [*a, a[-1]],
    "swap_first_last": lambda a: [a[-1], *a[1:-1], a[0]] if len(a) > 1 else a,
    "repeat": lambda a: a * 2,
    "append": lambda a, b: a + b,
    "prepend": lambda a, b: b + a,
    "remove_first": lambda a, b: b,
    "remove_second": lambda a, b: a,
}


def made(split="random", **data):
    return generated_tasks.made("pcfg", split, **{"train_examples": 1000, "eval_examples": 100} | data)


def interpreted(source):
    """The value of a source, from its last token to its first, with a stack of values; commas are only counted."""
    values, symbols, commas = [], [], 0
    for token in reversed(source):
        if token not in FUNCTIONS and token != ",":
            symbols.insert(0, token)
            continue
        if symbols:
            values.append(symbols)
            symbols = []
        if token == ",":
            commas += 1
        elif token in FUNCTIONS[:6]:
            values.append(VALUES[token](values.pop()))
        else:
            commas -= 1
            values.append(VALUES[token](values.pop(), values.pop()))
    assert (len(values), commas) == (1, 0)
    return values[0]


@pytest.mark.parametrize("split", Pcfg.schemes)
def test_values_are_those_of_the_interpreter_and_lengths_the_numbers_of_functions(split):
    task = made(split)
    for part in task.splits().all:
        for example in task.examples(part):
            assert [*example.target] == interpreted(example.source)
            assert sum(token in FUNCTIONS for token in example.source) == example.tags["length"]
            assert len(example.target) <= 256


def test_no_pair_of_systematicity_is_in_training_and_each_is_tested():
    task = made("systematicity", eval_examples=300)
    for part in ("train", "validation", "test"):
        assert not any(pair in PAIRS for e in task.examples(part) for pair in pairwise(e.source))
    tested = Counter(e.tags["pair"] for e in task.examples("test_pairs"))
    assert set(tested) == {" ".join(pair) for pair in PAIRS} | {"several"}
    for example in task.examples("test_pairs"):
        found = {" ".join(pair) for pair in pairwise(example.source) if pair in PAIRS}
        assert example.tags["pair"] == (found.pop() if len(found) == 1 else "several")


def test_productivity_alone_trains_on_fewer_functions_than_it_tests():
    productive = made("productivity")
    assert max(e.tags["length"] for e in productive.examples("train")) == 8
    assert min(e.tags["length"] for e in productive.examples("test_9_35")) == 9
    assert max(e.tags["length"] for e in made().examples("train")) > 12
    both = made(train_length="5-8", test_length="0-4")
    assert {e.tags["length"] for e in both.examples("train")} == {*range(1, 9)}
    assert made().splits().tests == ("test",)
