"""The interface of a position scheme, and the positions that attention passes to it."""

from collections.abc import Iterator
from typing import Any, ClassVar, Literal, NamedTuple

from jaxtyping import Float, Int
from torch import Tensor, nn


class Places(NamedTuple):
    """The positions of the queries and keys of one rectangle, and bounds of the distance query - key.

    `rows` is 1 if all rows have the same positions.
    """

    queries: Int[Tensor, "rows queries"]
    keys: Int[Tensor, "rows keys"]
    lowest: int
    highest: int

    @property
    def distances(self) -> Int[Tensor, "rows queries keys"]:
        """The position of each query minus that of each key."""
        return self.queries[:, :, None] - self.keys[:, None]

    def of_rows(self, rows: slice) -> "Places":
        """Return the positions of some rows, with the same bounds."""
        queries, keys = (x if len(x) == 1 else x[rows] for x in (self.queries, self.keys))
        return Places(queries, keys, self.lowest, self.highest)


Queries = Float[Tensor, "batch heads queries head_dim"]
Keys = Float[Tensor, "batch heads keys head_dim"]
Bias = Float[Tensor, "rows heads queries keys"]  # rows: 1 or batch


class Setup(NamedTuple):
    """What position schemes are built from; each takes what it needs."""

    dim: int
    heads: int = 1
    causal: bool = False  # no key is after its query
    positions: int = 512  # learned positions are below this number
    std: float = 1.0  # standard deviation of learned positions at the start


class PositionScheme(nn.Module):
    """How a model knows where a token is. By default a scheme does nothing; each scheme overrides what it needs.

    A scheme either acts on embeddings (`embed`) or on attention (the other methods, where each layer has its own).
    """

    acts_on: ClassVar[Literal["embeddings", "attention", "nothing"]] = "nothing"
    scaled: ClassVar[bool] = True  # whether the bias is scaled together with the products of queries and keys

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if cls.acts_on == "nothing" and vars(cls).keys() & {"embed", "rotate", "bias"}:
            raise TypeError(f"{cls.__name__} must say what it acts on: acts_on = 'embeddings' or 'attention'")

    def __init__(self, setup: Setup) -> None:
        super().__init__()

    def embed(self, x: Float[Tensor, "tokens dim"], at: Int[Tensor, " tokens"], end: int) -> Tensor:
        """Return token embeddings with the positions `at`, all below `end`, added."""
        return x

    def rotate(self, x: Float[Tensor, "batch heads length head_dim"], at: Int[Tensor, "rows length"]) -> Tensor:
        """Return keys, as a cache holds them, or queries for their products with each other. Rows: 1 or batch."""
        return x

    def rotate_queries(self, queries: Float[Tensor, "batch heads length head_dim"], at: Tensor) -> Tensor:
        """Return queries for the products with keys, where they differ from what `rotate` returns."""
        return self.rotate(queries, at)

    def bias(self, queries: Queries, keys: Keys, places: Places) -> Bias | None:
        """Return what to add to the scores q k; None for nothing.

        It is added before the scores are scaled, or afterwards if `scaled` is False. The queries are those before
        `rotate_queries`, and the keys those after `rotate`.
        """
        return None

    def keep_heads(self, heads: list[int]) -> None:
        """Remove the parameters and slopes of all other heads, if the scheme has any."""

    def parameters_without_decay(self) -> Iterator[nn.Parameter]:
        """Iterate over the parameters, besides vectors, that weight decay leaves unchanged."""
        yield from ()
