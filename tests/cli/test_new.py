"""`tfstudy new`: what it writes works at once, and it never overwrites a file."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.commands import tfstudy
from tests.committed import ROOT
from tfstudy import models, plugins, tasks
from tfstudy.cli import new
from tfstudy.config.files import read_yaml
from tfstudy.config.presets import preset
from tfstudy.config.resolve import resolve
from tfstudy.config.trees import merge
from tfstudy.experiment.parameter_matching import TOLERANCE
from tfstudy.experiment.prepare import prepare
from tfstudy.models.base import parameter_count
from tfstudy.testing import check_task, load_plugin

FILES = {"task": ["mine.py", "mine.presets.yaml", "test_mine.py"], "architecture": ["mine.py", "test_mine.py"]}
IN_CHECKOUT = {
    "task": ["tasks/mine.py", "configs/presets/mine.yaml", "tests/tasks/test_mine.py"],
    "architecture": ["tfstudy/models/mine.py", "tests/models/test_mine.py"],
}


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(plugins.VARIABLE, "")


@pytest.fixture
def checkout(tmp_path, monkeypatch) -> Path:
    """A folder in the place of the checkout, in which tasks and architectures are found."""
    for name in ("tasks", "tfstudy/models/parts"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "tfstudy" / "tasks").symlink_to("../tasks")
    for name in ("__init__", "testing", "tasks/base", "models/base", "models/config", "models/parts/layers"):
        (tmp_path / f"tfstudy/{name}.py").touch()  # by which ruff knows what is a part of the checkout
    (tmp_path / "pyproject.toml").write_bytes((ROOT / "pyproject.toml").read_bytes())
    monkeypatch.setattr(new, "_checkout", lambda: tmp_path)
    return tmp_path


def written(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


@pytest.mark.parametrize("kind", FILES)
def test_elsewhere_it_writes_a_plugin_and_what_to_type_next(kind, tmp_path, capsys):
    assert tfstudy("new", kind, "mine") == 0
    out = capsys.readouterr().out
    assert written(tmp_path) == sorted(FILES[kind])
    assert "--smoke --plugin mine.py" in out
    assert "python -m pytest test_mine.py" in out
    subprocess.run([sys.executable, "-m", "ruff", "check", "--isolated", "."], check=True)
    subprocess.run(
        [sys.executable, "-m", "ruff", "format", "--isolated", "--line-length=120", "--check", "."], check=True
    )


def test_a_folder_can_be_named(tmp_path, checkout, capsys):
    assert tfstudy("new", "task", "mine", "--out", tmp_path / "a" / "b") == 0
    assert written(tmp_path / "a" / "b") == sorted(FILES["task"])
    assert f"--plugin {tmp_path}/a/b/mine.py" in capsys.readouterr().out


@pytest.mark.parametrize("kind", IN_CHECKOUT)
def test_in_a_checkout_it_writes_a_part_of_it(kind, checkout, capsys):
    before = written(checkout)
    assert tfstudy("new", kind, "mine") == 0
    assert sorted(set(written(checkout)) - set(before)) == sorted(IN_CHECKOUT[kind])
    out = capsys.readouterr().out
    assert "--plugin" not in out
    assert "golden_defaults" in out
    subprocess.run([sys.executable, "-m", "ruff", "check", "--no-cache", "."], check=True)
    subprocess.run([sys.executable, "-m", "ruff", "format", "--no-cache", "--check", "."], check=True)


def test_the_checkout_is_the_one_that_the_code_is_from(tmp_path, monkeypatch):
    assert new._checkout() is None
    monkeypatch.chdir(ROOT / "docs")
    assert new._checkout() == ROOT


@pytest.mark.parametrize(
    "name", ["scan", "lstm", "class", "1x", "Mine", "a-b", "ä", "_x", "test_x", "base", "random", "torch",
             "tfstudy", "a/b", "../x", ".", "", "x" * 99, "a b", "a\n"],
)  # fmt: skip
def test_names_that_exist_or_can_not_be_imported_are_refused(name, tmp_path, capsys):
    kind = "architecture" if name == "lstm" else "task"
    assert tfstudy("new", kind, name) == 2
    captured = capsys.readouterr()
    assert len(captured.err.splitlines()) == 1
    assert "Traceback" not in captured.err
    assert written(tmp_path) == []


def test_an_unknown_kind_is_refused(capsys):
    assert tfstudy("new", "taks", "mine") == 2
    assert "did you mean 'task'" in capsys.readouterr().err


@pytest.mark.parametrize("file", FILES["task"])
def test_a_file_that_exists_is_kept_and_nothing_is_written(file, tmp_path, capsys):
    (tmp_path / file).write_text("mine")
    assert tfstudy("new", "task", "mine") == 2
    assert f"{file} exists already" in capsys.readouterr().err
    assert written(tmp_path) == [file]
    assert (tmp_path / file).read_text() == "mine"


def test_if_one_file_can_not_be_written_none_is(checkout, capsys):
    (checkout / "tests").write_text("no folder")
    before = written(checkout)
    assert tfstudy("new", "task", "mine") == 2
    assert "nothing was written" in capsys.readouterr().err
    assert written(checkout) == before


def test_a_class_never_has_the_name_of_one_that_its_file_imports(tmp_path):
    assert tfstudy("new", "task", "splits") == 0
    assert load_plugin("splits.py").__name__ == "SplitsTask"
    assert tfstudy("new", "task", "two_words") == 0
    assert load_plugin("two_words.py").__name__ == "TwoWords"


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


def test_the_task_runs_in_a_checkout(checkout, monkeypatch, capsys):
    assert tfstudy("new", "task", "mine") == 0
    monkeypatch.setattr(tasks, "__path__", [*tasks.__path__, str(checkout / "tasks")])
    assert tfstudy("run", "mine", "--arch", "lstm", "--smoke", "--accelerator", "cpu") == 0
    assert "mine length, lstm" in capsys.readouterr().out
    del sys.modules["tfstudy.tasks.mine"]


def test_the_architecture_runs_in_a_checkout(checkout, monkeypatch, capsys):
    assert tfstudy("new", "architecture", "mine") == 0
    monkeypatch.setattr(models, "__path__", [*models.__path__, str(checkout / "tfstudy/models")])
    assert tfstudy("run", "copying", "--set", "data.train_examples=300", "--arch", "mine", "--smoke") == 0
    assert "copying copy, mine" in capsys.readouterr().out
    del sys.modules["tfstudy.models.mine"]


@pytest.mark.parametrize(
    ("page", "kind", "name"), [("own-task.md", "task", "reverse"), ("own-architecture.md", "architecture", "gru")]
)
def test_the_documentation_shows_what_it_writes(page, kind, name):
    assert tfstudy("new", kind, name) == 0
    code = Path(f"{name}.py").read_text(encoding="utf-8")
    assert f'```python title="{name}.py"\n{code}```\n' in (ROOT / "docs/how-to" / page).read_text("utf-8")


@pytest.mark.slow
@pytest.mark.parametrize("kind", FILES)
def test_the_test_that_it_writes_passes(kind, tmp_path):
    assert tfstudy("new", kind, "mine") == 0
    words = ["-q", "-p", "no:cacheprovider", "-W", "error", "test_mine.py"]
    done = subprocess.run([sys.executable, "-m", "pytest", *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert "2 passed" in done.stdout
