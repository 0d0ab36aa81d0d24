"""`tfstudy new`: what it writes can be used at once, and nothing is overwritten."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.commands import tfstudy
from tests.committed import ROOT
from tfstudy.testing import load_plugin

FILES = ["mine.py", "test_mine.py"]
KINDS = ["task", "architecture"]


def written() -> list[str]:
    return sorted(str(path) for path in Path().rglob("*") if path.is_file())


@pytest.mark.parametrize("kind", KINDS)
def test_it_writes_a_plugin_that_ruff_accepts_and_that_runs(kind, capsys):
    assert tfstudy("new", kind, "mine") == 0
    words = "mine" if kind == "task" else "scan --arch mine"
    assert capsys.readouterr().out.splitlines()[-1] == f"next: tfstudy run {words} --smoke --plugin mine.py"
    assert written() == FILES
    for check in (["check", "--isolated"], ["format", "--isolated", "--line-length=120", "--check"]):
        subprocess.run([sys.executable, "-m", "ruff", *check, "."], check=True)
    words = ["mine"] if kind == "task" else ["copying", "--set", "data.train_examples=300", "--arch", "mine"]
    assert tfstudy("run", *words, "--smoke", "--plugin", "mine.py") == 0
    if kind == "task":
        capsys.readouterr()
        words = ("--arch", "transformer,lstm,cnn", "--dry-run", "--format", "json", "--plugin", "mine.py")
        assert tfstudy("grid", "--task", "mine", *words) == 0
        assert json.loads(capsys.readouterr().out)["notes"] == [], "its presets are of equal size"


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_the_test_that_it_writes_passes(kind):
    assert tfstudy("new", kind, "mine") == 0
    words = ["-q", "-p", "no:cacheprovider", "-W", "error", "test_mine.py"]
    done = subprocess.run([sys.executable, "-m", "pytest", *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert "2 passed" in done.stdout


@pytest.mark.parametrize("name", ["scan", "class", "1x", "ä", "test_x", "base", "random", "torch", "a/b", "x" * 99])
def test_names_that_exist_or_can_not_be_imported_are_refused(name, capsys):
    assert tfstudy("new", "task", name) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1
    assert written() == []


def test_a_class_never_has_the_name_of_one_that_its_file_imports():
    for name, cls in (("splits", "SplitsTask"), ("two_words", "TwoWords")):
        assert tfstudy("new", "task", name) == 0
        assert load_plugin(f"{name}.py").__name__ == cls


@pytest.mark.parametrize("file", FILES)
def test_a_file_that_exists_is_kept_and_nothing_is_written(file, capsys):
    Path(file).write_text("mine")
    assert tfstudy("new", "task", "mine") == 2
    assert f"{file}: File exists; nothing was written" in capsys.readouterr().err
    assert (written(), Path(file).read_text()) == ([file], "mine")


def test_the_documentation_shows_the_task_that_it_writes(monkeypatch):
    monkeypatch.setattr("tfstudy.tasks.__path__", [str(ROOT / "tasks")])  # without the task of the same name
    assert tfstudy("new", "task", "reverse") == 0
    code = Path("reverse.py").read_text(encoding="utf-8")
    assert f'```python title="reverse.py"\n{code}```\n' in (ROOT / "docs/how-to/own-task.md").read_text("utf-8")
