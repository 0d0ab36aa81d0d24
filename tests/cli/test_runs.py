"""`tfstudy run`, `config` and `list`: the config that options ask for, what is printed, and what there is."""

import json
import re
import sys
from pathlib import Path

import pytest
import torch

from tests.commands import tfstudy
from tests.example_study import finish_run, planned, start_run
from tests.interrupted_runs import command
from tests.tasks.corpora import columns
from tfstudy import models, tasks
from tfstudy.cli.runs import requested
from tfstudy.config.presets import presets
from tfstudy.config.schema import RunConfig
from tfstudy.experiment.api import RunOptions, device_of
from tfstudy.grids.spec import grid_names
from tfstudy.report.lists import LISTS, runs_list
from tfstudy.runs import status, store
from tfstudy.runs.store import read_result
from tfstudy.training import progress_display


def resolved(*args, **more) -> RunConfig:
    return requested(*args, **more)[0]


@pytest.fixture
def whole(tmp_path, capsys) -> Path:
    """The complete config of a run with a preset of a paper."""
    assert tfstudy("config", "scan", "--arch", "lstm", "--preset", "lake-2018", "--split", "length", "--seed", 3) == 0
    file = tmp_path / "config.yaml"
    file.write_text(capsys.readouterr().out)
    return file


def test_a_complete_file_is_the_config_without_any_preset(whole):
    preset = resolved("scan", "lstm", "lake-2018", split="length", seed=3)
    assert resolved(None, None, file=whole) == preset
    assert resolved("scan", None, file=whole) == preset, "the task may be repeated"
    assert resolved(None, None, file=whole, seed=4) == preset.model_copy(update={"seed": 4})
    assert resolved(None, None, file=whole, assignments=["train.steps=7"]).train.steps == 7


def test_options_that_contradict_a_complete_file_are_refused(whole, capsys):
    for words, facts in {
        ("copying",): ["TASK is 'copying'", "task: 'scan'"],
        ("--arch", "cnn"): ["--arch is 'cnn'", "arch: 'lstm'"],
        ("--preset", "dessi-2019"): ["--preset dessi-2019"],
    }.items():
        assert tfstudy("run", *words, "--config", whole) == 2
        [message] = capsys.readouterr().err.splitlines()
        assert all(fact in message for fact in [*facts, "config.yaml"])


def test_a_file_with_some_sections_names_the_task_and_the_preset_stays(tmp_path, capsys):
    file = tmp_path / "mine.yaml"
    file.write_text("task: scan\narch: cnn\ntrain: {steps: 5}")
    assert resolved(None, None, file=file) == resolved("scan", "cnn", assignments=["train.steps=5"])
    assert resolved(None, "lstm", file=file).arch == "lstm"
    file.write_text("train: {steps: 5}")
    for words in (["run"], ["run", "--config", file], ["config"]):
        assert tfstudy(*words) == 2
        assert "scan, sorting" in capsys.readouterr().err


def test_the_config_of_a_run_gives_the_same_run(finished):
    path = finished()
    words = ("--results", "again", "--accelerator", "cpu", "--quiet")
    assert tfstudy("run", "--config", path / "config.yaml", *words) == 0
    [again] = Path("again").glob("*/*/*/s*")
    assert again.name == path.name
    assert read_result(again).splits == read_result(path).splits
    assert read_result(again).preset == read_result(path).preset


def test_config_shows_a_config_that_can_be_read_again(capsys, tmp_path):
    words = ["config", "scan", "--arch", "cnn", "--split", "length", "--seed", "3", "--set", "model.kernel=5"]
    assert tfstudy(*words) == 0
    shown = capsys.readouterr().out
    assert re.search(r"  kernel: 5 +# int.*, changed from 3: ", shown)
    file = tmp_path / "shown.yaml"
    file.write_text(shown)
    assert tfstudy("config", "scan", "--arch", "cnn", "--config", str(file)) == 0
    assert capsys.readouterr().out == shown
    assert tfstudy("config", "scan", "--smoke") == 0
    assert "steps: 20 " in capsys.readouterr().out
    assert tfstudy("config", "scan", "--split", "length", "--format", "json") == 0
    assert json.loads(capsys.readouterr().out)["data"]["split"] == "length"


def test_a_run_ends_with_its_result_its_folder_and_one_line_on_what_to_type(finished, capsys):
    path = finished()
    assert tfstudy(*command()) == 0
    out, err = capsys.readouterr()
    assert out.splitlines()[0].split() == ["reverse", "short,", "lstm,", "seed", "0", "(percent)"]
    assert out.splitlines()[-2:] == [str(path), f"next: tfstudy result {path}"]
    assert len(out.splitlines()) < 12, "one small table: the whole result is the next command's"
    assert str(path) in err, "that it is finished already is said apart from the result"
    assert tfstudy(*command(), "--quiet") == 0
    out, err = capsys.readouterr()
    assert (out.splitlines()[-1], err) == (str(path), "")


