"""Batches are a pure function of (seed, step)."""

import itertools

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.data.generated_data import LENGTHS, encoded
from tfstudy.data.batching import Batches, mix


def epoch(batches, number=0):
    return [batches.index(step).tolist() for step in range(number * len(batches), (number + 1) * len(batches))]


def flat(lists):
    return list(itertools.chain.from_iterable(lists))


BATCHING = st.sampled_from(["length", "random"])


@given(LENGTHS, st.integers(1, 12), st.sampled_from([0, 1, 5, 30]), BATCHING, st.integers(0, 9), st.integers(0, 3))
def test_every_epoch_holds_every_row_once(lengths, batch_size, batch_tokens, batching, seed, number):
    batches = Batches(encoded(lengths), batch_size, batch_tokens, batching, seed)
    assert sorted(flat(epoch(batches, number))) == list(range(len(lengths)))
    assert all(1 <= len(rows) <= batch_size for rows in epoch(batches, number))


@given(LENGTHS, st.integers(1, 12), st.integers(1, 40), st.integers(0, 3))
def test_no_batch_of_more_than_one_row_has_more_padded_tokens_than_allowed(lengths, batch_size, batch_tokens, number):
    data = encoded(lengths)
    for rows in epoch(Batches(data, batch_size, batch_tokens, "length"), number):
        padded = data.rows(torch.tensor(rows))
        assert len(rows) == 1 or len(rows) * max(padded.source.shape[1], padded.target.shape[1]) <= batch_tokens


def test_batches_are_as_full_as_the_bounds_allow():
    data = encoded([(1, 1)] * 10 + [(8, 1)] * 10)
    assert sorted(map(len, epoch(Batches(data, 8, batching="random")))) == [4, 8, 8]
    assert sorted(map(len, epoch(Batches(data, 8, 27, "length")))) == [3, 3, 3, 3, 8]


@given(LENGTHS, BATCHING, st.integers(0, 99), st.lists(st.integers(0, 60), max_size=8))
def test_a_batch_depends_on_seed_and_step_only(lengths, batching, seed, steps):
    data = encoded(lengths)
    batches = Batches(data, 4, batching=batching, seed=seed)
    for step in steps:
        assert torch.equal(batches.index(step), Batches(data, 4, batching=batching, seed=seed).index(step))


def test_batches_do_not_depend_on_the_global_generator():
    orders = []
    for seed in (0, 1):
        torch.manual_seed(seed)
        before = torch.get_rng_state()
        orders.append(epoch(Batches(encoded([(1, 1)] * 30), 4)))
        assert torch.equal(torch.get_rng_state(), before)
    assert orders[0] == orders[1]


@pytest.mark.parametrize("batching", ["length", "random"])
def test_neighbouring_seeds_and_epochs_have_different_orders(batching):
    data = encoded([(i % 3, i % 4) for i in range(60)])
    orders = [
        tuple(flat(epoch(Batches(data, 8, batching=batching, seed=seed), number)))
        for seed in range(5)
        for number in range(5)
    ]
    assert len(set(orders)) == 25


def test_length_batches_hold_targets_of_similar_length_and_come_in_any_order():
    data = encoded([(3, i % 8) for i in range(64)])
    rows = epoch(Batches(data, 8, batching="length"))
    assert all(len({i % 8 for i in batch}) == 1 for batch in rows)
    lengths = [batch[0] % 8 for batch in rows]
    assert lengths != sorted(lengths)


def test_random_batches_mix_lengths():
    data = encoded([(3, i % 8) for i in range(64)])
    assert min(len({i % 8 for i in batch}) for batch in epoch(Batches(data, 8, batching="random"))) > 1


def test_rows_of_the_same_length_meet_different_neighbours_in_every_epoch():
    batches = Batches(encoded([(2, 2)] * 40), 4)
    first, second, third = ({frozenset(rows) for rows in epoch(batches, number)} for number in range(3))
    assert not first & second & third


def test_mixed_seeds_of_neighbours_have_nothing_in_common():
    seeds = [mix(seed, step) for seed in range(60) for step in range(60)]
    assert len(set(seeds)) == 3600
    assert all(0 <= s < 2**63 for s in seeds)
    flips = [bin(mix(seed, step) ^ mix(seed, step + 1)).count("1") for seed in range(60) for step in range(60)]
    flips += [bin(mix(seed, step) ^ mix(seed + 1, step)).count("1") for seed in range(60) for step in range(60)]
    assert sum(flips) / len(flips) == pytest.approx(31.5, abs=0.5)
