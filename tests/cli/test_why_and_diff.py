"""`tfstudy why` and `tfstudy diff`, on two runs that differ in seed and dimension."""

import json
import re
import shutil
from pathlib import Path

import pytest

from tests.commands import tfstudy
from tfstudy.runs.find import find_runs
from tfstudy.runs.progress import failure_reason
from tfstudy.runs.writer import write_failure


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


def why(path: Path, capsys) -> str:
    capsys.readouterr()
    assert tfstudy("why", path) == 0
    return capsys.readouterr().out


def test_a_new_run_is_up_to_date(two_runs, capsys):
    path, _ = copied(two_runs)
    lines = why(path, capsys).splitlines()
    assert lines[:2] == [str(path), "  finished"]
    assert lines[2].startswith("up to date")
    assert len(lines) == 3


def test_changed_code_is_listed_and_makes_no_run_outdated(two_runs, capsys):
    path, _ = copied(two_runs)
    edit_environment(path, lambda env: env["syntax_trees"].update({"tfstudy.models.lstm": "0"}))
    edit_environment(path, lambda env: env["syntax_trees"].update({"tfstudy.models.cnn": "0"}))
    text = why(path, capsys)
    assert "up to date" in text
    assert "tfstudy.models.lstm" in text
    assert "tfstudy.models.cnn" not in text, "the results do not depend on another architecture"


def test_a_raised_version_and_changed_data_make_a_run_outdated(two_runs, capsys):
    path, _ = copied(two_runs)
    edit_environment(path, lambda env: env["code_versions"].update(training=0) or env.update(data="0" * 64))
    text = why(path, capsys)
    assert "outdated" in text
    assert "training version 0, now " in text
    assert re.search(r"data 00000000, now \w{8}", text)


def test_an_edited_config_and_an_unknown_key_are_named(two_runs, capsys):
    path, _ = copied(two_runs)
    text = (path / "config.yaml").read_text()
    (path / "config.yaml").write_text(text.replace("dim: 8", "dim: 9"))
    assert re.search(r"model\.dim.* 8 .* 9", why(path, capsys))
    (path / "config.yaml").write_text(text.replace("seed: 0\nsmoke", "seed: 5\nsmoke"))
    assert re.search(r"config: seed.* 0 .* 5", why(path, capsys))
    (path / "config.yaml").write_text(text.replace("dim: 8", "dmi: 8"))
    assert "did you mean 'model.dim'?" in why(path, capsys)


def test_an_unfinished_or_failed_run_says_how_to_continue(two_runs, capsys):
    path, _ = copied(two_runs)
    (path / "result.json").unlink()
    text = why(path, capsys)
    assert "interrupted at step 2 of 2" in text
    assert "tfstudy retry" in text
    write_failure(path, "out of memory", 2)
    text = why(path, capsys)
    assert "failed at step 2 of 2: out of memory" in text
    assert "out of memory" in failure_reason(path)


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
    assert float(row[5]) == pytest.approx(float(row[4]) - float(row[3]), abs=0.11)


def test_diff_of_an_unfinished_run_shows_all_but_metrics(two_runs, capsys):
    first, second = copied(two_runs)
    (second / "result.json").unlink()
    capsys.readouterr()
    assert tfstudy("diff", first, second) == 0
    out = capsys.readouterr().out
    assert "model.dim" in out
    assert f"{second} is not a finished run" in out
