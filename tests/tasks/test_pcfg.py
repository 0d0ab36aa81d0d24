"""PCFG SET: values against an interpreter that works on text, and what each scheme holds out."""

from collections import Counter
from itertools import pairwise

import pytest

from tests.tasks import generated_tasks
from tfstudy.tasks.pcfg import FUNCTIONS, PAIRS, Pcfg

UNARY = FUNCTIONS[:6]
SYNONYMS = ("substitutivity_equally_distributed", "substitutivity_primitive")


def made(split="random", **data):
    return generated_tasks.made("pcfg", split, **{"train_examples": 1000, "eval_examples": 100} | data)


def interpreted(source):
    """The value of a source, from its last token to its first, with a stack of values; commas are only counted."""
    values, symbols, commas = [], [], 0
    for token in reversed(source):
        name = token.removesuffix("_syn")
        if name not in FUNCTIONS and name != ",":
            symbols.insert(0, token)
            continue
        if symbols:
            values.append(symbols)
            symbols = []
        if name == ",":
            commas += 1
            continue
        first = values.pop()
        if name not in UNARY:
            commas -= 1
            second = values.pop()
        match name:
            case "copy":
                value = first
            case "reverse":
                value = list(reversed(first))
            case "shift":
                value = [*first[1:], first[0]]
            case "echo":
                value = [*first, first[-1]]
            case "swap_first_last":
                value = [*first]
                value[0], value[-1] = value[-1], value[0]
            case "repeat":
                value = first * 2
            case "append" | "prepend" | "remove_first" | "remove_second":
                wanted = {"append": (0, 1), "prepend": (1, 0), "remove_first": (1,), "remove_second": (0,)}[name]
                value = [symbol for side in wanted for symbol in (first, second)[side]]
        values.append(value)
    assert (len(values), commas) == (1, 0)
    return values[0]


@pytest.mark.parametrize("split", Pcfg.schemes)
def test_values_are_those_of_the_interpreter_and_lengths_the_numbers_of_functions(split):
    task = made(split)
    for part in task.splits().all:
        for example in task.examples(part):
            assert [*example.target] == interpreted(example.source)
            functions = [token for token in example.source if token.removesuffix("_syn") in FUNCTIONS]
            assert len(functions) == example.tags["length"]
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
    assert made().splits().tests == ("test",)


@pytest.mark.parametrize("split", SYNONYMS)
def test_each_expression_is_tested_with_and_without_a_synonym(split):
    task = made(split)
    examples = task.examples("test_synonyms")
    trained = {tuple(token.removesuffix("_syn") for token in e.source) for e in task.examples("train")}
    for one, other in zip(examples[::2], examples[1::2], strict=True):
        name = one.tags["function"]
        assert other.source == tuple(f"{token}_syn" if token == name else token for token in one.source)
        assert one.source != other.source
        assert (one.tags["version"], other.tags["version"]) == ("original", "synonym")
        assert one.source not in trained


def test_consistency_is_the_share_of_equal_outputs_right_or_not():
    task = made(SYNONYMS[0])
    examples = task.examples("test_synonyms")[:4]
    outputs = [("A1",), ("A1",), examples[2].target, ("A1",)]
    assert task.score(outputs, examples)["consistency"] == 0.5
    assert task.score(outputs, examples)["exact_match"] == 0.25
    assert "consistency" not in task.score(outputs[:1], examples[:1])
    assert "consistency" not in task.score([("A1",)], task.examples("test")[:1])
