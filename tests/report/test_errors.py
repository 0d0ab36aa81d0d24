"""Wrong predictions: their kinds, and examples with the first wrong token marked."""

import gzip
import re

import pytest

from tests.example_records import GOLD, predict, put, result, write
from tests.example_tables import text_of
from tfstudy.errors import UserError
from tfstudy.evaluation.breakdown import first_error
from tfstudy.report.one_run import errors, marked

LONG = [f"w{number}" for number in range(100)]


@pytest.mark.parametrize(
    ("target", "prediction", "shown"),
    [
        ("a bb c", "a b c", ["a | bb c", "a | b c"]),
        ("a b", "a b c", ["a b | (end)", "a b | c"]),
        ("a b", "", ["| a b", "| (end)"]),
        ("a b", "a b", ["a b", "a b"]),
        (
            " ".join(LONG),
            " ".join([*LONG[:70], "x", *LONG[71:]]),
            [f"... {' '.join(LONG[58:70])} | {one} {' '.join(LONG[71:82])} ..." for one in ("w70", "x")],
        ),
    ],
)
def test_a_bar_stands_before_the_first_wrong_token(target, prediction, shown):
    both = [text.split() for text in (target, prediction)]
    assert [marked(tokens, first_error(*both)) for tokens in both] == shown


def test_lines_and_values_have_the_kinds_with_the_most_frequent_first(tmp_path):
    study = predict(write(tmp_path, result(0)), ("a", "a"), ("a b", ""), ("a b", "a"), ("a b", "a"))
    [path] = study.glob("*/*/s0-*")
    text = text_of(errors(path, "test", 1))
    title, _, *kinds = text.split("\n\n")[0].splitlines()
    assert title == f"lstm {path.name}, test: 4 predictions"
    shown = ["correct 1 25.0 %", "stops early 2 50.0 % 50 %", "empty 1 25.0 % 0 %"]
    assert [" ".join(line.split()) for line in kinds] == shown
    assert [line.split()[-1] for line in text.splitlines() if "source" in line] == ["s2", "s1"], "an example of each"
    assert re.search(r"\ntoken 2 of 2 +target +a \| b\n", text)
    early = errors(path, "test", 2).values["kinds"]["stops early"]
    assert (early["n"], early["first_error_share"]) == (2, 0.5)
    assert [one["first_error"] for one in early["examples"]] == [2, 2]
    with pytest.raises(UserError, match="did you mean 'test'"):
        errors(path, "tset", 1)
    put(path, "config.yaml", "task: pairs\narch: lstm\ndata: {tokens: characters}\n")
    predict(study, ("ab", "a"), ("a b", "a"))
    assert {*errors(path, "test", 1).values["kinds"]} == {"stops early"}, "tokens are characters, spaces too"


@pytest.mark.parametrize("content", [None, b"", b"no gzip", gzip.compress(b'{"source": "a"}\n[1', mtime=0)[:-9]])
def test_missing_and_damaged_predictions_are_one_error(tmp_path, content):
    study = predict(write(tmp_path / "study", result(0)), (GOLD, "a"))
    [file] = study.glob("*/lstm/*/predictions/test.jsonl.gz")
    file.unlink() if content is None else file.write_bytes(content)
    with pytest.raises(UserError, match="no readable predictions of split 'test'"):
        errors(file.parent.parent, "test", 1)
