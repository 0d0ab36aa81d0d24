"""The errors that a report shows: kinds, examples, marked tokens, and what is not shown."""

import gzip
import json
from pathlib import Path

import msgspec
import pytest

from tests.example_records import GOLD, edit_result, predict, result, three_architectures, write
from tfstudy.analysis.collection import read_finished_runs
from tfstudy.analysis.conditions import conditions
from tfstudy.errors import UserError
from tfstudy.evaluation.error_kinds import KINDS, summarize_errors
from tfstudy.report.error_browser import EXAMPLE_SEEDS, MAX_EXAMPLES, MAX_FILES, MAX_TOKENS, align, build_error_browser
from tfstudy.report.plots.errors import shares_by_seed
from tfstudy.runs.reader import read_predictions


@pytest.fixture
def study(tmp_path) -> Path:
    return three_architectures(tmp_path)


def test_examples_have_the_position_of_the_first_difference(study):
    browser = build_error_browser(conditions(read_finished_runs(study).runs))
    cnn = browser.conditions[0]
    assert (cnn.condition.arch, cnn.seeds, cnn.n) == ("cnn", [0, 1, 2, 3], 16)
    kinds = {kind.name: kind for kind in cnn.kinds}
    assert list(kinds) == [kind for kind in KINDS if kind in kinds]
    early = kinds["stops early"]
    assert (early.n, early.share, early.first_error) == (4, 25.0, 50.0)
    assert early.examples[0].target == ["a", "b", "c", "d", "(end)"]
    assert early.examples[0].prediction == ["a", "b", "(end)", "", ""]
    assert early.examples[0].at == 2
    replaced = kinds["one token replaced"].examples[0]
    assert (replaced.prediction[replaced.at], replaced.target[replaced.at]) == ("x", "b")
    assert kinds["correct"].examples == []
    assert "correct" not in browser.kinds


def test_examples_are_few_and_taken_evenly(tmp_path):
    study = predict(write(tmp_path / "study", result(0)), *[(GOLD, "a b")] * 100)
    [kind] = build_error_browser(conditions(read_finished_runs(study).runs)).conditions[0].kinds
    assert (kind.n, len(kind.examples)) == (100, MAX_EXAMPLES)
    assert [one.source for one in kind.examples[:3]] == ["s0", "s20", "s40"]


def test_long_texts_are_cut_around_the_first_difference():
    numbers = [str(n) for n in range(100)]
    one = align(3, "s", numbers, [*numbers[:50], *"x" * 9])
    assert (one.seed, one.before, one.at, one.target_rest, one.prediction_rest) == (3, 48, 2, 43, 2)
    assert one.target == ["48", "49", "50", "51", "52", "53", "54", "55", "56"]
    assert one.prediction == ["48", "49", *"x" * 7]


@pytest.mark.parametrize(
    ("target", "prediction", "rows"),
    [
        ("a b", "a b c", (["a", "b", "(end)", ""], ["a", "b", "c", "(end)"])),
        ("a b", "a", (["a", "b", "(end)"], ["a", "(end)", ""])),
        ("a", "", (["a", "(end)"], ["(end)", ""])),
        ("", "a", (["(end)", ""], ["a", "(end)"])),
    ],
)
def test_the_shorter_text_ends_at_the_first_difference(target, prediction, rows):
    one = align(0, "s", target.split(), prediction.split())
    assert (one.target, one.prediction) == rows
    assert one.target[one.at] != one.prediction[one.at]


def test_long_sources_are_cut(tmp_path):
    study = write(tmp_path / "study", result(0))
    run = next(study.glob("*/*/s*"))
    (run / "predictions").mkdir()
    line = {"source": "a " * 500, "target": "a", "prediction": "b"}
    (run / "predictions" / "test.jsonl.gz").write_bytes(gzip.compress(json.dumps(line).encode()))
    [kind] = build_error_browser(conditions(read_finished_runs(study).runs)).conditions[0].kinds
    assert kind.examples[0].source.split() == ["a"] * MAX_TOKENS + ["..."]


