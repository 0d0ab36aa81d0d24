"""A new task is one file and a new architecture is one file; other tests borrow both, since they are small."""

import importlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import tasks
from tfstudy import models
from tfstudy.cli import main

TASK = '''
"""Words to the same words in reverse.

    a b c  ->  c b a
"""

from itertools import product

from tasks.base import Example, Splits, Task, TaskConfig, UserError, carve, one_of

EXPERIMENTS = {"short": "train on 2 to 4 words, test on 5", "42": "the same by another name", "alone": "no validation"}


class Reverse(Task):
    """Words in reverse."""

    class Config(TaskConfig):
        split: str = "short"

    def __init__(self, config):
        one_of("data.split", config.split, EXPERIMENTS)
        words = [w for n in (2, 3, 4, 5) for w in product("abc", repeat=n)]
        every = [Example(w, w[::-1], {"length": len(w), "first": w[0]}) for w in words]
        train = [e for e in every if len(e.source) < 5]
        stays, held = carve(train, 0.0 if config.split == "alone" else 0.2, config.seed)
        self._examples = {"train": stays, "validation": held, "test": [e for e in every if len(e.source) == 5]}

    @classmethod
    def experiments(cls):
        return EXPERIMENTS

    def splits(self):
        return Splits("train", "validation" if self._examples["validation"] else None, ("test",))

    def examples(self, split):
        return self._examples[split]
'''
ARCHITECTURE = '''
"""A bag of words: the mean of the source's embeddings, and the last token."""

from typing import NamedTuple

from pydantic import Field
from torch import Tensor, nn

from tfstudy.models.base import Model, ModelConfig


class BagState(NamedTuple):
    mean: Tensor


class Bag(Model):
    """The mean of the source, and the last token."""

    class Config(ModelConfig):
        depth: int = Field(1, ge=1, description="layers")

    def __init__(self, config, source_vocab, target_vocab):
        super().__init__(config, source_vocab, target_vocab)
        self.source = nn.Embedding(source_vocab, config.dim)
        self.target = nn.Embedding(target_vocab, config.dim)
        self.layers = nn.ModuleList(nn.Linear(config.dim, config.dim) for _ in range(config.depth))
        self.output = nn.Linear(config.dim, target_vocab)

    def encode(self, source, source_mask):
        present = source_mask[..., None].float()
        return BagState((self.source(source) * present).sum(1) / present.sum(1))

    def decode(self, tokens, state):
        x = self.target(tokens) + state.mean[:, None]
        for layer in self.layers:
            x = layer(x).relu()
        return self.output(x), state
'''


@contextmanager
def added(package, name: str, text: str, folder: Path) -> Iterator[None]:
    """The package has one file more, and afterwards not a trace of it."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.py").write_text(text)
    before = list(package.__path__)
    package.__path__.append(str(folder))
    importlib.invalidate_caches()
    try:
        yield
    finally:
        package.__path__[:] = before
        sys.modules.pop(f"{package.__name__}.{name}", None)
        vars(package).pop(name, None)


def tfstudy(*words: str | Path) -> int:
    """The exit code of the command, run in this process."""
    with pytest.raises(SystemExit) as end:
        main([str(word) for word in words])
    return int(end.value.code or 0)


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def source_files() -> dict[Path, int]:
    folders = [Path(tasks.__file__).parent, Path(models.__file__).parent.parent]
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
    assert "tasks.reverse" not in sys.modules
    capsys.readouterr()
    assert tfstudy("run", "reverse") == 2
    assert "task must be one of" in capsys.readouterr().err


def test_a_new_architecture_is_one_file(tmp_path, capsys):
    before = source_files()
    with added(tasks, "reverse", TASK, tmp_path / "more"), added(models, "bag", ARCHITECTURE, tmp_path / "archs"):
        assert tfstudy("list", "architectures") == 0
        assert "The mean of the source, and the last token." in capsys.readouterr().out
        assert tfstudy("show", "scan", "--arch", "bag", "--set", "model.depth=2") == 0
        assert "depth: 2" in capsys.readouterr().out
        assert tfstudy("run", "reverse", "--arch", "bag", "--smoke", "--accelerator", "cpu") == 0
        assert tfstudy("list", "runs", "--results", "results-smoke") == 0
        assert "reverse-short/bag" in capsys.readouterr().out
        [run] = Path("results-smoke").glob("runs/reverse-short/bag/*")
        assert tfstudy("predict", run, "a b c") == 0
        assert tfstudy("show", "scan", "--arch", "lstm", "--set", "model.depth=2") == 2
        assert "it belongs to the architecture bag" in capsys.readouterr().err
    assert source_files() == before
    assert tfstudy("show", "scan", "--arch", "bag") == 2


def test_a_split_may_be_named_by_a_number(tmp_path):
    with added(tasks, "reverse", TASK, tmp_path / "more"):
        assert tfstudy("show", "reverse", "--split", "42") == 0


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
            f"import tasks; tasks.__path__.append({str(tmp_path / 'more')!r}); "
            "from tfstudy.cli import main; main(['run', 'reverse', '--smoke', '--accelerator', 'cpu'])"
        )
        environment = os.environ | {"OMP_NUM_THREADS": "1"}
        done = subprocess.run(
            [sys.executable, "-W", "error::SyntaxWarning", "-c", code], capture_output=True, text=True, env=environment
        )
    assert done.returncode == 0, done.stderr
    assert "SMOKE RUN" in done.stdout
