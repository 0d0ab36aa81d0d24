"""ListOps and flip-flop: what a second interpreter makes of the source."""

from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfstudy.errors import UserError
from tfstudy.tasks.flipflop import FlipFlop
from tfstudy.tasks.listops import ListOps

SMALL = {"train_examples": 400, "eval_examples": 100}


def value(tokens):
    """The value of an expression and its depth, with a stack that is read from left to right."""
    stack, deepest = [[]], 0
    for token in tokens:
        if token.startswith("["):
            stack.append([token])
            deepest = max(deepest, len(stack) - 1)
        elif token == "]":
            name, *values = stack.pop()
            assert 2 <= len(values) <= 5
            found = {"[MAX": np.max, "[MIN": np.min, "[MED": np.median, "[SM": lambda v: np.sum(v) % 10}[name](values)
            stack[-1].append(int(found))
        else:
            stack[-1].append(int(token))
    [[result]] = stack
    return result, deepest


@given(st.integers(4, 200), st.integers(0, 2**32))
def test_a_list_has_the_value_that_a_stack_computes_and_the_length_asked_for(length, seed):
    task = ListOps(ListOps.Config(test_length="41-200", **SMALL))
    source, target, tags = task.draw(Random(seed), length, "train")
    assert len(source) == length
    assert (int(target[0]), tags["depth"]) == value(source)


def test_all_operations_and_values_occur_and_longer_lists_than_python_nests_are_refused():
    examples = ListOps(ListOps.Config(**SMALL)).examples("train")
    assert {e.tags["operation"] for e in examples} == {"MAX", "MIN", "MED", "SM"}
    assert {e.target[0] for e in examples} == set("0123456789")
    with pytest.raises(UserError, match="at most 2000 tokens"):
        ListOps(ListOps.Config(test_length="2001"))
    assert len(ListOps(ListOps.Config()).at_length(1999)) == 100


@pytest.mark.parametrize("split", ["all_reads", "last_read"])
def test_what_is_read_is_the_last_bit_that_was_written(split):
    task = FlipFlop(FlipFlop.Config(split=split, **SMALL))
    shares = {}
    for part in task.splits().all:
        ignored = instructions = 0
        for source, target, tags in task.examples(part):
            text = " ".join(source)
            assert text[0] == "w"
            assert text[-1] == "r"
            for number, piece in enumerate(text.split("r")[:-1]):
                before = "r".join(text.split("r")[: number + 1])
                assert target[number] == before[before.rindex("w") + 2], "the bit after the last w before this read"
                assert piece or number
            assert len(target) == text.count("r") == (1 if split == "last_read" else len(target))
            names = [token for token in source if token in "wir"]
            assert len(names) == tags["length"]
            assert tags["distance"] == names[::-1].index("w")
            ignored, instructions = ignored + names.count("i"), instructions + len(names) - 2
        shares[part] = ignored / instructions
    if split == "all_reads":
        assert shares["train"] == pytest.approx(0.8, abs=0.03)
        assert (shares["test_sparse"], shares["test_dense"]) == (
            pytest.approx(0.98, abs=0.03), pytest.approx(0.1, abs=0.03)
        )  # fmt: skip
