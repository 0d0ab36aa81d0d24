"""`tfstudy run`, `config` and `list`: the config that options ask for, what is printed, and what there is."""

import json
from pathlib import Path

import pytest
import torch

from tests.commands import tfstudy
from tests.example_study import finish_run, planned, start_run
from tests.interrupted_runs import command
from tfstudy import models, tasks
from tfstudy.cli.runs import requested
from tfstudy.config.presets import presets
from tfstudy.config.schema import RunConfig
from tfstudy.experiment.api import RunOptions, device_of
from tfstudy.grids.spec import grid_names
from tfstudy.report.lists import LISTS
from tfstudy.runs.store import read_result


def resolved(*args, **more) -> RunConfig:
    return requested(*args, **more)[0]


def test_a_complete_file_is_the_config_without_any_preset_and_contradicts_no_option(tmp_path, capsys):
    words = ["config", "scan", "--arch", "lstm", "--preset", "lake-2018", "--split", "length", "--seed", "3"]
    assert tfstudy(*words) == 0
    whole = tmp_path / "config.yaml"
    (tmp_path / "link").symlink_to(tmp_path)  # this folder is no run, so nobody looks at its other files
    whole.write_text(capsys.readouterr().out)
    preset = resolved("scan", "lstm", "lake-2018", split="length", seed=3)
    assert resolved(None, None, file=whole) == preset
    assert resolved("scan", None, file=whole) == preset, "the task may be repeated"
    assert resolved(None, None, file=whole, seed=4) == preset.model_copy(update={"seed": 4})
    assert resolved(None, None, file=whole, assignments=["train.steps=7"]).train.steps == 7
    for more, facts in {
        ("copying",): ["'copying'", "task: 'scan'"],
        ("--arch", "cnn"): ["'cnn'", "arch: 'lstm'"],
        ("--preset", "dessi-2019"): ["--preset dessi-2019"],
    }.items():
        assert tfstudy("run", *more, "--config", whole) == 2
        [message] = capsys.readouterr().err.splitlines()
        assert all(fact in message for fact in [*facts, "config.yaml"])


def test_the_config_of_a_run_gives_the_same_run_and_one_with_some_sections_keeps_the_preset(finished, capsys):
    path = finished()
    words = ("--results", "again", "--accelerator", "cpu", "--quiet")
    assert tfstudy("run", "--config", path / "config.yaml", *words) == 0
    [again] = Path("again").glob("*/*/*/s*")
    assert again.name == path.name
    assert read_result(again).splits == read_result(path).splits
    assert read_result(again).preset == read_result(path).preset
    file = Path("mine.yaml")
    file.write_text("task: scan\narch: cnn\ntrain: {steps: 5}")
    assert resolved(None, None, file=file) == resolved("scan", "cnn", assignments=["train.steps=5"])
    file.write_text("train: {steps: 5}")
    capsys.readouterr()
    assert tfstudy("run", "--config", file) == 2
    assert "scan, sorting" in capsys.readouterr().err
    assert tfstudy("config", "scan", "--smoke", "--split", "length", "--format", "json") == 0
    shown = json.loads(capsys.readouterr().out)
    assert (shown["data"]["split"], shown["train"]["steps"]) == ("length", 20)


def test_a_run_ends_with_its_result_its_folder_and_one_line_on_what_to_type(finished, capsys):
    path = finished()
    assert tfstudy(*command()) == 0
    out, err = capsys.readouterr()
    assert out.splitlines()[0].split() == ["reverse", "short,", "lstm,", "seed", "0", "(percent)"]
    assert out.splitlines()[-2:] == [str(path), f"next: tfstudy result {path}"]
    assert str(path) in err, "that it is finished already is said apart from the result"
    assert tfstudy(*command(), "--quiet") == 0
    out, err = capsys.readouterr()
    assert (out.splitlines()[-1], err) == (str(path), "")


def test_a_gpu_computes_convolutions_in_full_float32(monkeypatch):
    monkeypatch.setattr("torch.cuda.device_count", lambda: 1)
    monkeypatch.setattr("torch.backends.cudnn.allow_tf32", True)
    assert device_of(RunOptions()).type == "cuda"
    assert not torch.backends.cudnn.allow_tf32


# Lists


@pytest.fixture
def lines(capsys):
    """The lines that a command prints."""
    return lambda *words: [tfstudy(*words), *capsys.readouterr().out.splitlines()][1:]


def test_every_list_names_what_there_is_and_is_one_json_document(lines):
    finish_run(Path(planned("0")[0].path))
    for (words, keys), names in {
        ((), "about name"): [*LISTS],
        (("tasks",), "about name origin"): tasks.names(),
        (("tasks", "scan"), "about example name origin splits"): None,
        (("architectures",), "about name origin"): models.names(),
        (("presets", "scan"), "about arch name"): [*presets("scan")],
        (("presets", "reverse"), "about arch name"): ["default", "tuned"],  # those that tasks share
        (("grids",), "about name"): grid_names(),
        (("runs", "study"), "metric path reason settings state"): None,
    }.items():
        rows = json.loads("\n".join(lines("list", *words, "--format", "json")))
        assert {" ".join(sorted(row)) for row in rows} == {keys}
        if names:
            column = 0 if words else 2  # of tfstudy list KIND
            assert list(dict.fromkeys(row["name"].split()[column] for row in rows)) == names
            shown = [line.split()[column] for line in lines("list", *words)]
            assert list(dict.fromkeys(shown)) == names, "a line for each"
    splits = [line.split()[0] for line in lines("list", "tasks", "scan")[-len(tasks.find("scan").split_schemes()) :]]
    assert splits == [*tasks.find("scan").split_schemes()]
    shown = [line.split() for line in lines("list", "tasks")]
    assert ["copying", "Copy", "or", "reverse", "a", "string"] in shown, "a full stop in a source ends no sentence"


def test_list_runs_shows_the_state_of_each_run_and_what_varies(lines):
    jobs = planned("0-3")
    finish_run(Path(jobs[0].path))
    start_run(jobs[1])
    finish_run(Path(jobs[2].path), "diverged", reason="the loss is nan")
    (start_run(jobs[3]) / "result.json").write_text("{")
    found = lines("list", "runs")
    assert [line.split()[0] for line in found] == ["finished", "interrupted", "diverged", "failed"]
    assert all(job.path.removeprefix("results/") in line for job, line in zip(jobs, found, strict=True))
    assert "exact match 50.0 %" in found[0]
    assert "result.json is damaged" in found[3]
    for n, rate in enumerate(("0.001", "0.002")):
        config = Path(f"results/other/reverse-reverse/lstm/s0-{n:08d}/config.yaml")
        config.parent.mkdir(parents=True)
        config.write_text(f"task: reverse\narch: lstm\nseed: 0\ntrain: {{learning_rate: {rate}}}")
    found = lines("list", "runs", "results/other")
    assert [line.split()[-1] for line in found] == ["learning_rate=0.001", "learning_rate=0.002"]


def test_a_damaged_run_starts_again_from_its_own_config(finished, capsys):
    run = finished()
    (run / "result.json").write_text("{")
    words = ["run", "--config", str(run / "config.yaml"), "--accelerator", "cpu"]
    assert tfstudy(*words) == 2
    assert "result.json is damaged" in capsys.readouterr().err
    assert tfstudy(*words, "--restart") == 0
    assert read_result(run).status == "finished"
