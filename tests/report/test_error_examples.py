"""Wrong predictions: their kinds, and examples with target and output below each other."""

import gzip
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from tests.example_records import GOLD, edit_result, predict, put, result, write
from tests.example_tables import rows, text_of
from tfstudy.analysis.frame import read_finished_runs
from tfstudy.errors import UserError
from tfstudy.evaluation.breakdown import first_error
from tfstudy.report.error_examples import DOTS, errors, side_by_side
from tfstudy.report.plots.rows import shares_by_seed

WORDS = st.lists(st.sampled_from(["a", "bb", "I_TURN_LEFT", "翻译", "x" * 50]), max_size=60)


def lines(target, prediction, width=60):
    return list(side_by_side(target.split(), prediction.split(), width))


@pytest.mark.parametrize(
    ("target", "prediction", "shown"),
    [
        ("a bb c", "a b c", ["a bb c", "a b c", "  ^ token 2 of 3"]),
        ("a b c d", "a b d", ["a b c d", "a b d", "    ^ token 3 of 4"]),
        ("a b", "a b c", ["a b (end)", "a b c", "    ^ after all 2 tokens"]),
        ("a b", "", ["a b", "(end)", "^ token 1 of 2"]),
        ("a a b", "a b", ["a a b", "a b", "  ^ token 2 of 3"]),
        ("a b", "a b", ["a b", "a b", "correct"]),
    ],
)
def test_the_first_difference_is_marked(target, prediction, shown):
    assert lines(target, prediction) == shown


def test_long_sequences_are_shown_around_the_first_difference():
    words = [f"w{number}" for number in range(100)]
    gold, predicted, mark = lines(" ".join(words), " ".join([*words[:70], "x", *words[71:]]), 40)
    assert all(line.startswith(DOTS) and line.endswith(DOTS) for line in (gold, predicted))
    place = mark.index("^")
    assert (gold[place : place + 3], predicted[place : place + 3], mark[place:]) == ("w70", "x w", "^ token 71 of 100")


@given(WORDS, WORDS, st.integers(50, 80))
def test_no_line_is_wider_than_the_screen_and_there_is_a_caret_where_there_is_an_error(target, prediction, width):
    texts = side_by_side(target, prediction, width)
    assert all(cell_len(text) <= width for text in texts)
    assert ("^" in texts[2]) == (first_error(target, prediction) is not None)


# Kinds, with examples


def test_lines_and_values_have_the_kinds_with_the_most_frequent_first(tmp_path):
    study = predict(write(tmp_path, result(0)), ("a", "a"), ("a b", ""), ("a b", "a"), ("a b", "a"))
    [path] = study.glob("*/*/s0-*")
    text = text_of(errors(path, "test", 1))
    title, _, *kinds = text.split("\n\n")[0].splitlines()
    assert title == f"lstm {path.name}, test: 4 predictions"
    shown = ["correct 1 25.0 %", "stops early 2 50.0 % 50 %", "empty 1 25.0 % 0 %"]
    assert [" ".join(line.split()) for line in kinds] == shown
    assert [line.split()[-1] for line in text.splitlines() if "source" in line] == ["s2", "s1"], "an example of each"
    early = errors(path, "test", 2).values()["kinds"]["stops early"]
    assert (early["n"], early["first_error_share"]) == (2, 0.5)
    assert [one["first_error"] for one in early["examples"]] == [2, 2]
    with pytest.raises(UserError, match="did you mean 'test'"):
        errors(path, "tset", 1)
    put(path, "config.yaml", "task: pairs\narch: lstm\ndata: {tokens: characters}\n")
    predict(study, ("ab", "a"), ("a b", "a"))
    assert {*errors(path, "test", 1).values()["kinds"]} == {"stops early"}, "tokens are characters, spaces too"


@pytest.mark.parametrize("content", [None, b"", b"no gzip", gzip.compress(b'{"source": "a"}\n[1', mtime=0)[:-9]])
def test_missing_and_damaged_predictions_are_one_error(tmp_path, content):
    study = predict(write(tmp_path / "study", result(0)), (GOLD, "a"))
    [file] = study.glob("*/lstm/*/predictions/test.jsonl.gz")
    file.unlink() if content is None else file.write_bytes(content)
    with pytest.raises(UserError, match="no readable predictions of split 'test'"):
        errors(file.parent.parent, "test", 1)


def test_a_record_has_the_shares_of_each_seed(tmp_path):
    study = predict(write(tmp_path / "study", result(0), result(1)), (GOLD, GOLD), (GOLD, "a b"))
    found = shares_by_seed(rows(study)[0])
    assert found.loc[:, found.any()].to_dict("records") == [{"correct": 50.0, "stops early": 50.0}] * 2


@pytest.mark.parametrize("n", [-1, "4"])
def test_a_count_of_errors_that_is_none_is_not_believed(tmp_path, n):
    study = predict(write(tmp_path / "study", result(0), result(1)), (GOLD, GOLD), (GOLD, "a b"))
    [path] = study.glob("*/*/s0-*")
    splits = json.loads((path / "result.json").read_text())["splits"]
    splits["test"]["errors"]["correct"]["n"] = n
    edit_result(path, splits=splits)
    [(left_out, reason)] = read_finished_runs(study).left_out
    assert left_out == path
    assert "result.json is damaged" in reason
