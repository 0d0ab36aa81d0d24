"""A task and an architecture of one small file each, and how they are added to their packages."""

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

from tfstudy.tasks.base import Example, Splits, Task, TaskConfig, UserError, hold_out, one_of

SPLIT_SCHEMES = {"short": "train on 2 to 4 words, test on 5", "42": "the same, renamed", "alone": "no validation"}


class Reverse(Task):
    """Words in reverse."""

    class Config(TaskConfig):
        split: str = "short"

    def __init__(self, config):
        one_of("split scheme", config.split, SPLIT_SCHEMES)
        words = [w for n in (2, 3, 4, 5) for w in product("abc", repeat=n)]
        every = [Example(w, w[::-1], {"length": len(w), "first": w[0]}) for w in words]
        train = [e for e in every if len(e.source) < 5]
        stays, held = hold_out(train, 0.0 if config.split == "alone" else 0.2, config.seed)
        self._examples = {"train": stays, "validation": held, "test": [e for e in every if len(e.source) == 5]}

    @classmethod
    def split_schemes(cls):
        return SPLIT_SCHEMES

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
