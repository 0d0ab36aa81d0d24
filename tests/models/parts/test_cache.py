"""The cache of keys and values: a value whose copies share memory."""

from itertools import pairwise

import pytest
import torch
from torch.testing import assert_close

from tfstudy.models.parts.attention import SPARE, Cache, KeyValue


def drawn(length, batch=2):
    return KeyValue(torch.randn(batch, 3, length, 4), torch.randn(batch, 3, length, 4))


def joined(*parts):
    return tuple(torch.cat(tensors, 2) for tensors in zip(*parts, strict=True))


def grown(*parts):
    cache = Cache(drawn(0))
    for part in parts:
        cache = cache.append(part)
    return cache


@pytest.mark.parametrize("gradients", [True, False])
@pytest.mark.parametrize("sizes", [[1] * 50, [5, 1, 1, 40, 1, 1], [3]], ids=len)
def test_a_cache_holds_all_that_was_appended(sizes, gradients):
    parts = [drawn(size) for size in sizes]
    with torch.set_grad_enabled(gradients):
        cache = grown(*parts)
    assert cache.length == sum(sizes)
    assert_close(tuple(cache.seen), joined(*parts), rtol=0, atol=0)


@torch.no_grad()
def test_appending_copies_nothing_that_is_there_until_the_room_is_used_up():
    cache, places = grown(drawn(1), drawn(1)), []
    for _ in range(300):
        cache = cache.append(drawn(1))
        places.append(cache.seen.keys.data_ptr())
    assert places[: SPARE - 1] == [places[0]] * (SPARE - 1)
    moves = sum(before != after for before, after in pairwise(places))
    assert 0 < moves < 10


@torch.no_grad()
def test_appending_twice_to_the_same_cache_leaves_both_results_right():
    first, second, *others = (drawn(1) for _ in range(5))
    start = grown(first, second)
    branches = [start.append(other) for other in others]
    for branch, other in zip(branches, others, strict=True):
        longer = branch.append(first)
        assert_close(tuple(branch.seen), joined(first, second, other), rtol=0, atol=0)
        assert_close(tuple(longer.seen), joined(first, second, other, first), rtol=0, atol=0)
    assert_close(tuple(start.seen), joined(first, second), rtol=0, atol=0)


@torch.no_grad()
def test_selected_rows_have_memory_of_their_own():
    parts, rows, more = [drawn(1) for _ in range(4)], torch.tensor([1, 1, 0]), drawn(1, batch=3)
    cache = grown(*parts)
    chosen = cache.select_rows(rows)
    expected = tuple(tensor[rows] for tensor in joined(*parts))
    assert_close(tuple(chosen.seen), expected, rtol=0, atol=0)
    cache.append(drawn(1))
    after = chosen.append(more)
    assert after.seen.keys.data_ptr() == chosen.seen.keys.data_ptr(), "it was selected with room for more"
    assert_close(tuple(after.seen), joined(KeyValue(*expected), more), rtol=0, atol=0)


def test_gradients_flow_through_a_cache():
    parts = [KeyValue(*(tensor.requires_grad_() for tensor in drawn(2))) for _ in range(3)]
    sum(tensor.square().sum() for tensor in grown(*parts).select_rows(torch.tensor([0, 0, 1])).seen).backward()
    for part in parts:
        for tensor in part:
            assert_close(tensor.grad, 2 * tensor.detach() * torch.tensor([2.0, 1.0])[:, None, None, None])


def test_a_cache_made_without_gradients_can_be_used_with_them():
    with torch.no_grad():
        start = grown(drawn(1), drawn(1))
    new = KeyValue(*(tensor.requires_grad_() for tensor in drawn(1)))
    loss = start.append(new).seen.keys.square().sum()
    with torch.no_grad():
        start.append(drawn(1))
    loss.backward()
    assert_close(new.keys.grad, 2 * new.keys.detach())


@torch.no_grad()
def test_a_beam_uses_the_same_memory_again_but_never_that_of_a_cache_that_is_kept():
    rows, cache, places, kept = torch.tensor([1, 0]), grown(drawn(1), drawn(1)), set(), []
    for step in range(SPARE - 2):
        cache = cache.append(drawn(1)).select_rows(rows)
        places.add(cache.seen.keys.data_ptr())
        if step % 4 == 0:
            kept.append((cache, [tensor.clone() for tensor in cache.seen]))
    assert len(places) <= 2 + len(kept)
    for held, before in kept:
        assert_close(list(held.seen), before, rtol=0, atol=0)


@torch.no_grad()
def test_fewer_rows_fit_into_the_memory_of_more():
    parts = [drawn(1, batch=4) for _ in range(3)]
    cache = grown(*parts).select_rows(torch.arange(4))
    for rows in (torch.tensor([3, 1]), torch.tensor([1])):
        cache = cache.select_rows(rows)
    expected = tuple(tensor[[1]] for tensor in joined(*parts))
    assert_close(tuple(cache.seen), expected, rtol=0, atol=0)
