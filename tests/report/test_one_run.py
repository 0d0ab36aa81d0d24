"""One run: its result beside published figures, what has changed since it started, and how two runs differ."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from tests.commands import tfstudy
from tests.example_records import result, set_environments
from tests.example_tables import text_of
from tfstudy.errors import UserError
from tfstudy.report.markup import MINUS
from tfstudy.report.run_changes import changes
from tfstudy.report.run_summary import listing
from tfstudy.runs.schema import Result
from tfstudy.runs.store import read_environments
from tfstudy.runs.writer import write_failure

SETTINGS = ["data.train_examples=60", "data.eval_examples=10", "train.steps=2", "train.warmup_steps=1"]


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> list[Path]:
    """The folders of two finished runs, which differ in seed and dimension."""
    results = tmp_path_factory.mktemp("finished")
    words = [word for setting in SETTINGS for word in ("--set", setting)]
    for seed, dim in ((0, 8), (1, 16)):
        more = ["--seed", seed, "--set", f"model.dim={dim}", "--results", results]
        assert tfstudy("run", "copying", "--arch", "lstm", "--accelerator", "cpu", *words, *more) == 0
    return sorted(results.glob("runs/*/*/s*"))


@pytest.fixture
def runs(made, tmp_path, capsys) -> list[Path]:
    """Copies of them."""
    capsys.readouterr()
    return [Path(shutil.copytree(path, tmp_path / "results" / Path(*path.parts[-4:]))) for path in made]


@pytest.fixture
def run(runs) -> Path:
    return runs[0]


def why(path: Path) -> str:
    return text_of(changes(path))


def edit_record(path: Path, change: Callable[[dict], object]) -> None:
    entries = [msgspec.to_builtins(entry) for entry in read_environments(path)]
    change(entries[-1])
    set_environments(path, *entries)


def edit_config(path: Path, old: str, new: str) -> None:
    text = (path / "config.yaml").read_text()
    assert old in text
    (path / "config.yaml").write_text(text.replace(old, new))


def test_a_run_that_just_finished_is_up_to_date(run, capsys):
    assert tfstudy("result", run, "--changes") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[:2] == [str(run), "  finished"]
    assert lines[2].startswith("up to date")
    assert len(lines) == 3
    assert tfstudy("result", run, "--changes", "--format", "json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found.keys() == {"path", "state", "verdict", "reason", "changes", "code"}
    assert (found["verdict"], found["changes"]) == ("up to date", [])


def test_code_that_changed_without_a_version_is_listed_but_outdates_nothing(run):
    changed = {"tfstudy.models.lstm": "0", "tfstudy.models.cnn": "0", "tfstudy.vanished": "0"}
    edit_record(run, lambda entry: entry["syntax_trees"].update(changed))
    text = why(run)
    assert "up to date" in text
    assert "code of 2 modules" in text
    assert "tfstudy.models.lstm" in text
    assert "tfstudy.vanished (no longer exists)" in text
    assert "tfstudy.models.cnn" not in text, "another architecture can't change the results of this run"


def test_a_raised_version_and_changed_data_outdate_a_run(run, monkeypatch):
    monkeypatch.setattr("tfstudy.experiment.code_versions._named_versions", lambda *names: (1, 3))
    monkeypatch.setattr("tfstudy.report.run_changes.fingerprint", lambda task: "f" * 64)
    assert "outdated:\n  model version 1, now 3\n  data " in why(run)
    assert ", now ffffffff" in why(run)


def test_data_that_are_missing_are_reported_but_outdate_nothing(run, monkeypatch):
    def missing(task):
        raise UserError("can't read the corpus")

    monkeypatch.setattr("tfstudy.report.run_changes.fingerprint", missing)
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
    assert "unknown: config.yaml is damaged" in why(run)
    (run / "result.json").unlink()
    text = why(run)
    assert "outdated:" in text
    [line] = [line for line in text.splitlines() if "config: " in line]
    assert all(fact in line for fact in facts)


def test_a_setting_that_has_become_the_default_and_an_unknown_key_are_reported(run):
    edit_record(run, lambda entry: entry["settings"]["train"].update(beta2=0.98))
    assert "config: train.beta2 was 0.98 when the run started, now it is its default" in why(run)
    (run / "result.json").unlink()
    edit_config(run, "dim: 8", "dmi: 8")
    assert "no longer valid" in why(run)
    assert "'model.dim'" in why(run)


def test_a_record_that_does_not_give_the_hash_of_its_folder_is_reported_and_without_one_nothing_is_known(run):
    edit_record(run, lambda entry: entry.update(data="0" * 64))
    assert "record: " in why(run)
    (run / "events.jsonl").unlink()
    assert "unknown: events.jsonl is damaged: it is missing" in why(run)


def test_unfinished_and_failed_runs_are_reported_as_such(run):
    (run / "result.json").unlink()
    retry = f"`tfstudy grid --resume runs --results {run.parents[3]}` resumes it"
    assert f"interrupted; {retry}" in why(run)
    assert "not finished: its settings" in why(run)
    write_failure(run, "out of memory", 2)
    assert "failed: out of memory" in why(run)


def test_diff_names_settings_environment_and_metrics_in_percentage_points(runs, capsys):
    edit_record(runs[1], lambda entry: entry.update(threads=64))
    assert tfstudy("result", *runs) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["model.dim", "8", "16"] in lines
    assert ["seed", "0", "1"] in lines
    assert ["threads", "64"] in [[line[0], line[-1]] for line in lines if line[:1] == ["threads"]]
    assert ["data:", "no", "difference"] in lines
    [row] = [line for line in lines if line[:3] == ["test", "exact", "match"]]
    assert float(row[5].replace(MINUS, "-")) == pytest.approx(float(row[4]) - float(row[3]), abs=0.11)
    assert tfstudy("result", *runs, "--format", "json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found.keys() == {"a", "b", "config", "data", "code", "environment", "metrics"}
    assert found["config"]["seed"] == {"a": "0", "b": "1"}
    assert found["metrics"]["test exact match"] == {"a": float(row[3]), "b": float(row[4])}
    (runs[1] / "result.json").unlink()
    assert tfstudy("result", *runs) == 0
    out = capsys.readouterr().out
    assert "model.dim" in out
    assert f"{runs[1]} has not finished" in out


def summarized(split: str, **more: object) -> str:
    """The lines of `tfstudy result` for a run on this split scheme."""
    tree = result(4, 0.25, split=split) | more
    return text_of(listing(msgspec.json.decode(msgspec.json.encode(tree), type=Result)))


def test_a_result_stands_below_the_published_figures_of_its_split_scheme_but_that_of_a_smoke_run_alone():
    figures, table = summarized("mcd1").split("scan mcd1, lstm, seed 4")
    assert all(fact in table for fact in ("25.0", "[0.0, 55.0]"))
    assert all(fact in figures for fact in ("Conklin et al. 2021", "4.7", "exact match"))
    assert "Dessì" not in figures, "figures of other split schemes are not listed"
    assert "published" not in summarized("filler_num0")
    smoke = summarized("mcd1", smoke=True)
    assert "published" not in smoke
    assert "SMOKE RUN" in smoke


def test_a_diverged_result_is_a_line_with_its_reason():
    [line] = summarized("simple", status="diverged", reason="the training loss is nan at step 5").splitlines()
    assert all(fact in line for fact in ("scan simple, lstm, seed 4", "diverged", "nan at step 5"))
