"""Associative recall: look up the values of keys (multi-query associative recall, Arora et al. 2023, arXiv 2312.04927).

    k3 v8 k1 v2 k7 v8 ? k7 k3 k1  ->  v8 v8 v2      (multi_query)
    k3 v8 k1 v2 k7 v8 ? k1        ->  v2            (single_query)

The source consists of key-value pairs and then of queries; the target contains the value of each query, in order. The
keys of a source are distinct and its values are drawn independently. Nothing about a value follows from the train data:
a model has to read the pairs of the source. Attention can look a key up at any distance, while a recurrence has to keep
all pairs in a state of constant size until the queries. `length` is the number of pairs.

Two things differ from the paper. There a decoder-only model answers within the sequence, here an encoder reads the
source and a decoder writes the values. There the gaps between a pair and its query follow a power law; here every order
of the queries is equally likely.
"""

from random import Random
from typing import ClassVar

from pydantic import Field

from tfstudy.tasks.generated import Drawn, Generated, GeneratedConfig, Lengths


class Recall(Generated):
    """Map key-value pairs and queries to the values of the queries; examples are at the top of this file."""

    schemes: ClassVar = {
        "multi_query": "the values of all keys, in random order",
        "single_query": "the value of one key",
    }
    steps = 6000

    class Config(GeneratedConfig):
        split: str = "multi_query"
        train_length: Lengths = "1-8"
        test_length: Lengths = "9-12,13-16"
        keys: int = Field(32, ge=2, le=10000, description="number of different keys")
        values: int = Field(32, ge=2, le=10000, description="number of different values")

    config: Config

    def lengths(self) -> range:
        """Return the numbers of pairs: each has a key of its own (`data.keys`)."""
        return range(1, self.config.keys + 1)

    def draw(self, random: Random, length: int, split: str) -> Drawn:
        keys = [f"k{n}" for n in random.sample(range(self.config.keys), length)]
        values = [f"v{random.randrange(self.config.values)}" for _ in keys]
        queries = random.sample(range(length), 1 if self.config.split == "single_query" else length)
        pairs = [token for pair in zip(keys, values, strict=True) for token in pair]
        source = (*pairs, "?", *(keys[i] for i in queries))
        tags = {"distance": length - queries[0]} if self.config.split == "single_query" else {}
        return Drawn(source, tuple(values[i] for i in queries), tags)
