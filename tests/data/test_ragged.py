"""Batches are divided into micro-batches and groups without a change in what they hold."""

import itertools
import tracemalloc
from collections import Counter

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.data.generated_data import LENGTHS, encoded, pairs
from tfstudy.data.encoding import CANDIDATES, GROUP_OVERHEAD, PAD, least_padding, split_evenly


@given(LENGTHS, st.integers(1, 4), st.integers(1, 3), st.integers(1, 5))
def test_devices_divide_a_batch_and_their_token_counts_add_up(lengths, micro_batches, groups, ranks):
    data, index = encoded(lengths), torch.randperm(len(lengths))
    whole = data.rows(index)
    shares = [data.batch(index, micro_batches, groups, rank, ranks) for rank in range(ranks)]
    assert sum(share.tokens for share in shares) == pytest.approx((whole.target[:, 1:] != PAD).sum())
    assert sum((pairs(share.micro_batches) for share in shares), Counter()) == pairs([[whole]])
    for share in shares:
        assert len(share.micro_batches) <= micro_batches
        assert all(0 < len(micro_batch) <= groups for micro_batch in share.micro_batches)


def test_a_batch_that_is_not_divided_keeps_its_order():
    data, index = encoded([(1, 5), (3, 1), (2, 2)]), torch.tensor([0, 2, 1])
    [[rows]] = data.batch(index).micro_batches
    assert torch.equal(rows.target, data.rows(index).target)


@given(st.lists(st.integers(1, 50), max_size=30), st.integers(1, 6))
def test_micro_batches_are_consecutive_and_differ_by_less_than_a_row(lengths, count):
    ranges = split_evenly(np.array(lengths, dtype=np.int64), count)
    assert [i for start, end in ranges for i in range(start, end)] == list(range(len(lengths)))
    assert len(ranges) <= count
    for start, end in ranges:
        assert end > start
        assert sum(lengths[start:end]) < sum(lengths) / count + max(lengths) + 1e-9


def cost(source, target, ranges):
    return sum(
        (end - start) * (source[start:end].max() + target[start:end].max()) + GROUP_OVERHEAD for start, end in ranges
    )


@given(st.lists(st.tuples(st.integers(1, 300), st.integers(1, 300)), max_size=7), st.integers(1, 4))
def test_groups_are_those_with_the_least_padding(lengths, groups):
    source, target = (np.array([pair[side] for pair in lengths], dtype=np.int64) for side in (0, 1))
    n, ranges = len(lengths), least_padding(source, target, groups)
    possible = [
        list(itertools.pairwise([0, *inner, n]))
        for size in range(min(groups, n))
        for inner in itertools.combinations(range(1, n), size)
    ]
    assert cost(source, target, ranges) == min((cost(source, target, p) for p in possible), default=0)
    assert [i for start, end in ranges for i in range(start, end)] == list(range(n))
    assert len(ranges) <= groups


@pytest.mark.parametrize("rows", [CANDIDATES + 1, 2000, 5000])
def test_a_large_batch_is_grouped_too_and_needs_little_memory(rows):
    random = np.random.default_rng(0)
    source, target = random.integers(3, 10, rows), np.sort(random.integers(3, 50, rows))
    tracemalloc.start()
    ranges = least_padding(source, target, 4)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 64 * CANDIDATES**2, "some tables of candidates x candidates numbers of 8 bytes"
    assert [i for start, end in ranges for i in range(start, end)] == list(range(rows))
    assert len(ranges) == 4
    assert cost(source, target, ranges) < 0.75 * cost(source, target, [(0, rows)])


def test_near_the_bound_the_choice_of_groups_is_nearly_the_best(monkeypatch):
    random = np.random.default_rng(1)
    source, target = random.integers(3, 10, 700), np.sort(random.integers(3, 50, 700))
    bounded = cost(source, target, least_padding(source, target, 4))
    monkeypatch.setattr("tfstudy.data.encoding.CANDIDATES", 700)
    assert 1 <= bounded / cost(source, target, least_padding(source, target, 4)) < 1.01
