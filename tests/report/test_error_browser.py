"""The errors that a report shows: kinds, examples, marked tokens, and what is not shown."""

import gzip
from pathlib import Path

import pytest

from tasks.errors import UserError
from tests.example_records import GOLD, predict, result, three_architectures, write
from tfstudy.analysis.collection import read_finished_runs
from tfstudy.analysis.conditions import conditions
from tfstudy.analysis.error_kinds import KINDS
from tfstudy.report.error_browser import MAX_EXAMPLES, MAX_FILES, MAX_TOKENS, build_error_browser, marked
from tfstudy.runs.reader import read_predictions


@pytest.fixture
def study(tmp_path) -> Path:
    return three_architectures(tmp_path)


def test_the_first_wrong_token_is_marked(study):
    browser = build_error_browser(conditions(read_finished_runs(study).runs))
    cnn = browser.conditions[0]
    assert (cnn.condition.arch, cnn.seeds, cnn.n) == ("cnn", [0, 1, 2, 3], 16)
    kinds = {kind.name: kind for kind in cnn.kinds}
    assert list(kinds) == [kind for kind in KINDS if kind in kinds]
    early = kinds["stops early"]
    assert (early.n, early.share, early.first_error) == (4, 25.0, 50.0)
    assert early.examples[0].target == ("a b", "c", "d")
    assert early.examples[0].prediction == ("a b", "(end)", "")
    assert kinds["one token replaced"].examples[0].prediction == ("a", "x", "c d")
    assert kinds["correct"].examples == []
    assert "correct" not in browser.kinds


def test_examples_are_few_and_taken_evenly(tmp_path):
    study = predict(write(tmp_path / "study", result(0)), *[(GOLD, "a b")] * 100)
    [kind] = build_error_browser(conditions(read_finished_runs(study).runs)).conditions[0].kinds
    assert (kind.n, len(kind.examples)) == (100, MAX_EXAMPLES)
    assert [one.source for one in kind.examples[:3]] == ["s0", "s5", "s10"]


def test_long_texts_are_cut_around_the_first_wrong_token():
    tokens = [str(n) for n in range(1000)]
    before, token, after = marked(" ".join(tokens), 500)
    assert token == "500"
    assert (before[:7], before[-3:], after[:3], after[-3:]) == ("... 440", "499", "501", "...")
    assert len(f"{before} {token} {after}".split()) == MAX_TOKENS + 2
    assert marked("a b", 2) == ("a b", "(end)", "")
    assert marked(" ".join(tokens), 1000).before.startswith("... 880")


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
