"""`tfstudy why`: the state of a run, and what has changed since it started."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.commands import tfstudy
from tfstudy.report.outdated import explain
from tfstudy.runs.writer import write_failure

SETTINGS = ["data.train_examples=60", "data.eval_examples=10", "model.dim=8", "train.steps=2", "train.warmup_steps=1"]


@pytest.fixture(scope="module")
def finished(tmp_path_factory) -> Path:
    """The folder of a finished run."""
    results = tmp_path_factory.mktemp("finished")
    words = [word for setting in SETTINGS for word in ("--set", setting)]
    assert tfstudy("run", "copying", "--arch", "lstm", "--accelerator", "cpu", *words, "--results", results) == 0
    [path] = results.glob("runs/*/*/s*")
    return path


@pytest.fixture
def run(finished, tmp_path) -> Path:
    """A copy of it."""
    return Path(shutil.copytree(finished, tmp_path / "results" / Path(*finished.parts[-4:])))


def why(path: Path) -> str:
    return "\n".join(map(str, explain(path)))


def edit_record(path: Path, change: Callable[[dict], object]) -> None:
    entries = json.loads((path / "env.json").read_text())
    change(entries[-1])
    (path / "env.json").write_text(json.dumps(entries))


def edit_config(path: Path, old: str, new: str) -> None:
    text = (path / "config.yaml").read_text()
    assert old in text
    (path / "config.yaml").write_text(text.replace(old, new))


def test_a_run_that_just_finished_is_up_to_date(run):
    lines = explain(run)
    assert lines[:2] == [str(run), "  finished"]
    assert "up to date" in lines[2]
    assert len(lines) == 3


def test_code_that_changed_without_a_version_is_listed_but_outdates_nothing(run):
    changed = {"tfstudy.models.lstm": "0", "tfstudy.models.cnn": "0", "tfstudy.vanished": "0"}
    edit_record(run, lambda entry: entry["syntax_trees"].update(changed))
    text = why(run)
    assert "up to date" in text
    assert "code of 2 modules" in text
    assert "rounding" in text
    assert "tfstudy.models.lstm" in text
    assert "tfstudy.vanished (no longer exists)" in text
    assert "tfstudy.models.cnn" not in text, "another architecture can't change the results of this run"


def test_the_lines_fit_the_terminal(run, monkeypatch):
    edit_record(run, lambda entry: entry["syntax_trees"].update({f"tfstudy.vanished{i}": "0" for i in range(20)}))
    monkeypatch.setattr("tfstudy.report.text_columns.terminal_width", lambda: 80)
    path, *lines = map(str, explain(run))
    assert path == str(run)
    assert max(map(len, lines)) <= 80
    assert "tfstudy.vanished1 (no longer exists)" in " ".join(" ".join(lines).split())


def test_a_raised_version_outdates_a_run(run, monkeypatch):
    monkeypatch.setattr("tfstudy.experiment.code_versions._named_versions", lambda task, arch: (1, 3))
    assert "outdated:\n  model version 1, now 3" in why(run)


def test_changed_data_outdate_a_run(run, monkeypatch):
    monkeypatch.setattr("tfstudy.report.outdated.fingerprint", lambda task: "f" * 64)
    assert "outdated:\n  data " in why(run)
    assert ", now ffffffff" in why(run)


def test_data_that_are_missing_are_reported_but_outdate_nothing(run, monkeypatch):
    from tfstudy.errors import UserError

    def missing(task):
        raise UserError("can't read the corpus")

    monkeypatch.setattr("tfstudy.report.outdated.fingerprint", missing)
    assert "up to date" in why(run)
    assert "not compared (can't read the corpus)" in why(run)


@pytest.mark.parametrize(
    ("old", "new", "facts"),
    [
        ("dim: 8", "dim: 9", ["model.dim", "8", "9"]),
        ("seed: 0\nsmoke", "seed: 5\nsmoke", ["seed", "0", "5"]),
        ("batch_size: 64", "batch_size: 32", ["train.batch_size", "32"]),
    ],
)
def test_an_edited_config_is_reported_with_the_key_and_both_values(run, old, new, facts):
    edit_config(run, old, new)
    text = why(run)
    assert "outdated:" in text
    [line] = [line for line in text.splitlines() if "config: " in line]
    assert all(fact in line for fact in facts)


def test_a_setting_that_has_become_the_default_is_reported_with_its_key(run):
    edit_record(run, lambda entry: entry["settings"]["train"].update(beta2=0.98))
    assert "config: train.beta2 = 0.98 has become the default" in why(run)


def test_an_unknown_key_makes_a_config_invalid(run):
    edit_config(run, "dim: 8", "dmi: 8")
    assert "no longer valid" in why(run)
    assert "'model.dim'" in why(run)


def test_a_record_that_does_not_give_the_hash_of_its_folder_is_reported(run):
    edit_record(run, lambda entry: entry.update(data="0" * 64))
    assert "record: " in why(run)


def test_a_run_without_a_record_of_its_environment_is_unknown(run):
    (run / "env.json").unlink()
    assert "unknown" in why(run)


def test_unfinished_and_failed_runs_are_reported_as_such(run):
    (run / "result.json").unlink()
    retry = f"`tfstudy retry runs --results {run.parents[3]}` resumes it"
    assert f"interrupted at step 2 of 2; {retry}" in why(run)
    assert "up to date" not in why(run)
    assert "not finished: its settings" in why(run)
    write_failure(run, "out of memory", 2)
    assert "failed at step 2 of 2: out of memory" in why(run)
