"""Kinds of errors, constructed and recognised."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tfstudy.evaluation.breakdown import (
    KINDS,
    add_errors,
    count_errors,
    first_error,
    kind_of,
    summarize_errors,
)
from tfstudy.runs.schema import Prediction

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


def test_a_replaced_token_is_replaced_everywhere():
    assert kind_of(["a", "b", "a"], ["x", "b", "x"]) == "one token replaced"
    assert kind_of(["a", "b", "a"], ["x", "b", "a"]) == "other, correct length"


@given(TOKENS, TOKENS)
def test_every_prediction_has_one_kind_and_is_correct_only_if_it_is(target, prediction):
    kind = kind_of(target, prediction)
    assert kind in KINDS
    assert (kind == "correct") == (target == prediction) == (first_error(target, prediction) is None)
    if len(prediction) == len(target):
        assert kind in ("correct", "swapped parts", "one token replaced", "other, correct length")


@given(TOKENS, st.data())
def test_a_repeated_part_is_found(target, data):
    start = data.draw(st.integers(0, len(target) - 1))
    end = data.draw(st.integers(start + 1, len(target)))
    times = data.draw(st.integers(1, 3))
    prediction = target[:end] + target[start:end] * times + target[end:]
    assert kind_of(target, prediction) in ("repeated part", "runs on")


@given(TOKENS, st.data())
def test_an_omitted_part_is_found(target, data):
    start = data.draw(st.integers(0, len(target) - 1))
    end = data.draw(st.integers(start + 1, len(target)))
    prediction = target[:start] + target[end:]
    assume(prediction)
    assert kind_of(target, prediction) in ("omitted part", "stops early")


@given(TOKENS, st.data())
def test_the_first_error_is_where_the_prefixes_end(gold, data):
    found = data.draw(TOKENS)
    place = first_error(gold, found)
    if place is not None:
        assert gold[:place] == found[:place]
        assert gold[place : place + 1] != found[place : place + 1]


def row(source, target, prediction):
    return Prediction(source, target, prediction)


def test_kinds_are_counted_with_examples_and_positions():
    found = count_errors(
        [row("1", "a b", "a b"), row("2", "a b", "a"), row("3", "a b", ""), row("4", "a b c d", "a b c")], 1
    )
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
    assert count_errors([row("i like", "我喜欢狗和猫。", prediction)]).kinds == {kind: 1}


@given(st.lists(st.lists(st.tuples(TOKENS, TOKENS), max_size=6), min_size=1, max_size=4))
def test_summaries_of_runs_add_up_to_the_summary_of_all_their_predictions(runs):
    read = [[Prediction("s", " ".join(target), " ".join(made)) for target, made in run] for run in runs]
    whole = summarize_errors([prediction for run in read for prediction in run])
    added = add_errors([summarize_errors(run) for run in read])
    assert {kind: one.n for kind, one in added.items()} == {kind: one.n for kind, one in whole.items()}
    assert list(added) == list(whole)
    for kind, one in added.items():
        assert one.first_error == pytest.approx(whole[kind].first_error)
    assert "correct" not in added or added["correct"].first_error is None
