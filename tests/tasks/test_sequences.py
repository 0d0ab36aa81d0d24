"""Counting, sorting, recall, ListOps, flip-flop and groups: targets against what another reading of the source says."""

import re
from collections import Counter
from random import Random
from string import ascii_lowercase

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfstudy import tasks
from tfstudy.tasks.groups import cyclic, symmetric

seeds = st.integers(0, 2**32)
lengths = st.integers(1, 80)
alphabets = st.integers(2, 26)


def made(name, split, **data):
    cls = tasks.find(name)
    return cls(cls.Config(split=split, **{"train_examples": 300, "eval_examples": 60} | data))


def drawn(name, split, seed, length, **data):
    """One example; of the draws with this seed, the first that makes one."""
    random, task = Random(seed), made(name, split, **data)
    return next(filter(None, (task.draw(random, length, "train") for _ in range(1000))))


# Counting


@given(seeds, lengths, alphabets)
def test_occurrences_are_the_places_that_hold_the_queried_symbol(seed, length, symbols):
    example = drawn("counting", "occurrences", seed, length, symbols=symbols)
    *string, mark, query = example.source
    places = [at for at, symbol in enumerate(string) if symbol == query]
    assert (mark, len(string)) == ("?", length)
    assert int("".join(example.target)) == len(places) == example.tags["count"]


@given(seeds, lengths)
def test_parity_is_that_of_a_walk_between_two_states(seed, length):
    example, state = drawn("counting", "parity", seed, length), "even"
    for symbol in example.source:
        state = {"even": "odd", "odd": "even"}[state] if symbol == "b" else state
    assert example.target == (state,) == (example.tags["answer"],)
    assert len(example.source) == length


@given(seeds, lengths, alphabets)
def test_the_majority_has_more_places_than_any_other_symbol_by_its_margin(seed, length, symbols):
    example = drawn("counting", "majority", seed, length, symbols=symbols)
    (first, most), *others = Counter(example.source).most_common()
    assert example.target == (first,) == (example.tags["answer"],)
    assert example.tags["margin"] == most - (others[0][1] if others else 0) > 0
    assert len(example.source) == length


# Sorting


def items(task, tokens):
    """The letters or the numbers of an example, read from its text; numbers have no leading zeros."""
    if task.config.split == "symbols":
        return task.text(tokens).split(" ")
    words = task.text(tokens).replace(" ", "").split(",")
    assert all(re.fullmatch("0|[1-9][0-9]*", word) for word in words)
    return [int(word) for word in words]


@given(st.sampled_from(["symbols", "numbers"]), st.integers(2, 4), st.integers(0, 99))
def test_targets_are_the_sorted_items_of_their_sources(split, largest, seed):
    sizes = {"train_length": "2-4", "test_length": "5-6", "train_examples": 40, "eval_examples": 20}
    task = made("sorting", split, symbols=largest + 4, digits=largest, seed=seed, **sizes)
    for part in task.splits().all:
        for source, target, tags in task.examples(part):
            given = items(task, source)
            assert items(task, target) == sorted(given)
            assert len(given) == tags["length"]
            assert tags["duplicates"] == ("yes" if max(Counter(given).values()) > 1 else "no")
            assert all(token == "," or (len(token) == 1 and token.isalnum()) for token in source)
            if split == "symbols":
                assert max(map(ascii_lowercase.index, given)) < largest + 4
            else:
                assert max(len(str(number)) for number in given) == tags["digits"] <= largest


# Recall


def read(source):
    """The keys, their values and the queries of a source."""
    mark = source.index("?")
    return source[:mark:2], source[1:mark:2], source[mark + 1 :]


