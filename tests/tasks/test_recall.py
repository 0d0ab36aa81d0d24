"""Associative recall: values against a dictionary that is read from the source."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfstudy.errors import UserError
from tfstudy.tasks.recall import Recall


def made(split="multi_query", **data):
    return Recall(Recall.Config(split=split, **{"train_examples": 300, "eval_examples": 30} | data))


def read(source):
    """The keys, their values and the queries of a source."""
    mark = source.index("?")
    return source[:mark:2], source[1:mark:2], source[mark + 1 :]


@given(st.sampled_from(["multi_query", "single_query"]), st.integers(0, 99), st.integers(1, 32), st.integers(0, 5))
def test_targets_are_the_values_of_the_queries(split, seed, length, queries):
    queries *= split == "multi_query"
    source, target, tags = made(split, queries=queries).draw(Random(seed), length, "train")
    keys, values, asked = read(source)
    assert len(set(keys)) == len(keys) == len(values) == length
    assert target == tuple(dict(zip(keys, values, strict=True))[query] for query in asked)
    assert len(set(asked)) == len(asked) == (1 if split == "single_query" else min(length, queries or length))
    assert split == "multi_query" or keys[length - tags["distance"]] == asked[0]


def test_keys_and_values_are_as_many_as_configured():
    examples = made(keys=8, values=3, test_length="", train_examples=1000).examples("train")
    keys, values = ({token for e in examples for token in read(e.source)[i]} for i in (0, 1))
    assert (len(keys), values) == (8, {"v0", "v1", "v2"})


def test_more_pairs_than_keys_are_refused():
    message = r"data\.keys must be at least 16, the largest number of pairs in data\.{}, but is {}"
    with pytest.raises(UserError, match=message.format("test_length", 15)):
        made(keys=15)
    with pytest.raises(UserError, match=message.format("train_length", 2)):
        made(keys=2, train_length="10-16", test_length="5")
    assert made(keys=16).at_length(17) == []


def test_a_number_of_queries_is_refused_where_there_is_always_one():
    with pytest.raises(UserError, match=r"data\.queries needs data\.split=multi_query, but it is single_query"):
        made("single_query", queries=3)
