"""`tfstudy list`, `tfstudy config` and `tfstudy export`."""

import json
import re
from pathlib import Path

import pytest

from tests.commands import tfstudy
from tests.example_study import finish_run, planned, start_run
from tests.example_task import TASK, added
from tests.tasks.corpora import columns
from tfstudy import models, tasks
from tfstudy.config.presets import presets
from tfstudy.grids.spec import grid_names


@pytest.fixture(autouse=True)
def _reverse(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with added(tasks, "reverse", TASK, tmp_path / "more"):
        yield


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
    text = "\n".join(lines("list", "tasks"))
    assert "scan" in text
    assert "addprim_jump" in text
    assert names(lines("list", "splits")) == list(tasks.find("scan").split_schemes())
    assert names(lines("list", "architectures")) == models.names()
    assert list(dict.fromkeys(names(lines("list", "presets", "scan")))) == list(presets("scan"))
    assert lines("list", "presets", "reverse") == []
    assert names(lines("list", "grids")) == grid_names()


def test_an_unknown_kind_of_list_is_answered_with_all_kinds(capsys):
    assert tfstudy("list", "nosuch") == 2
    assert "expected one of: tasks, splits, " in capsys.readouterr().err


def test_list_runs_shows_the_state_of_each_run(lines):
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
    assert tfstudy("list", "runs", "--results", "nowhere") == 2


def test_list_alone_names_the_kinds_of_lists(lines):
    kinds = [line.split()[2] for line in lines("list")]
    assert kinds == ["tasks", "splits", "architectures", "instruments", "presets", "grids", "runs", "corpora"]


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
    assert tfstudy("list", "tasks", "--format", "xml") == 2
    assert tfstudy("list", "corpora", "--format", "json") == 2


def test_runs_of_a_study_are_listed_by_its_name_or_path_with_what_varies(lines):
    for study in ("study", "other"):
        for n, rate in enumerate(("0.001", "0.002")):
            config = Path(f"results/{study}/reverse-reverse/lstm/s0-{n:08d}/config.yaml")
            config.parent.mkdir(parents=True)
            config.write_text(f"task: reverse\narch: lstm\nseed: 0\ntrain: {{learning_rate: {rate}}}")
    assert len(lines("list", "runs")) == 4
    found = lines("list", "runs", "study")
    assert [line.split()[-1] for line in found] == ["learning_rate=0.001", "learning_rate=0.002"]
    assert lines("list", "runs", "results/study") == found
    assert tfstudy("list", "runs", "studdy") == 2


def test_config_shows_a_config_that_can_be_read_again(lines, tmp_path):
    words = ["config", "scan", "--arch", "cnn", "--split", "length", "--seed", "3", "--set", "model.kernel=5"]
    shown = lines(*words)
    assert any(re.search(r"  kernel: 5 +# int.*, changed from 3: ", line) for line in shown)
    file = tmp_path / "shown.yaml"
    file.write_text("\n".join(shown))
    assert lines("config", "scan", "--arch", "cnn", "--config", str(file)) == shown


def test_config_shows_the_settings_of_a_smoke_run(lines):
    assert any("steps: 20 " in line for line in lines("config", "scan", "--smoke"))


def test_the_examples_of_tasks_fit_80_columns(lines):
    examples = [
        line for row in json.loads("\n".join(lines("list", "tasks", "--format", "json"))) for line in row["example"]
    ]
    assert max(map(len, examples)) + len("    ") <= 80


@pytest.mark.parametrize("name", ["jsonl", "parquet"])
def test_export_shows_no_progress_bars(capfd, name):
    datasets = pytest.importorskip("datasets")
    assert tfstudy("export", "reverse", "--out", "data", "--format", name) == 0
    assert capfd.readouterr().err == ""
    assert not datasets.are_progress_bars_disabled()


def test_export_writes_jsonl_and_refuses_an_existing_folder(lines, capsys):
    files = [f"data/{name}.jsonl" for name in ("test", "train", "validation")]
    assert lines("export", "scan", "--split", "length", "--out", "data") == files
    examples = Path("data/test.jsonl").read_text().splitlines()
    assert len(examples) == 3920
    assert json.loads(examples[0]).keys() >= {"source", "target", "length"}
    before = {path: path.read_bytes() for path in Path("data").iterdir()}
    assert tfstudy("export", "scan", "--out", "data") == 2
    error = capsys.readouterr().err
    assert "--out" in error
    assert "data" in error
    assert {path: path.read_bytes() for path in Path("data").iterdir()} == before


def test_export_refuses_an_unknown_format_and_other_sections(capsys):
    assert tfstudy("export", "reverse", "--out", "data", "--format", "json") == 2
    assert "did you mean 'jsonl'?" in capsys.readouterr().err
    assert tfstudy("export", "reverse", "--out", "data", "--set", "train.steps=1") == 2
    assert "'train'" in capsys.readouterr().err
    assert not Path("data").exists()


def test_list_corpora_shows_the_corpora_of_a_folder_or_says_why_not(lines, capsys, tmp_path):
    two_columns = {"train": [("a dog", "ein Hund"), ("a cat", "")], "test": [("a dog", "der Hund")]}
    columns(tmp_path / "corpora" / "some-en-de", **two_columns)
    expected = lines("list", "corpora", "corpora")
    assert expected == ["some-en-de  test.tsv train.tsv"]
    assert lines("list", "corpora", "corpora/some-en-de") == expected
    assert tfstudy("list", "corpora") == 2
    assert "has no corpus" in capsys.readouterr().err