@given(st.sampled_from(["multi_query", "single_query"]), seeds, st.integers(1, 32), st.integers(0, 5))
def test_recalled_values_are_those_of_the_queries(split, seed, length, queries):
    queries *= split == "multi_query"
    source, target, tags, _ = drawn("recall", split, seed, length, queries=queries)
    keys, values, asked = read(source)
    assert len(set(keys)) == len(keys) == len(values) == length
    assert target == tuple(dict(zip(keys, values, strict=True))[query] for query in asked)
    assert len(set(asked)) == len(asked) == (1 if split == "single_query" else min(length, queries or length))
    assert split == "multi_query" or keys[length - tags["distance"]] == asked[0]


def test_keys_and_values_are_as_many_as_configured():
    task = made("recall", "multi_query", keys=8, values=3, test_length="", train_examples=1000)
    keys, values = ({token for e in task.examples("train") for token in read(e.source)[i]} for i in (0, 1))
    assert (len(keys), values) == (8, {"v0", "v1", "v2"})


# ListOps and flip-flop


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


@given(st.integers(4, 200), seeds)
def test_a_list_has_the_value_that_a_stack_computes_and_the_length_asked_for(length, seed):
    source, target, tags, _ = made("listops", "value", test_length="41-200").draw(Random(seed), length, "train")
    assert len(source) == length
    assert (int(target[0]), tags["depth"]) == value(source)


@pytest.mark.parametrize("split", ["all_reads", "last_read"])
def test_what_is_read_is_the_last_bit_that_was_written(split):
    task, shares = made("flipflop", split, train_examples=400, eval_examples=100), {}
    for part in task.splits().all:
        instructions = Counter()
        for source, target, tags in task.examples(part):
            text = " ".join(source)
            assert (text[0], text[-1]) == ("w", "r")
            for number in range(text.count("r")):
                before = "r".join(text.split("r")[: number + 1])
                assert target[number] == before[before.rindex("w") + 2], "the bit after the last w before this read"
            assert len(target) == text.count("r") == (1 if split == "last_read" else len(target))
            names = [token for token in source if token in "wir"]
            assert len(names) == tags["length"]
            assert tags["distance"] == names[::-1].index("w")
            instructions.update(names[1:-1])
        shares[part] = instructions["i"] / instructions.total()
    if split == "all_reads":
        assert shares["train"] == pytest.approx(0.8, abs=0.03)
        assert [shares["test_sparse"], shares["test_dense"]] == pytest.approx([0.98, 0.1], abs=0.03)


# Groups

ORDERS = {"cyclic": 60, "s3": 6, "s5": 120, "a5": 60}
GROUPS = {"cyclic": cyclic(60), "s3": symmetric(3), "s5": symmetric(5), "a5": symmetric(5, even=True)}


def composed(split, elements):
    """The product by other means: numbers are added, and each object is followed through the permutations."""
    if split == "cyclic":
        return str(sum(map(int, elements)) % 60)
    images = []
    for start in "12345"[: len(elements[0])]:
        place = start
        for element in elements:
            place = element[int(place) - 1]
        images.append(place)
    return "".join(images)


@pytest.mark.parametrize("split", ORDERS)
def test_a_table_is_that_of_the_group_by_its_laws_and_by_composition(split):
    names, table = GROUPS[split]
    assert len(set(names)) == len(table) == ORDERS[split]
    numbers = range(len(names))
    assert table[0] == [row[0] for row in table] == [*numbers], "0 is the identity"
    assert all(sorted(row) == [*numbers] for row in table), "each element has an inverse"
    assert all(names[table[a][b]] == composed(split, (x, y)) for a, x in enumerate(names) for b, y in enumerate(names))


@given(st.sampled_from([*ORDERS]), seeds, st.integers(1, 30))
def test_products_are_those_of_all_prefixes_or_of_the_sequence(split, seed, length):
    source, target, *_ = drawn("groups", split, seed, length)
    assert target == tuple(composed(split, source[: i + 1]) for i in range(length))
    assert drawn("groups", split, seed, length, output="final").target == target[-1:]


def test_the_state_of_each_token_is_its_label():
    task = made("groups", "s3")
    example = task.examples("train")[0]
    assert [symmetric(3).names[state] for state in task.labels(example)["state"]] == [*example.target]
