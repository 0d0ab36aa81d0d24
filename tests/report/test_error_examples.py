"""Wrong predictions as text and in a report: kinds, examples, targets and outputs below each other."""

import gzip
import json
import random

import msgspec
import pytest

from tests.example_records import GOLD, edit_result, predict, result, three_architectures, write
from tfstudy.analysis.collection import read_finished_runs
from tfstudy.analysis.conditions import conditions
from tfstudy.errors import UserError
from tfstudy.evaluation.error_kinds import KINDS, first_error, summarize_errors
from tfstudy.report.error_examples import (
    DOTS,
    EXAMPLE_SEEDS,
    MAX_EXAMPLES,
    MAX_TOKENS,
    alignment,
    build_error_browser,
    example,
)
from tfstudy.report.plots.bars import shares_by_seed
from tfstudy.runs.reader import read_predictions
from tfstudy.runs.schema import Prediction


def lines(target, prediction, width=60):
    return [text.plain.rstrip() for text in alignment(target.split(), prediction.split(), width)]


@pytest.mark.parametrize(
    ("target", "prediction", "shown"),
    [
        ("a bb c", "a b c", ["a bb c", "a b  c", "  ^ token 2 of 3"]),
        ("a b c d", "a b d", ["a b c d", "a b   d", "    ^ token 3 of 4"]),
        ("a b", "a b c", ["a b (end)", "a b c", "    ^ after all 2 tokens"]),
        ("a b", "", ["a     b", "(end)", "^ token 1 of 2"]),
        ("a a b", "a b", ["a a b", "a   b", "  ^ token 2 of 3"]),
        ("a b", "a b", ["a b", "a b", "correct"]),
    ],
)
def test_tokens_are_below_each_other_and_the_first_difference_is_marked(target, prediction, shown):
    assert lines(target, prediction) == shown


def test_long_sequences_are_shown_around_the_first_difference():
    words = [f"w{number}" for number in range(100)]
    gold, predicted, mark = lines(" ".join(words), " ".join([*words[:70], "x", *words[71:]]), 40)
    assert all(line.startswith(DOTS) and line.endswith(DOTS) for line in (gold, predicted))
    assert mark.endswith("^ token 71 of 100")
    place = mark.index("^")
    assert (gold[place : place + 3], predicted[place : place + 3]) == ("w70", "x  ")
    assert lines(" ".join(words), " ".join(words[:50]), 40)[1].endswith("(end)"), "an output that ended has no dots"
    shown = example(3, Prediction("s " * 500, " ".join(words), " ".join([*words[:50], *"x" * 9])))
    assert (shown.seed, shown.before, shown.at, shown.target_rest, shown.prediction_rest) == (3, 48, 2, 43, 2)
    assert shown.target[:4] == ["w48", "w49", "w50", "w51"]
    assert shown.prediction[:4] == ["w48", "w49", "x", "x"]
    assert shown.source.split() == ["s"] * MAX_TOKENS + [DOTS]


def test_no_line_is_wider_than_the_screen_and_there_is_a_caret_where_there_is_an_error():
    generator = random.Random(0)
    for _ in range(300):
        kinds = ["a", "bb", "I_TURN_LEFT", "翻译", "x" * 50][: generator.choice([3, 5])]
        target, prediction = (generator.choices(kinds, k=generator.randrange(60)) for _ in range(2))
        width = generator.randrange(50, 80)
        texts = alignment(target, prediction, width)
        assert all(text.cell_len <= width for text in texts)
        assert ("^" in texts[2].plain) == (first_error(target, prediction) is not None)


def test_very_long_sequences_are_aligned_quickly():
    target = ["a", "b"] * 100_000
    assert alignment(target, ["b", *target], 60)[2].plain.startswith("^ token 1 of 200000")


# In a report


@pytest.fixture
def study(tmp_path):
    return three_architectures(tmp_path)


def browser(study):
    return build_error_browser(conditions(read_finished_runs(study).runs))


