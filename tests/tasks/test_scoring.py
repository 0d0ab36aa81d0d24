"""Scores of single predictions, and the Wilson interval."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from tests.tasks.toy_task import TOKENS, A, B, quick, toy
from tfstudy.tasks.scoring import exact_match, mean, token_accuracy, wilson

# Scores


@pytest.mark.parametrize(
    ("prediction", "gold", "exact", "share"),
    [
        ("a b c", "a b c", 1.0, 1.0),
        ("a b", "a b c d", 0.0, 0.5),
        ("a b c d", "a b", 0.0, 0.5),
        ("b c d", "a b c d", 0.0, 0.0),
        ("", "a", 0.0, 0.0),
        ("", "", 1.0, 1.0),
    ],
)
def test_known_predictions_have_their_known_scores(prediction, gold, exact, share):
    assert exact_match(prediction.split(), gold.split()) == exact
    assert token_accuracy(prediction.split(), gold.split()) == share


@given(TOKENS, TOKENS)
@quick
def test_scores_are_1_if_and_only_if_the_two_are_equal(a, b):
    assert (exact_match(a, b) == 1.0) == (a == b)
    assert (token_accuracy(a, b) == 1.0) == (a == b)


@given(TOKENS, TOKENS)
@quick
def test_scores_are_symmetric_and_within_0_and_1(a, b):
    for score in (exact_match, token_accuracy):
        assert score(a, b) == score(b, a)
        assert 0.0 <= score(a, b) <= 1.0


@given(TOKENS)
@quick
def test_a_list_and_a_tuple_of_the_same_tokens_match(a):
    assert exact_match(a, tuple(a)) == token_accuracy(tuple(a), a) == 1.0


def test_the_mean_of_nothing_is_nan():
    assert math.isnan(mean([]))
    assert mean(iter([0.0, 1.0, 0.5])) == 0.5


def test_a_task_scores_exact_match_first():
    scores = toy().score([("A", "ä"), ("x", "ä")], [A, B])
    assert list(scores.items()) == [("exact_match", 0.5), ("token_accuracy", 0.75)]


# Wilson's interval


def agrees(right, n, level=0.95):
    interval = binomtest(right, n).proportion_ci(level, method="wilson")
    return pytest.approx((interval.low, interval.high), abs=1e-9)


@pytest.mark.parametrize("n", [1, 2, 3, 7, 20, 101])
def test_wilson_agrees_with_scipy_at_every_count(n):
    for right in range(n + 1):
        assert wilson(right, n) == agrees(right, n)


@given(st.integers(1, 50_000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
@quick
def test_wilson_agrees_with_scipy_at_any_count(counts):
    assert wilson(*counts) == agrees(*counts)


def test_wilson_at_another_level_agrees_with_scipy():
    assert wilson(3, 10, z=2.5758293035489004) == agrees(3, 10, 0.99)


@given(st.integers(2, 10**6))
@quick
def test_an_interval_never_has_zero_width(n):
    low, high = wilson(0, n)
    assert low == pytest.approx(0, abs=1e-12)
    assert high > 1 / n
    low, high = wilson(n, n)
    assert high == pytest.approx(1, abs=1e-12)
    assert low < 1 - 1 / n


@given(st.integers(1, 10**4).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
@quick
def test_an_interval_is_mirrored_and_within_0_and_1(counts):
    right, n = counts
    low, high = wilson(right, n)
    assert 0 <= low < high <= 1
    assert wilson(n - right, n) == pytest.approx((1 - high, 1 - low), abs=1e-9)


def test_without_examples_the_interval_is_0_to_1():
    assert wilson(0, 0) == (0.0, 1.0)
