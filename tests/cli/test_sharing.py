"""`tfstudy new`: what it writes can be used at once, and nothing is overwritten."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.commands import tfstudy
from tests.committed import ROOT
from tfstudy import plugins
from tfstudy.config.presets import preset
from tfstudy.config.resolve import resolve
from tfstudy.config.trees import merge, read_yaml
from tfstudy.experiment.parameter_matching import TOLERANCE
from tfstudy.experiment.prepare import prepare
from tfstudy.models.base import parameter_count
from tfstudy.testing import check_task, load_plugin

FILES = {"task": ["mine.py", "mine.presets.yaml", "test_mine.py"], "architecture": ["mine.py", "test_mine.py"]}


@pytest.fixture(autouse=True)
def _plugins(monkeypatch):
    monkeypatch.setenv(plugins.VARIABLE, "")


def written() -> list[str]:
    return sorted(str(path) for path in Path().rglob("*") if path.is_file())


@pytest.mark.parametrize("kind", FILES)
def test_it_writes_a_plugin_that_ruff_accepts(kind, capsys):
    assert tfstudy("new", kind, "mine") == 0
    words = "mine" if kind == "task" else "scan --arch mine"
    assert capsys.readouterr().out.splitlines()[-1] == f"next: tfstudy run {words} --smoke --plugin mine.py"
    assert written() == sorted(FILES[kind])
    subprocess.run([sys.executable, "-m", "ruff", "check", "--isolated", "."], check=True)
    subprocess.run(
        [sys.executable, "-m", "ruff", "format", "--isolated", "--line-length=120", "--check", "."], check=True
    )


@pytest.mark.parametrize("name", ["scan", "class", "1x", "ä", "test_x", "base", "random", "torch", "a/b", "", "x" * 99])
def test_names_that_exist_or_can_not_be_imported_are_refused(name, capsys):
    assert tfstudy("new", "task", name) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1
    assert written() == []


def test_a_class_never_has_the_name_of_one_that_its_file_imports_and_a_folder_can_be_named():
    for name, cls in (("splits", "SplitsTask"), ("two_words", "TwoWords")):
        assert tfstudy("new", "task", name, "--out", "a/b") == 0
        assert load_plugin(f"a/b/{name}.py").__name__ == cls


def test_a_file_that_exists_is_kept_and_nothing_is_written(capsys):
    for file in FILES["task"]:
        Path(file).write_text("mine")
        assert tfstudy("new", "task", "mine") == 2
        assert f"{file}: File exists; nothing was written" in capsys.readouterr().err
        assert written() == [file]
        assert Path(file).read_text() == "mine"
        Path(file).unlink()
    assert tfstudy("new", "taks", "mine") == 2
    assert "did you mean 'task'" in capsys.readouterr().err


def test_the_task_has_all_properties_and_presets_of_equal_size(tmp_path, monkeypatch):
    assert tfstudy("new", "task", "mine") == 0
    check_task(load_plugin("mine.py"))
    monkeypatch.setenv(plugins.VARIABLE, str(tmp_path / "mine.py"))
    assert list(read_yaml(Path("mine.presets.yaml"))["default"]) == ["transformer", "lstm", "cnn"]
    sizes = []
    for arch in ("transformer", "lstm", "cnn"):
        config = resolve(merge(preset("mine", arch), {"task": "mine", "arch": arch}))
        sizes.append(parameter_count(prepare(config).model))
    assert max(sizes) <= (1 + TOLERANCE) * min(sizes)


def test_the_architecture_runs(capsys):
    assert tfstudy("new", "architecture", "mine") == 0
    words = ["run", "copying", "--set", "data.train_examples=300", "--arch", "mine", "--smoke", "--plugin", "mine.py"]
    assert tfstudy(*words) == 0
    assert "copying copy, mine" in capsys.readouterr().out


def test_the_documentation_shows_the_task_that_it_writes(monkeypatch):
    monkeypatch.setattr("tfstudy.tasks.__path__", [str(ROOT / "tasks")])  # without the task of the same name
    assert tfstudy("new", "task", "reverse") == 0
    code = Path("reverse.py").read_text(encoding="utf-8")
    assert f'```python title="reverse.py"\n{code}```\n' in (ROOT / "docs/how-to/own-task.md").read_text("utf-8")


@pytest.mark.slow
@pytest.mark.parametrize("kind", FILES)
def test_the_test_that_it_writes_passes(kind):
    assert tfstudy("new", kind, "mine") == 0
    words = ["-q", "-p", "no:cacheprovider", "-W", "error", "test_mine.py"]
    done = subprocess.run([sys.executable, "-m", "pytest", *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert "2 passed" in done.stdout