def test_kinds_are_counted_over_seeds_and_examples_have_the_place_of_the_first_difference(study):
    found = browser(study)
    cnn = found.conditions[0]
    assert (cnn.condition.arch, cnn.seeds, cnn.n) == ("cnn", [0, 1, 2, 3], 16)
    kinds = {kind.name: kind for kind in cnn.kinds}
    assert list(kinds) == [kind for kind in KINDS if kind in kinds]
    early = kinds["stops early"]
    assert (early.n, early.share, early.first_error) == (4, 25.0, 50.0)
    assert early.examples[0].target == ["a", "b", "c", "d"]
    assert early.examples[0].prediction == ["a", "b", "(end)", ""]
    assert early.examples[0].at == 2
    assert kinds["correct"].examples == []
    assert "correct" not in found.kinds


def test_examples_are_few_and_taken_evenly(tmp_path):
    study = predict(write(tmp_path / "study", result(0)), *[(GOLD, "a b")] * 100)
    [kind] = browser(study).conditions[0].kinds
    assert (kind.n, len(kind.examples)) == (100, MAX_EXAMPLES)
    assert [one.source for one in kind.examples[:3]] == ["s0", "s20", "s40"]


@pytest.mark.parametrize("content", [None, b"", b"no gzip", gzip.compress(b'{"source": "a"}\n[1', mtime=0)[:-9]])
def test_missing_predictions_are_reported(tmp_path, content):
    study = predict(write(tmp_path / "study", result(0)), (GOLD, "a"))
    [file] = study.glob("*/*/*/predictions/test.jsonl.gz")
    file.unlink() if content is None else file.write_bytes(content)
    with pytest.raises(UserError, match="no readable predictions of split 'test'"):
        read_predictions(file.parent.parent, "test")
    found = browser(study)
    assert found.conditions == []
    assert found.notes[-1] == "Conditions without readable predictions: scan length lstm."


def test_of_many_conditions_only_the_first_are_shown(study, monkeypatch):
    monkeypatch.setattr("tfstudy.report.error_examples.MAX_CONDITIONS", 2)
    found = browser(study)
    assert len(found.conditions) == 2
    assert found.notes[1] == "Only the first 2 of 3 conditions are shown."


def summarized(study):
    """Add to each record the summary of its predictions, as the code writes it today."""
    for path in study.glob("*/*/*/result.json"):
        kinds = msgspec.to_builtins(summarize_errors(read_predictions(path.parent, "test")))
        splits = json.loads(path.read_text())["splits"]
        splits["test"] |= {"n": sum(kind["n"] for kind in kinds.values()), "errors": kinds}
        edit_result(path.parent, splits=splits)
    return study


def test_a_summary_gives_the_same_as_the_predictions_which_are_read_for_examples_only(tmp_path, monkeypatch):
    study = write(tmp_path / "study", *(result(seed) for seed in range(EXAMPLE_SEEDS + 3)))
    before = browser(predict(study, (GOLD, GOLD), (GOLD, "a b")))
    summarized(study)
    read = []
    monkeypatch.setattr(
        "tfstudy.report.error_examples.read_predictions", lambda *words: read.append(words) or read_predictions(*words)
    )
    [every] = conditions(read_finished_runs(study).runs)
    assert shares_by_seed(every) == [{"correct": 50.0, "stops early": 50.0}] * (EXAMPLE_SEEDS + 3)
    after = build_error_browser([every])
    assert [one[1:] for one in after.conditions] == [one[1:] for one in before.conditions]
    assert after[1:] == before[1:]
    assert len(read) == EXAMPLE_SEEDS
    for file in study.glob("*/*/*/predictions/*"):
        file.unlink()
    [one] = browser(study).conditions
    assert (one.n, any(kind.examples for kind in one.kinds)) == (2 * (EXAMPLE_SEEDS + 3), False)


@pytest.mark.parametrize("n", [-1, 3, "4"])
def test_a_summary_that_does_not_add_up_is_not_believed(tmp_path, n):
    study = summarized(predict(write(tmp_path / "study", result(0), result(1)), (GOLD, GOLD), (GOLD, "a b")))
    [path] = study.glob("*/*/s0-*")
    splits = json.loads((path / "result.json").read_text())["splits"]
    splits["test"]["errors"]["correct"]["n"] = n
    edit_result(path, splits=splits)
    [(left_out, reason)] = read_finished_runs(study).left_out
    assert left_out == path
    assert "the result is broken" in reason
