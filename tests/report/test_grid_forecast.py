"""What a grid would run."""

import json
import re
from pathlib import Path

import pytest

from tests.commands import tfstudy
from tests.example_study import finish_run
from tfstudy.report.grid_forecast import Forecast, ForecastRun, forecast_lines

SMALL = ["--set", "model.dim=8", "--set", "train.steps=2"]
GRID = [
    "grid",
    "--task",
    "copying",
    "--arch",
    "lstm",
    "--seed",
    "0-1",
    "--set",
    "train.learning_rate=1e-3,2e-3",
    *SMALL,
]


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_each_run_shows_what_varies(capsys):
    assert tfstudy(*GRID, "--dry-run") == 0
    runs = [line.split() for line in capsys.readouterr().out.splitlines() if line.startswith("pending")]
    assert [words[-1] for words in runs] == ["learning_rate=0.001"] * 2 + ["learning_rate=0.002"] * 2
    assert all("/lstm/s" in words[1] for words in runs)


def test_only_pending_runs_have_an_estimated_time(capsys):
    one = ["grid", "--task", "copying", "--arch", "lstm", *SMALL, "--set", "data.train_examples=50"]
    assert tfstudy(*one, "--seed", "0", "--accelerator", "cpu") == 0
    capsys.readouterr()
    assert tfstudy(*one, "--seed", "0-1", "--dry-run") == 0
    finished, pending = capsys.readouterr().out.splitlines()[:2]
    assert finished.startswith("finished")
    assert "about" not in finished
    assert re.match(r"pending +about \d+ s ", pending)


def test_the_estimate_fits_80_columns_and_counts_the_runs_that_it_guesses():
    runs = [ForecastRun("a", "a", "pending", "", cost) for cost in (1.0, None)]
    found = Forecast(runs * 500, 1000, 16, 12000.0, [], [])
    lines = [str(line) for line in forecast_lines(found)]
    assert "about 3 h 20 min for 1,000 runs, 16 in parallel (estimated from finished runs)" in lines
    assert lines[-1].endswith(": 500")
    assert max(map(len, lines)) <= 80


def test_a_grid_says_which_finished_runs_it_does_not_measure(capsys):
    assert tfstudy(*GRID, "--dry-run", "--format", "json") == 0
    for run in json.loads(capsys.readouterr().out)["runs"]:
        finish_run(Path(run["path"]))
    for words in (["--dry-run"], []):
        assert tfstudy(*GRID, "--measure", "layer_gradients", *words) == 0
        assert "4 finished runs kept without layer_gradients" in capsys.readouterr().out
    assert tfstudy(*GRID, "--dry-run") == 0
    assert "layer_gradients" not in capsys.readouterr().out


def test_the_forecast_is_one_json_document(capsys):
    assert tfstudy(*GRID, "--dry-run", "--format", "json") == 0
    found = json.loads(capsys.readouterr().out)
    lines = {"outdated", "unmeasured"}
    assert found.keys() == {"runs", "pending", "parallel", "seconds", "total", "finished"} | lines
    assert (found["total"], found["finished"], found["seconds"]) == (4, 0, None)
    assert found["runs"][0].keys() == {"name", "path", "state", "settings", "seconds"}
    assert not list(Path().iterdir())


def test_json_without_a_dry_run_is_refused(capsys):
    assert tfstudy(*GRID, "--format", "json") == 2
    assert "--dry-run" in capsys.readouterr().err
