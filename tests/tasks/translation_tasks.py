"""Small translation tasks and corpora."""

import random
from pathlib import Path

import pytest

from tfstudy.tasks.translation.task import Translation

HERE = Path(__file__).resolve().parents[2]


def translation(**config):
    return Translation(Translation.Config(**config))


def write(folder, **splits):
    """A folder of two-column files."""
    folder.mkdir(parents=True, exist_ok=True)
    for split, pairs in splits.items():
        (folder / f"{split}.tsv").write_text("".join(f"{a}\t{b}\n" for a, b in pairs), encoding="utf-8")
    return str(folder)


def invented(name, n):
    """`n` pairs of short sentences, of which none occurs twice."""
    draw = random.Random(name)
    words = ["red", "blue", "old", "young", "dog", "cat", "bird", "tree", "sees", "likes", "finds", "near", "under"]
    return [
        (
            f"{' '.join(draw.choices(words, k=draw.randint(2, 9)))} {name}{i}",
            f"{name}{i} {' '.join(draw.choices(words, k=4))[::-1]}",
        )
        for i in range(n)
    ]


@pytest.fixture
def root(tmp_path):
    return write(tmp_path / "set", train=invented("train", 300), dev=invented("dev", 20), test=invented("test", 30))


@pytest.fixture(scope="module")
def embedded():
    """The embedded pair with few pairs to train on."""
    return translation(train_pairs=400)


@pytest.fixture
def few(monkeypatch):
    """Small held-out splits of the embedded pair, which take most of its time."""
    monkeypatch.setattr("tfstudy.tasks.translation.text.EVAL_PAIRS", {"validation": 30, "test": 100})
    monkeypatch.setattr("tfstudy.tasks.translation.text.CONSTRUCTION_PAIRS", 10)


def sources(task, split="train"):
    return [task.text(e.source) for e in task.examples(split)]


def targets(task, split="train"):
    return [task.text(e.target) for e in task.examples(split)]
