"""`tfstudy predict`, `result` and `evaluate`: the commands for a finished run."""

import json
from pathlib import Path

import pytest

from tests.commands import tfstudy
from tests.example_task import TASK, added
from tests.interrupted_runs import command, folder
from tfstudy import tasks
from tfstudy.runs.reader import read_predictions, read_test_reads


@pytest.fixture(autouse=True)
def _reverse(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with added(tasks, "reverse", TASK, tmp_path / "more"):
        yield


@pytest.fixture
def finished(capsys) -> Path:
    """A finished run."""
    assert tfstudy(*command()) == 0
    capsys.readouterr()
    return folder()


def test_predict_prints_words_of_the_task(finished, capsys):
    assert tfstudy("predict", finished, "a b") == 0
    assert set(capsys.readouterr().out.split()) <= {"a", "b", "c"}
    assert tfstudy("predict", finished.name[-8:-3], " a  b ") == 0


def test_predict_repeats_the_recorded_predictions(finished, capsys):
    for row in read_predictions(finished, "test")[:3]:
        assert tfstudy("predict", finished, row.source) == 0
        assert capsys.readouterr().out == row.prediction + "\n"


@pytest.mark.parametrize(
    ("source", "facts"),
    [
        ("a x", ["reverse", "'x'", "a, b, c"]),
        ("  ", ["at least one token"]),
        ("<pad>", ["'<pad>'", "a, b, c"]),
        ("a <eos>", ["'<eos>'", "a, b, c"]),
    ],
)
def test_predict_refuses_an_invalid_source(source, facts, finished, capsys):
    assert tfstudy("predict", finished, source) == 2
    error = capsys.readouterr().err
    assert all(fact in error for fact in facts)
    assert error.count("\n") == 1


def test_predict_refuses_an_unfinished_run_and_an_outdated_one(finished, capsys, monkeypatch):
    (finished / "result.json").rename("result.json")
    assert tfstudy("predict", finished, "a") == 2
    assert "not a finished run" in capsys.readouterr().err
    Path("result.json").rename(finished / "result.json")
    monkeypatch.setattr("tfstudy.experiment.code_versions._named_versions", lambda task, arch: (1, 3))
    assert tfstudy("predict", finished, "a") == 2
    assert "outdated" in capsys.readouterr().err


def test_evaluate_repeats_the_numbers_and_counts_each_reading_of_a_test_set(finished, capsys):
    before = {path: path.read_bytes() for path in finished.glob("predictions/*")}
    table = tfstudy("run", *command()[1:]), capsys.readouterr().out
    assert read_test_reads(finished) == {"test": 1}
    assert tfstudy("evaluate", finished) == 0
    row = next(line for line in capsys.readouterr().out.splitlines() if "│ test" in line)
    assert row in table[1]
    assert {path: path.read_bytes() for path in finished.glob("predictions/*")} == before
    assert read_test_reads(finished) == {"test": 2}
    assert tfstudy("evaluate", finished, "--test-set", "validation") == 0
    assert read_test_reads(finished) == {"test": 2}, "reading the validation split is not counted"
    assert (finished / "test_reads.csv").read_text().splitlines() == ["test,run", "test,evaluate"]


def test_a_result_is_shown_by_a_tag_without_reading_a_test_set_again(finished, capsys):
    assert tfstudy("result", finished, "--by", "length") == 0
    lines = capsys.readouterr().out.splitlines()
    cells = [[cell.strip() for cell in line.split("│")[1:4]] for line in lines if line.startswith("│")]
    assert [row[:2] for row in cells if row[0] != "validation"][-2:] == [["test", "all"], ["", "5"]]
    assert read_test_reads(finished) == {"test": 1}


def test_an_unknown_test_set_or_tag_is_answered_with_the_nearest_match(finished, capsys):
    assert tfstudy("evaluate", finished, "--test-set", "tset") == 2
    assert "did you mean 'test'?" in capsys.readouterr().err
    assert tfstudy("result", finished, "--by", "lenght") == 2
    assert "did you mean 'length'?" in capsys.readouterr().err
    assert tfstudy("errors", finished, "--test-set", "tset") == 2
    assert "'tset'" in capsys.readouterr().err
    assert read_test_reads(finished) == {"test": 1}


def test_evaluate_extend_tries_longer_examples(capsys):
    few = ["--set", "data.train_examples=100", "--set", "data.eval_examples=10"]
    assert tfstudy("run", "copying", "--arch", "lstm", "--smoke", "--accelerator", "cpu", *few) == 0
    [run] = Path("results-smoke/runs/copying-copy/lstm").iterdir()
    before = {path: path.read_bytes() for path in run.glob("*.json")}
    capsys.readouterr()
    assert tfstudy("evaluate", run, "--extend", "--max-length", "12") == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(":")[0] for line in lines[:2]] == ["length   11", "length   12"]
    assert lines[-1].startswith("L90 none, L50 none")
    found = json.loads((run / "extended.json").read_text())
    assert found["exact_match"]["12"]["n"] >= 100
    assert {path: path.read_bytes() for path in before} == before


def test_a_task_without_generated_lengths_can_not_be_extended(finished, capsys):
    assert tfstudy("evaluate", finished, "--extend") == 2
    error = capsys.readouterr().err
    assert "reverse" in error
    assert "5" in error
