"""A new task is one file and a new architecture is one file; other tests borrow both, since they are small."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.commands import tfstudy
from tests.example_task import ARCHITECTURE, TASK, added
from tfstudy import models, tasks


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def source_files() -> dict[Path, int]:
    folders = [Path(tasks.__file__).resolve().parent, Path(models.__file__).parent.parent]
    return {path: path.stat().st_mtime_ns for folder in folders for path in folder.rglob("*.py")}


def test_a_new_task_is_one_file(tmp_path, capsys):
    before = source_files()
    with added(tasks, "reverse", TASK, tmp_path / "more"):
        assert tfstudy("list", "tasks") == 0
        assert "Words to the same words in reverse." in capsys.readouterr().out
        assert tfstudy("list", "splits", "reverse") == 0
        assert "train on 2 to 4 words, test on 5" in capsys.readouterr().out
        for arch in ("transformer", "lstm", "cnn"):
            assert tfstudy("run", "reverse", "--arch", arch, "--smoke", "--accelerator", "cpu") == 0
        assert "reverse short, cnn" in capsys.readouterr().out
        assert tfstudy("export", "reverse", "--out", "data") == 0
    rows = [json.loads(line) for line in Path("data/test.jsonl").read_text().splitlines()]
    assert len(rows) == 3**5
    assert rows[1] == {"source": "a a a a b", "target": "b a a a a", "length": 5, "first": "a"}
    assert source_files() == before
    assert "tfstudy.tasks.reverse" not in sys.modules
    capsys.readouterr()
    assert tfstudy("run", "reverse") == 2
    assert "unknown task" in capsys.readouterr().err


def test_a_new_architecture_is_one_file(tmp_path, capsys):
    before = source_files()
    with added(tasks, "reverse", TASK, tmp_path / "more"), added(models, "bag", ARCHITECTURE, tmp_path / "archs"):
        assert tfstudy("list", "architectures") == 0
        assert "The mean of the source, and the last token." in capsys.readouterr().out
        assert tfstudy("config", "scan", "--arch", "bag", "--set", "model.depth=2") == 0
        assert "depth: 2" in capsys.readouterr().out
        assert tfstudy("run", "reverse", "--arch", "bag", "--smoke", "--accelerator", "cpu") == 0
        assert tfstudy("list", "runs", "--results", "results-smoke") == 0
        assert "reverse-short/bag" in capsys.readouterr().out
        [run] = Path("results-smoke").glob("runs/reverse-short/bag/*")
        assert tfstudy("predict", run, "a b c") == 0
        assert tfstudy("config", "scan", "--arch", "lstm", "--set", "model.depth=2") == 2
        assert "it belongs to the architecture bag" in capsys.readouterr().err
    assert source_files() == before
    assert tfstudy("config", "scan", "--arch", "bag") == 2


def test_a_split_may_be_named_by_a_number(tmp_path):
    with added(tasks, "reverse", TASK, tmp_path / "more"):
        assert tfstudy("config", "reverse", "--split", "42") == 0


def test_a_file_with_two_tasks_or_two_architectures_is_refused_by_name(tmp_path, capsys):
    two_tasks = TASK + "\n\nclass Other(Task):\n    pass\n"
    two_archs = ARCHITECTURE + "\n\nclass Other(Model):\n    pass\n"
    with added(tasks, "two", two_tasks, tmp_path / "more"), added(models, "pair", two_archs, tmp_path / "archs"):
        assert tfstudy("run", "two") == 2
        assert "tasks/two.py must define one subclass of Task, but defines 2" in capsys.readouterr().err
        assert tfstudy("run", "scan", "--arch", "pair") == 2
        assert "tfstudy/models/pair.py must define one subclass of Model, but defines 2" in capsys.readouterr().err


def test_an_architecture_can_not_be_derived_from_another():
    from tfstudy.models.lstm import LSTM

    with pytest.raises(TypeError, match="architectures are final"):
        type("Mine", (LSTM,), {})


@pytest.mark.slow
def test_a_new_task_runs_from_a_shell_with_its_folder_on_the_path(tmp_path):
    with added(tasks, "reverse", TASK, tmp_path / "more"):
        code = (
            f"from tfstudy import tasks; tasks.__path__.append({str(tmp_path / 'more')!r}); "
            "from tfstudy.cli import main; main(['run', 'reverse', '--smoke', '--accelerator', 'cpu'])"
        )
        environment = os.environ | {"OMP_NUM_THREADS": "1"}
        done = subprocess.run(
            [sys.executable, "-W", "error::SyntaxWarning", "-c", code], capture_output=True, text=True, env=environment
        )
    assert done.returncode == 0, done.stderr
    assert "SMOKE RUN" in done.stdout
