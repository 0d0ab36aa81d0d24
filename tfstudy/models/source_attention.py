"""Attention over the source for decoders that are recurrent or convolutional."""

import math
from collections.abc import Callable
from typing import Literal, NamedTuple

from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from tfstudy.models.attention import Weights
from tfstudy.models.checkpointing import ALL, in_chunks
from tfstudy.models.tokens import Tokens

Score = Literal["multiplicative", "additive", "none"]
SCORES = "Luong's general score, divided by sqrt(hidden); Bahdanau's additive score; or none"


class Source(NamedTuple):
    """The encoded source of one rectangle as attention reads it. The mask is True where there is a token."""

    keys: Float[Tensor, "sources source _"]
    values: Float[Tensor, "sources source encoded"]
    mask: Bool[Tensor, "sources source"]
    target_ids: Int[Tensor, "sources source"] | None = None  # of its tokens, if the model copies


def encoded(source: Tokens, keys: Tensor, values: Tensor, copy: nn.Module | None = None) -> tuple[Source, ...]:
    """Return the source of each rectangle, of keys and values (tokens, ...), and for a `CopyOutput` what it reads."""
    ids = [] if copy is None else [copy.target_ids[source.ids]]  # type: ignore[index]
    return tuple(Source(*parts) for parts in source.rectangles(keys, values, source.mask, *ids))


def attend(
    query: Float[Tensor, "sources length _"],
    source: Source,
    score: Callable[[Tensor, Tensor], Tensor],
    weights: Weights,
    size: int = 1,
) -> Float[Tensor, "sources length encoded"]:
    """Return the source's values averaged with softmax(score(query, keys)), in chunks if there are very many scores.

    `score` returns (sources, length, source) and needs `size` elements for each score. While somebody hooks
    `weights` there is one chunk.
    """

    def compute(rows: slice) -> Tensor:
        scores, mask = score(query[rows], source.keys[rows]), source.mask[rows, None]
        found = scores.masked_fill(~mask, float("-inf")).softmax(-1)
        if weights.hooked:
            found = weights(found[:, None], mask[:, None])[:, 0]
        return found @ source.values[rows]

    rows, queries, keys = *query.shape[:2], source.keys.shape[1]
    return compute(ALL) if weights.hooked else in_chunks(compute, rows, queries * keys * size)


def dot_product(query: Float[Tensor, "sources length _"], keys: Float[Tensor, "sources source _"]) -> Tensor:
    """Return the dot products of all queries and keys of each source: (sources, length, source)."""
    return query @ keys.transpose(1, 2)


class SourceAttention(nn.Module):
    """Attention over the source: values averaged with the softmax of a score. With kind `none`, contexts are empty."""

    def __init__(self, kind: Score, hidden: int, encoded: int) -> None:
        super().__init__()
        self.kind, self.hidden, self.weights = kind, hidden, Weights()
        self.width = 0 if kind == "none" else encoded
        if kind != "none":
            self.key = nn.Linear(encoded, hidden, bias=False)
            nn.init.xavier_uniform_(self.key.weight)
        if kind == "additive":
            self.query = nn.Linear(hidden, hidden)
            self.score = nn.Linear(hidden, 1, bias=False)
            for linear in (self.query, self.score):
                nn.init.xavier_uniform_(linear.weight)

    def project(self, encoded: Float[Tensor, "tokens encoded"]) -> Float[Tensor, "tokens keys"]:
        """Compute the keys: the part of the score that does not depend on the query."""
        projected: Tensor = encoded.new_zeros(len(encoded), 0) if self.kind == "none" else self.key(encoded)
        return projected

    def forward(
        self, query: Float[Tensor, "sources length hidden"], source: Source
    ) -> Float[Tensor, "sources length width"]:
        """Return the contexts."""
        if self.kind == "none":
            return query[..., :0]
        if self.kind == "additive":
            return attend(self.query(query), source, self._additive, self.weights, self.hidden)
        return attend(query, source, self._product, self.weights)

    def _additive(self, query: Tensor, keys: Tensor) -> Tensor:
        scores: Tensor = self.score((query[:, :, None] + keys[:, None]).tanh_())[..., 0]
        return scores

    def _product(self, query: Tensor, keys: Tensor) -> Tensor:
        return dot_product(query, keys) / math.sqrt(self.hidden)
