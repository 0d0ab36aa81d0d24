"""Two tasks and an architecture of one small file each, and how they are added: to their packages, or as plug-ins."""

import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

TASK = '''
"""Words to the same words in reverse.

    a b c  ->  c b a
"""

from itertools import product

from tfstudy.tasks.base import Example, Splits, Task, TaskConfig, hold_out


class Reverse(Task):
    """Words in reverse."""

    schemes = {"short": "train on 2 to 4 words, test on 5", "42": "the same, renamed", "alone": "no validation"}

    class Config(TaskConfig):
        split: str = "short"

    def __init__(self, config):
        self.check_config(config)
        words = [w for n in (2, 3, 4, 5) for w in product("abc", repeat=n)]
        every = [Example(w, w[::-1], {"length": len(w), "first": w[0]}) for w in words]
        train = [e for e in every if len(e.source) < 5]
        stays, held = hold_out(train, 0.0 if config.split == "alone" else 0.2, config.seed)
        self._examples = {"train": stays, "validation": held, "test": [e for e in every if len(e.source) == 5]}

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

from tfstudy.models.base import ModelConfig, PaddedModel


class BagState(NamedTuple):
    mean: Tensor


class Bag(PaddedModel):
    """The mean of the source, and the last token."""

    class Config(ModelConfig):
        depth: int = Field(1, ge=1, description="layers")

    def __init__(self, config, source_vocab, target_vocab):
        super().__init__(config, source_vocab, target_vocab)
        self.source = nn.Embedding(source_vocab, config.dim)
        self.target = nn.Embedding(target_vocab, config.dim)
        self.layers = nn.ModuleList(nn.Linear(config.dim, config.dim) for _ in range(config.depth))
        self.output = nn.Linear(config.dim, target_vocab)

    def encode_padded(self, source, mask):
        present = mask[..., None].float()
        return BagState((self.source(source) * present).sum(1) / present.sum(1))

    def decode_padded(self, tokens, state):
        x = self.target(tokens) + state.mean[:, None]
        for layer in self.layers:
            x = layer(x).relu()
        return self.output(x), state
'''
LETTERS = '''"""A task of one letter."""

from tfstudy.tasks.base import Example, Splits, Task, TaskConfig


class Letters(Task):
    """One letter to the same letter."""

    schemes = {"only": "all letters"}

    class Config(TaskConfig):
        split: str = "only"

    def __init__(self, config):
        self.check_config(config)

    def splits(self):
        return Splits("train", None, ("test",))

    def examples(self, split):
        return [Example((a,), (a,), {"length": 1}) for a in {"train": "abcdefgh", "test": "ij"}[split]]

    def vocabulary(self):
        return set("abcdefghij"), set("abcdefghij")
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


def write(folder: Path, name: str, text: str = LETTERS) -> Path:
    """A file with a plug-in."""
    path = folder / f"{name}.py"
    path.write_text(text, encoding="utf-8")
    return path


def install(site: Path, package: str, entry: str, text: str = LETTERS, group: str = "tfstudy.tasks") -> None:
    """A package of one module in a folder of `sys.path`; `entry` is such as `mine = a_package:Letters`."""
    info = site / f"{package}-1.2.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.2\n")
    (info / "entry_points.txt").write_text(f"[{group}]\n{entry}\n")
    write(site, package, text)
