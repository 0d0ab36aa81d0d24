"""`tfstudy why` and `tfstudy diff`, on two runs that differ in seed and dimension."""

import json
import shutil
from pathlib import Path

import pytest

from tests.commands import tfstudy
from tests.example_records import result, write
from tfstudy.report.markup import MINUS
from tfstudy.runs.find import find_runs


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="module")
def two_runs(tmp_path_factory) -> Path:
    """The folder of results."""
    results = tmp_path_factory.mktemp("two_runs") / "results"
    few = ["--set", "data.train_examples=60", "--set", "data.eval_examples=10", "--arch", "lstm"]
    for seed, dim in ((0, 8), (1, 16)):
        train = ["--set", "train.steps=2", "--set", "train.warmup_steps=1", "--set", f"model.dim={dim}"]
        words = [*few, *train, "--accelerator", "cpu", "--seed", str(seed), "--results", results]
        assert tfstudy("run", "copying", *words) == 0
    return results


def copied(two_runs: Path) -> tuple[Path, Path]:
    shutil.copytree(two_runs, "results")
    first, second = find_runs(Path("results"))
    return first, second


def edit_environment(path: Path, change) -> None:
    environments = json.loads((path / "env.json").read_text())
    change(environments[-1])
    (path / "env.json").write_text(json.dumps(environments))


def test_why_says_that_a_new_run_is_up_to_date(two_runs, capsys):
    path, _ = copied(two_runs)
    capsys.readouterr()
    assert tfstudy("why", path) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[:2] == [str(path), "  finished"]
    assert lines[2].startswith("up to date")
    assert len(lines) == 3


def test_diff_names_settings_environment_and_metrics_in_percentage_points(two_runs, capsys):
    first, second = copied(two_runs)
    edit_environment(second, lambda env: env.update(threads=64))
    capsys.readouterr()
    assert tfstudy("diff", first, second) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["model.dim", "8", "16"] in lines
    assert ["seed", "0", "1"] in lines
    assert ["threads", lines[lines.index(["environment:"]) + 1][1], "64"] in lines
    assert ["data:", "no", "difference"] in lines
    [row] = [line for line in lines if line[:3] == ["test", "exact", "match"]]
    assert float(row[5].replace(MINUS, "-")) == pytest.approx(float(row[4]) - float(row[3]), abs=0.11)


@pytest.mark.parametrize(("second", "shown"), [(0.1, f"{MINUS}10.0"), (0.1999, "+0.0")])
def test_a_difference_has_the_sign_of_tables(tmp_path, capsys, second, shown):
    runs = sorted(write(tmp_path / "results/study", result(0, 0.2), result(1, second)).glob("*/*/*"))
    assert tfstudy("diff", *runs) == 0
    [line] = [line for line in capsys.readouterr().out.splitlines() if "test exact match  " in line]
    assert line.split()[-1] == shown


def test_diff_of_an_unfinished_run_shows_all_but_metrics(two_runs, capsys):
    first, second = copied(two_runs)
    (second / "result.json").unlink()
    capsys.readouterr()
    assert tfstudy("diff", first, second) == 0
    out = capsys.readouterr().out
    assert "model.dim" in out
    assert f"{second} has not finished" in out