def test_quiet_commands_print_no_progress(finished, capsys, monkeypatch):
    path = finished()
    monkeypatch.setattr(progress_display, "LINE_INTERVAL", 0.0)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    for name, *rest in (["predict", "a"], ["measure", "attention", "a b"], ["evaluate"], ["export"]):
        printed = []
        for more in ([], ["--quiet"]):
            assert tfstudy(name, path, *rest, *more) == 0
            printed.append(capsys.readouterr())
        (out, progress), (quiet_out, quiet) = printed
        assert "loading PyTorch" in progress
        without_memory = [re.sub(r"\d+ MiB", "", text) for text in (out, quiet_out)]
        assert without_memory[0] == without_memory[1] != ""
        assert quiet == ""


def test_devices_that_the_machine_does_not_have_are_refused(monkeypatch, capsys):
    monkeypatch.setattr("torch.cuda.device_count", lambda: 1)
    assert tfstudy(*command(), "--accelerator", "auto", "--devices", "4") == 2
    error = capsys.readouterr().err
    assert all(fact in error for fact in ("devices", "at most 1", "4"))
    monkeypatch.setattr("torch.backends.cudnn.allow_tf32", True)
    assert device_of(RunOptions()).type == "cuda"
    assert not torch.backends.cudnn.allow_tf32, "convolutions are in full float32"


# Lists


@pytest.fixture
def lines(capsys):
    """The lines that a command prints."""
    return lambda *words: [tfstudy(*words), *capsys.readouterr().out.splitlines()][1:]


def names(lines: list[str]) -> list[str]:
    return [line.split()[0] for line in lines]


def test_list_names_tasks_splits_architectures_presets_and_grids(lines):
    assert [row.split()[2] for row in lines("list")] == [*LISTS]
    assert names(lines("list", "tasks")) == tasks.names(), "a line for each"
    assert f"splits: {', '.join(tasks.find('scan').split_schemes())}" in map(str.strip, lines("list", "tasks", "scan"))
    assert names(lines("list", "splits")) == list(tasks.find("scan").split_schemes())
    assert names(lines("list", "architectures")) == models.names()
    assert list(dict.fromkeys(names(lines("list", "presets", "scan")))) == list(presets("scan"))
    assert set(names(lines("list", "presets", "reverse"))) == {"default"}, "those that tasks share"
    assert names(lines("list", "grids")) == grid_names()


def test_list_runs_shows_the_state_of_each_run_and_what_varies(lines, monkeypatch):
    jobs = planned("0-3")
    finish_run(Path(jobs[0].path))
    start_run(jobs[1])
    finish_run(Path(jobs[2].path), "diverged", reason="the loss is nan")
    broken = start_run(jobs[3])
    (broken / "result.json").write_text("{")
    found = lines("list", "runs")
    assert names(found) == ["finished", "interrupted", "diverged", "failed"]
    assert all(job.path.removeprefix("results/") in line for job, line in zip(jobs, found, strict=True))
    assert "exact match 50.0 %" in found[0]
    assert "result.json is damaged" in found[3]
    read = []
    monkeypatch.setattr(status, "open_run", lambda path: read.append(path) or store.open_run(path))
    runs_list(Path("results"))
    assert read.count(Path(jobs[0].path)) == 1
    for n, rate in enumerate(("0.001", "0.002")):
        config = Path(f"results/other/reverse-reverse/lstm/s0-{n:08d}/config.yaml")
        config.parent.mkdir(parents=True)
        config.write_text(f"task: reverse\narch: lstm\nseed: 0\ntrain: {{learning_rate: {rate}}}")
    found = lines("list", "runs", "other")
    assert [line.split()[-1] for line in found] == ["learning_rate=0.001", "learning_rate=0.002"]
    assert lines("list", "runs", "results/other") == found
    assert tfstudy("list", "runs", "ohter") == 2
    assert tfstudy("list", "runs", "--results", "nowhere") == 2


def test_every_list_is_one_json_document(lines):
    finish_run(Path(planned("0")[0].path))
    for words, keys in {
        (): {"name", "about"},
        ("tasks",): {"name", "about", "example", "splits", "origin"},
        ("splits", "scan"): {"name", "about"},
        ("architectures",): {"name", "about", "origin"},
        ("presets", "scan"): {"name", "arch", "about"},
        ("grids",): {"name", "about"},
        ("runs", "study"): {"state", "metric", "path", "settings", "reason"},
    }.items():
        rows = json.loads("\n".join(lines("list", *words, "--format", "json")))
        assert rows
        assert all(row.keys() == keys for row in rows), words
        if words == ("tasks",):
            assert max(len(line) for row in rows for line in row["example"]) <= 76
    assert tfstudy("list", "tasks", "--format", "xml") == 2
    columns(Path("corpora/some-en-de"), train=[("a dog", "ein Hund"), ("a cat", "")], test=[("a dog", "der Hund")])
    assert lines("list", "corpora", "corpora") == ["some-en-de  test.tsv train.tsv"]
    assert tfstudy("list", "corpora", "--format", "json") == 2