@pytest.mark.parametrize("content", [None, b"", b"no gzip", gzip.compress(b'{"source": "a"}\n[1', mtime=0)[:-9]])
def test_missing_predictions_are_reported(tmp_path, content):
    study = predict(write(tmp_path / "study", result(0)), (GOLD, "a"))
    [file] = study.glob("*/*/*/predictions/test.jsonl.gz")
    file.unlink() if content is None else file.write_bytes(content)
    with pytest.raises(UserError, match="no readable predictions of split 'test'"):
        read_predictions(file.parent.parent, "test")
    browser = build_error_browser(conditions(read_finished_runs(study).runs))
    assert browser.conditions == []
    assert browser.notes[-1] == "Conditions without readable predictions: scan length lstm."


def test_of_many_conditions_only_the_first_are_shown(study, monkeypatch):
    monkeypatch.setattr("tfstudy.report.error_browser.MAX_FILES", 2)
    browser = build_error_browser(conditions(read_finished_runs(study).runs))
    assert [one.seeds for one in browser.conditions] == [[0], [0]]
    assert browser.notes[1] == "Only the first 2 of 3 conditions are shown, to keep the page small."
    assert "all predictions of the first seed" in browser.notes[0]
    assert MAX_FILES > 100


def summarized(study: Path) -> Path:
    """Add to each record the summary of its predictions, as the code writes it today."""
    for path in study.glob("*/*/*/result.json"):
        kinds = msgspec.to_builtins(summarize_errors(read_predictions(path.parent, "test")))
        splits = json.loads(path.read_text())["splits"]
        splits["test"] |= {"n": sum(kind["n"] for kind in kinds.values()), "errors": kinds}
        edit_result(path.parent, splits=splits)
    return study


def test_a_summary_gives_the_same_as_the_predictions(study):
    before = build_error_browser(conditions(read_finished_runs(study).runs))
    after = build_error_browser(conditions(read_finished_runs(summarized(study)).runs))
    assert [one[1:] for one in after.conditions] == [one[1:] for one in before.conditions]
    assert after[1:] == before[1:]


def test_with_summaries_predictions_are_read_for_examples_only(tmp_path, monkeypatch):
    study = write(tmp_path / "study", *(result(seed) for seed in range(EXAMPLE_SEEDS + 3)))
    study = summarized(predict(study, (GOLD, GOLD), (GOLD, "a b")))
    read = []
    monkeypatch.setattr(
        "tfstudy.report.error_browser.read_predictions", lambda *words: read.append(words) or read_predictions(*words)
    )
    monkeypatch.setattr("tfstudy.report.error_examples.read_predictions", lambda *_: pytest.fail("they are summarized"))
    [all_runs] = conditions(read_finished_runs(study).runs)
    assert shares_by_seed(all_runs) == [{"correct": 50.0, "stops early": 50.0}] * (EXAMPLE_SEEDS + 3)
    [one] = build_error_browser([all_runs]).conditions
    assert len(read) == EXAMPLE_SEEDS
    assert (one.n, len(one.seeds)) == (2 * (EXAMPLE_SEEDS + 3), EXAMPLE_SEEDS + 3)
    assert {example.seed for example in one.kinds[1].examples} == set(range(EXAMPLE_SEEDS))


def test_counts_are_shown_although_the_predictions_are_gone(study):
    for file in summarized(study).glob("*/*/*/predictions/*"):
        file.unlink()
    browser = build_error_browser(conditions(read_finished_runs(study).runs))
    assert [one.n for one in browser.conditions] == [16, 16, 4]
    assert not any(kind.examples for one in browser.conditions for kind in one.kinds)
    assert "Conditions without readable predictions: " in browser.notes[-1]


@pytest.mark.parametrize("n", [-1, 0, 3, "4", 10**30])
def test_a_summary_that_does_not_add_up_is_not_believed(tmp_path, n):
    study = summarized(predict(write(tmp_path / "study", result(0), result(1)), (GOLD, GOLD), (GOLD, "a b")))
    [path] = study.glob("*/*/s0-*")
    splits = json.loads((path / "result.json").read_text())["splits"]
    splits["test"]["errors"]["correct"]["n"] = n
    edit_result(path, splits=splits)
    [(left_out, reason)] = read_finished_runs(study).left_out
    assert left_out == path
    assert "the result is broken" in reason
