"""The interface of a position scheme, and the positions that attention passes to it."""

from collections.abc import Iterator
from typing import ClassVar, Literal, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn


class Places(NamedTuple):
    """The positions of the queries and keys of one group, and bounds of the distance query - key.

    `rows` is 1 if all rows of the group have the same positions.
    """

    queries: Int[Tensor, "rows queries"]
    keys: Int[Tensor, "rows keys"]
    lowest: int
    highest: int

    @property
    def distances(self) -> Int[Tensor, "rows queries keys"]:
        """The position of each query minus that of each key."""
        return self.queries[:, :, None] - self.keys[:, None]

    def part(self, rows: slice, queries: slice) -> "Places":
        """Return the positions of some rows and queries, with the same bounds."""
        keys = self.keys if len(self.keys) == 1 else self.keys[rows]
        of_queries = self.queries if len(self.queries) == 1 else self.queries[rows]
        return Places(of_queries[:, queries], keys, self.lowest, self.highest)


class Setup(NamedTuple):
    """What position schemes are built from; each takes what it needs."""

    dim: int
    heads: int = 1
    causal: bool = False  # no key is after its query
    positions: int = 512  # learned positions are below this number
    std: float = 1.0  # standard deviation of learned positions at the start


def consecutive(keys: int, queries: int, device: torch.device) -> Places:
    """Return the places of keys at 0, 1, ..., of which the last `queries` are the queries too."""
    numbers = torch.arange(keys, device=device)[None]
    return Places(numbers[:, keys - queries :], numbers, 1 - queries, keys - 1)


class PositionScheme(nn.Module):
    """How a model knows where a token is. By default a scheme does nothing; each scheme overrides what it needs.

    A scheme either acts on embeddings (`embed`) or on attention (the other methods, where each layer has its own).
    """

    acts_on: ClassVar[Literal["embeddings", "attention", "nothing"]] = "nothing"
    scaled: ClassVar[bool] = True  # whether the bias is scaled together with the products of queries and keys

    def __init__(self, setup: Setup) -> None:
        super().__init__()

    def embed(self, x: Float[Tensor, "*shape dim"], positions: Int[Tensor, "*shape"], end: int | None = None) -> Tensor:
        """Return token embeddings with the positions added. With `end`, all positions must be below it."""
        return x

    def rotate_queries(self, queries: Float[Tensor, "batch heads queries head_dim"], positions: Tensor) -> Tensor:
        """Return queries for the products with keys. `positions`: (1 or batch, queries)."""
        return queries

    def rotate_keys(self, keys: Float[Tensor, "batch heads keys head_dim"], positions: Tensor) -> Tensor:
        """Return keys for the products with queries, as a cache holds them. `positions`: (1 or batch, keys)."""
        return keys

    def bias(
        self,
        queries: Float[Tensor, "batch heads queries head_dim"],
        keys: Float[Tensor, "batch heads keys head_dim"],
        places: Places,
    ) -> Float[Tensor, "rows heads queries keys"] | None:
        """Return what to add to the scores q k, with rows 1 or batch; None for nothing.

        It is added before the scores are scaled, or afterwards if `scaled` is False. The queries are those before
        `rotate_queries`, and the keys those after `rotate_keys`.
        """
        return None

    def keep_heads(self, heads: list[int]) -> None:
        """Remove the parameters and slopes of all other heads, if the scheme has any."""

    def parameters_without_decay(self) -> Iterator[nn.Parameter]:
        """Iterate over the parameters, besides vectors, that weight decay leaves unchanged."""
        yield from ()


def by_index(
    values: Float[Tensor, "batch heads queries values"], index: Int[Tensor, "rows #heads queries keys"]
) -> Float[Tensor, "batch heads queries keys"]:
    """Return the value of each query that the index selects for each key, with rows 1 or batch."""
    chosen: Tensor = values.gather(-1, index.expand(*values.shape[:3], index.shape[-1]))
    return chosen
