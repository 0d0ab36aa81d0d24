"""Kinds of errors, constructed and recognised, and accuracy by length."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tfstudy.evaluation.breakdown import (
    KINDS,
    MIN_EXAMPLES,
    accuracy_by_length,
    count_errors,
    first_error,
    kind_of,
    mean_over_lengths,
)
from tfstudy.runs.schema import Prediction, SplitScores

TOKENS = st.lists(st.sampled_from("abcd"), min_size=1, max_size=12)


@pytest.mark.parametrize(
    ("prediction", "kind", "position"),
    [
        ("a b c d", "correct", None),
        ("", "empty", 0),
        ("a b", "stops early", 2),
        ("a b c d a", "runs on", 4),
        ("c d a b", "swapped parts", 0),
        ("a b a b c d", "repeated part", 2),
        ("a b b b c d", "repeated part", 2),
        ("a c d", "omitted part", 1),
        ("d", "omitted part", 0),
        ("a x c d", "one token replaced", 1),
        ("a x c y", "other, correct length", 1),
        ("x b", "other, too short", 0),
        ("x b c d a", "other, too long", 0),
    ],
)
def test_a_prediction_of_a_b_c_d(prediction, kind, position):
    assert kind_of(["a", "b", "c", "d"], prediction.split()) == kind
    assert first_error(["a", "b", "c", "d"], prediction.split()) == position


@given(TOKENS, TOKENS)
def test_every_prediction_has_one_kind_and_its_first_error_where_the_prefixes_end(target, prediction):
    kind, place = kind_of(target, prediction), first_error(target, prediction)
    assert kind in KINDS
    assert (kind == "correct") == (target == prediction) == (place is None)
    if place is not None:
        assert target[:place] == prediction[:place]
        assert target[place : place + 1] != prediction[place : place + 1]
    if len(prediction) == len(target):
        assert kind in ("correct", "swapped parts", "one token replaced", "other, correct length")


@given(TOKENS, st.data())
def test_a_repeated_and_an_omitted_part_are_found(target, data):
    start = data.draw(st.integers(0, len(target) - 1))
    end = data.draw(st.integers(start + 1, len(target)))
    times = data.draw(st.integers(1, 3))
    repeated = target[:end] + target[start:end] * times + target[end:]
    assert kind_of(target, repeated) in ("repeated part", "runs on")
    assume(omitted := target[:start] + target[end:])
    assert kind_of(target, omitted) in ("omitted part", "stops early")


def test_kinds_are_counted_with_examples_and_positions():
    rows = ("1", "a b", "a b"), ("2", "a b", "a"), ("3", "a b", ""), ("4", "a b c d", "a b c")
    found = count_errors([Prediction(*row) for row in rows], 1)
    assert found.n == 4
    assert found.kinds == {"correct": 1, "empty": 1, "stops early": 2}
    assert found.first_error == {"empty": 0.0, "stops early": (0.5 + 0.75) / 2}
    assert [example.source for example in found.examples["stops early"]] == ["2"]


@pytest.mark.parametrize(
    ("prediction", "kind"),
    [
        ("我喜欢狗和猫。", "correct"),
        ("我", "stops early"),
        ("我喜欢狗和猫。。吗", "runs on"),
        ("我 喜欢狗和猫。", "correct"),
    ],
)
def test_targets_without_spaces_are_compared_by_character(prediction, kind):
    assert count_errors([Prediction("i like", "我喜欢狗和猫。", prediction)]).kinds == {kind: 1}


def scores(n: int = 100, **accuracies: float) -> SplitScores:
    """The scores of a split with `n` examples of each length, such as `n7=0.9`."""
    slices = {k[1:]: {"n": n, "metrics": {"exact_match": v}} for k, v in accuracies.items()}
    return SplitScores.create("test", {"n": n * len(accuracies), "slices": {"length": slices}})


def test_l90_is_the_longest_length_before_accuracy_first_falls_below_90_per_cent():
    found = accuracy_by_length([scores(n9=0.9, n10=0.89, n11=0.95, n12=0.5, n2=1.0), scores(n13=0.49, n20=0.6)])
    assert (found.L90, found.L50, found.longest_tested) == (9, 12, 20)
    assert accuracy_by_length([scores(n1=0.4, n2=1.0)]).L50 is None
    assert not accuracy_by_length([SplitScores.create("test", {"n": 0})])


def test_a_length_with_few_examples_does_not_count():
    rare = scores(n=MIN_EXAMPLES - 1, n1=0.0)
    assert accuracy_by_length([rare, scores(n2=1.0)]).L90 == 2
    assert accuracy_by_length([rare]).longest_tested == 1, "where all lengths have few examples, all count"


def test_examples_of_one_length_are_counted_over_all_splits():
    found = accuracy_by_length([scores(n3=1.0), scores(n3=0.5)])
    assert found.exact_match["3"] == {"n": 200, "exact_match": 0.75}


def test_every_length_has_the_same_weight_in_a_mean_and_metrics_without_cases_at_some_length_have_none():
    first = {"n": 100, "metrics": {"exact_match": 1.0, "recall": 0.5}}
    second = {"n": 1, "metrics": {"exact_match": 0.0}}
    for parts in ({"1": first, "2": second}, {"1": second, "2": first}):
        assert mean_over_lengths({"length": parts}) == {"mean_over_lengths": {"exact_match": 0.5}}
    assert mean_over_lengths({}) == {}
