"""Results and predictions in the interpreter and in notebooks."""

import html.parser
import json

import pytest

from tests.example_records import HOSTILE, result
from tfstudy.runs.reader import RESULTS
from tfstudy.runs.schema import Prediction, Result


def decoded(**more: object) -> Result:
    return RESULTS.decode(json.dumps(result(3, 0.131, **more)))


def test_a_result_is_one_line_without_its_slices():
    assert repr(decoded()) == "Result(scan length, lstm, seed 3: exact match 13.1 % on test)"
    assert repr(decoded(status="diverged", splits={})) == "Result(scan length, lstm, seed 3: diverged)"
    assert repr(decoded(splits={})) == "Result(scan length, lstm, seed 3: nothing measured)"
    assert "smoke run" in repr(decoded(smoke=True))


def test_a_printed_result_has_a_line_for_each_metric():
    lines = str(decoded()).splitlines()
    assert len({len(line) for line in lines[1:]}) == 1
    assert [line.split() for line in lines[2:]] == [
        ["test", "1,000", "exact", "match", "13.1"],
        ["token", "accuracy", "70.0"],
        ["exact", "match,", "oracle", "length", "60.0"],
    ]


def test_the_scores_of_a_split_are_one_line():
    assert repr(decoded().splits["test"]) == "SplitScores(test: exact match 13.1 % of 1,000 examples)"


def test_a_prediction_is_one_line_and_knows_whether_it_is_correct():
    right, wrong = Prediction("a b", "x", "x"), Prediction("a b", "x y", "x")
    assert (right.correct, wrong.correct) == (True, False)
    assert repr(right) == "Prediction('a b' -> 'x', correct)"
    assert repr(wrong) == "Prediction('a b' -> 'x', wrong, target='x y')"


@pytest.mark.parametrize("changes", [{}, {"task": HOSTILE}, {"status": "diverged", "reason": HOSTILE, "splits": {}}])
def test_the_html_of_a_result_is_a_table_that_contains_no_foreign_tags(changes):
    tags, texts = [], []
    parser = html.parser.HTMLParser()
    parser.handle_starttag = lambda tag, attributes: tags.append((tag, attributes))
    parser.handle_data = texts.append
    parser.feed(decoded(**changes)._repr_html_())
    assert {tag for tag, _ in tags} <= {"table", "caption", "thead", "tbody", "tr", "th", "td"}
    assert all(not attributes for _, attributes in tags)
    assert any("seed 3" in text for text in texts)
    assert ("13.1" in texts) == ("splits" not in changes)
