"""`--format json`: one document on standard output, with nothing else."""

import json
from pathlib import Path

import pytest

from tests.commands import tfstudy
from tests.example_records import ENVIRONMENT, result, write


@pytest.fixture(autouse=True)
def study(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    study = write(Path("results/study"), result(0, 0.2), result(1, 0.4))
    for run in study.glob("*/*/*"):
        (run / "env.json").write_text(json.dumps([ENVIRONMENT]))
    return study


@pytest.fixture
def document(capsys):
    """Return the document that a command prints."""

    def document(*words):
        assert tfstudy(*words, "--format", "json") == 0
        return json.loads(capsys.readouterr().out)

    return document


def test_a_config_is_its_tree(document):
    config = document("config", "scan", "--arch", "lstm", "--split", "length")
    assert (config["task"], config["arch"], config["data"]["split"]) == ("scan", "lstm", "length")


def test_a_difference_has_both_values_and_metrics_in_percent(document, study):
    found = document("diff", *sorted(study.glob("*/*/*")))
    assert found.keys() == {"a", "b", "config", "data", "code", "environment", "metrics"}
    assert found["config"]["seed"] == {"a": "0", "b": "1"}
    assert found["metrics"]["test exact match"] == {"a": 20.0, "b": 40.0}


def test_a_verdict_on_a_run_has_its_changes(document, study):
    found = document("why", next(study.glob("*/*/*")))
    assert found.keys() == {"path", "state", "verdict", "reason", "changes", "code"}
    assert found["verdict"] == "outdated"
    assert found["changes"]


def test_a_check_has_a_row_for_each_condition(document):
    table = document("table", "results/study")  # a path names the study
    Path("baseline.json").write_text(json.dumps(table))
    found = document("check", "study", "--against", "baseline.json")
    assert found["failed"] is False
    [row] = found["conditions"]
    assert row["state"] in ("untested", "unchanged", "undecided")
    assert row["current"] == row["baseline"]


@pytest.mark.parametrize("words", [["status"], ["config", "scan"], ["list", "tasks"], ["claims"]])
def test_an_unknown_format_is_refused(words, capsys):
    assert tfstudy(*words, "--format", "yml") == 2
    assert "'yml'" in capsys.readouterr().err
