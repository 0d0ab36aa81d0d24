"""The config that the options of `tfstudy run` ask for."""

from pathlib import Path

import pytest

from tests.commands import tfstudy
from tests.interrupted_runs import command
from tfstudy.cli.run_config import recorded_preset, requested
from tfstudy.config.schema import RunConfig
from tfstudy.runs.reader import read_result


def resolved(task=None, arch=None, preset="default", file=None, assignments=(), split=None, seed=None) -> RunConfig:
    more = {"preset": preset, "file": file, "assignments": list(assignments), "split": split, "seed": seed}
    return requested(task, arch, **more, smoke=False).resolve()


@pytest.fixture
def whole(tmp_path, capsys) -> Path:
    """The complete config of a run with a preset of a paper."""
    assert tfstudy("config", "scan", "--arch", "lstm", "--preset", "lake-2018", "--split", "length", "--seed", 3) == 0
    file = tmp_path / "config.yaml"
    file.write_text(capsys.readouterr().out)
    return file


def test_a_complete_file_is_the_config_without_any_preset(whole):
    preset = resolved("scan", "lstm", "lake-2018", split="length", seed=3)
    assert resolved(file=whole) == preset
    assert resolved("scan", file=whole) == preset, "the task may be repeated"
    assert resolved(file=whole, seed=4) == preset.model_copy(update={"seed": 4})
    assert resolved(file=whole, assignments=["train.steps=7"]).train.steps == 7


@pytest.mark.parametrize(
    ("words", "facts"),
    [
        (["copying"], ["TASK is 'copying'", "task: 'scan'"]),
        (["--arch", "cnn"], ["--arch is 'cnn'", "arch: 'lstm'"]),
        (["--preset", "dessi-2019"], ["--preset dessi-2019"]),
    ],
)
@pytest.mark.parametrize("name", ["run", "config"])
def test_options_that_contradict_a_complete_file_are_refused(whole, capsys, name, words, facts):
    assert tfstudy(name, *words, "--config", whole) == 2
    [message] = capsys.readouterr().err.splitlines()
    assert all(fact in message for fact in [*facts, "config.yaml"])


def test_without_a_task_the_tasks_are_listed(capsys, tmp_path):
    file = tmp_path / "steps.yaml"
    file.write_text("train: {steps: 5}")
    for words in (["run"], ["run", "--config", file], ["config"]):
        assert tfstudy(*words) == 2
        error = capsys.readouterr().err
        assert "scan, sorting" in error
        assert "tfstudy run" not in error


def test_a_file_with_some_sections_names_the_task_and_the_preset_stays(tmp_path):
    file = tmp_path / "mine.yaml"
    file.write_text("task: scan\narch: cnn\ntrain: {steps: 5}")
    assert resolved(file=file) == resolved("scan", "cnn", assignments=["train.steps=5"])
    assert resolved(file=file, arch="lstm").arch == "lstm"


def test_data_of_the_hub_that_a_file_names_need_online(tmp_path, capsys):
    file = tmp_path / "hub.yaml"
    file.write_text(
        "task: translation\ndata: {split: corpus, hub: somebody/corpus, source_language: en, target_language: de}"
    )
    assert tfstudy("run", "--config", file) == 2
    assert "--online" in capsys.readouterr().err


def test_the_config_of_a_run_gives_the_same_run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert tfstudy("run", "copying", *command()[2:], "--accelerator", "cpu") == 0
    [path] = Path("results").glob("*/*/*/s*")
    assert (
        tfstudy("run", "--config", path / "config.yaml", "--results", "again", "--accelerator", "cpu", "--quiet") == 0
    )
    [again] = Path("again").glob("*/*/*/s*")
    assert again.name == path.name
    assert read_result(again).splits == read_result(path).splits
    assert read_result(again).preset == read_result(path).preset
    capsys.readouterr()


def test_only_a_preset_of_the_task_is_taken_from_a_record(tmp_path):
    (tmp_path / "progress.json").write_text('{"steps": 1, "preset": "lake-2018"}')
    assert recorded_preset(tmp_path / "config.yaml", "scan") == "lake-2018"
    assert recorded_preset(tmp_path / "config.yaml", "copying") == "default"
    assert recorded_preset(None, "scan") == "default"


def test_an_empty_architecture_is_not_the_default_one(capsys):
    assert tfstudy("config", "scan", "--arch", "") == 2
    assert "unknown architecture ''" in capsys.readouterr().err
