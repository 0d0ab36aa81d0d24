"""`tfstudy list` and `tfstudy export`."""

import json
from pathlib import Path

import pytest

from tests.commands import tfstudy
from tests.example_study import finish_run, planned, start_run
from tests.tasks.corpora import columns
from tfstudy import models, tasks
from tfstudy.config.presets import presets
from tfstudy.grids.spec import grid_names
from tfstudy.report.lists import KINDS, LISTS, list_lines, runs_list
from tfstudy.runs import reader, status


@pytest.fixture
def lines(capsys):
    """The lines that a command prints."""

    def lines(*words: str) -> list[str]:
        assert tfstudy(*words) == 0
        return capsys.readouterr().out.splitlines()

    return lines


def names(lines: list[str]) -> list[str]:
    return [line.split()[0] for line in lines]


def test_list_names_tasks_splits_architectures_presets_and_grids(lines):
    assert [row["name"].split()[2] for row in KINDS] == [*LISTS, "corpora"] == [row.split()[2] for row in lines("list")]
    assert f"splits: {', '.join(tasks.find('scan').split_schemes())}" in map(str.strip, lines("list", "tasks"))
    assert names(lines("list", "splits")) == list(tasks.find("scan").split_schemes())
    assert names(lines("list", "architectures")) == models.names()
    assert list(dict.fromkeys(names(lines("list", "presets", "scan")))) == list(presets("scan"))
    assert names(lines("list", "presets", "reverse")) == ["default"] * 3, "those that tasks share"
    assert names(lines("list", "grids")) == grid_names()


def test_what_is_said_of_a_task_stands_below_its_name():
    row = {"name": "mine", "about": "a task", "example": ["a -> b"], "splits": ["one", "two"]}
    rows = [row | {"origin": "plug-in: mine.py"}, {"name": "scan", "about": "", "origin": ""}]
    assert list(list_lines("tasks", rows)) == [
        "mine  a task",
        "      a -> b",
        "      splits: one, two",
        "      plug-in: mine.py",
        "scan",
    ]


def test_list_runs_shows_the_state_of_each_run_and_what_varies(lines, monkeypatch):
    assert list(list_lines("runs", [])) == ["no runs"]
    jobs = planned("0-3")
    finish_run(Path(jobs[0].path))
    start_run(jobs[1])
    finish_run(Path(jobs[2].path), "diverged", reason="the loss is nan")
    broken = start_run(jobs[3])
    (broken / "result.json").write_text("{")
    found = lines("list", "runs")
    assert names(found) == ["finished", "interrupted", "diverged", "failed"]
    assert all(job.path in line for job, line in zip(jobs, found, strict=True))
    assert "exact match 50.0 %" in found[0]
    assert "the result is broken" in found[3]
    read = []
    monkeypatch.setattr(status, "decode_result", lambda path: read.append(path) or reader.decode_result(path))
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
    assert tfstudy("list", "corpora", "--format", "json") == 2


def test_list_corpora_shows_the_corpora_of_a_folder_or_says_why_not(lines, capsys, tmp_path):
    two_columns = {"train": [("a dog", "ein Hund"), ("a cat", "")], "test": [("a dog", "der Hund")]}
    columns(tmp_path / "corpora" / "some-en-de", **two_columns)
    expected = lines("list", "corpora", "corpora")
    assert expected == ["some-en-de  test.tsv train.tsv"]
    assert lines("list", "corpora", "corpora/some-en-de") == expected
    assert tfstudy("list", "corpora") == 2
    assert "has no corpus" in capsys.readouterr().err


def test_export_writes_jsonl_and_refuses_what_it_can_not_write(lines, capsys):
    files = [f"data/{name}.jsonl" for name in ("test", "train", "validation")]
    assert lines("export", "scan", "--split", "length", "--out", "data") == files
    examples = Path("data/test.jsonl").read_text().splitlines()
    assert len(examples) == 3920
    assert json.loads(examples[0]).keys() >= {"source", "target", "length"}
    before = {path: path.read_bytes() for path in Path("data").iterdir()}
    for words, fact in {
        ("scan", "--out", "data"): "--out",
        ("reverse", "--out", "new", "--format", "json"): "did you mean 'jsonl'?",
        ("reverse", "--out", "new", "--set", "train.steps=1"): "'train'",
    }.items():
        assert tfstudy("export", *words) == 2
        assert fact in capsys.readouterr().err
    assert {path: path.read_bytes() for path in Path("data").iterdir()} == before
    assert not Path("new").exists()
