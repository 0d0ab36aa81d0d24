"""Attention over the source for decoders that are recurrent or convolutional."""

import math
from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from tfstudy.models.attention import Weights
from tfstudy.models.checkpointing import ALL, in_chunks
from tfstudy.models.copying import CopyOutput, copied_ids
from tfstudy.models.tokens import Tokens

Score = Literal["multiplicative", "general", "dot", "additive", "none"]
SCORES = (
    "Luong's general score, divided by sqrt(hidden) or not; the dot product without weights; Bahdanau's additive "
    "score; or none"
)


class Source(NamedTuple):
    """The encoded source of one rectangle as attention reads it. The mask is True where there is a token."""

    keys: Float[Tensor, "sources source _"]
    values: Float[Tensor, "sources source encoded"]
    mask: Bool[Tensor, "sources source"]
    copied: Int[Tensor, "sources source"] | None = None  # those of `copied_ids`, if the model copies


class Attended(NamedTuple):
    """The contexts, and the weights if the model copies from the source; otherwise these are empty."""

    contexts: Float[Tensor, "sources length encoded"]
    weights: Float[Tensor, "sources length _"]


def encoded(source: Tokens, keys: Tensor, values: Tensor, copy: CopyOutput | None) -> tuple[Source, ...]:
    """Return the source of each rectangle, of keys and values (tokens, ...)."""
    copied = copied_ids(copy, source) or [None] * len(source.shapes)
    parts = zip(source.rectangles(keys, values, source.mask), copied, strict=True)
    return tuple(Source(keys, values, mask, ids) for (keys, values, mask), ids in parts)


def copied_of(sources: Sequence[Source]) -> list[Tensor]:
    """Return what `CopyOutput.copied` takes besides the weights."""
    return [source.copied for source in sources if source.copied is not None]


def attend(
    query: Float[Tensor, "sources length _"],
    source: Source,
    score: Callable[[Tensor, Tensor], Tensor],
    weights: Weights,
    size: int = 1,
    calls: int = 1,
) -> Attended:
    """Return the source's values averaged with softmax(score(query, keys)), in chunks if there are very many scores.

    `score` returns (sources, length, source) and needs `size` elements for each score; for `calls`, see `in_chunks`.
    While somebody hooks `weights` there is one chunk.
    """

    def compute(rows: slice, queries: slice) -> Tensor:
        scores, mask = score(query[rows, queries], source.keys[rows]), source.mask[rows, None]
        found = scores.masked_fill(~mask, float("-inf")).softmax(-1)
        if weights.hooked:
            found = weights(found[:, None], mask[:, None])[:, 0]
        contexts = found @ source.values[rows]
        return contexts if source.copied is None else torch.cat([contexts, found], -1)

    rows, queries, keys = *query.shape[:2], source.keys.shape[1]
    found = compute(ALL, ALL) if weights.hooked else in_chunks(compute, rows, queries, keys * size, calls)
    width = source.values.shape[2]
    return Attended(found if source.copied is None else found[..., :width], found[..., width:])


def dot_product(query: Float[Tensor, "sources length _"], keys: Float[Tensor, "sources source _"]) -> Tensor:
    """Return the dot products of all queries and keys of each source: (sources, length, source)."""
    return query @ keys.transpose(1, 2)


class SourceAttention(nn.Module):
    """Attention over the source: values averaged with the softmax of a score. With kind `none`, contexts are empty."""

    def __init__(self, kind: Score, hidden: int, encoded: int) -> None:
        super().__init__()
        self.kind, self.hidden, self.weights = kind, hidden, Weights()
        self.width = 0 if kind == "none" else encoded
        if kind not in ("dot", "none"):
            self.key = nn.Linear(encoded, hidden, bias=False)
            nn.init.xavier_uniform_(self.key.weight)
        if kind == "additive":
            self.query = nn.Linear(hidden, hidden)
            self.score = nn.Linear(hidden, 1, bias=False)
            for linear in (self.query, self.score):
                nn.init.xavier_uniform_(linear.weight)

    def project(self, encoded: Float[Tensor, "tokens encoded"]) -> Float[Tensor, "tokens keys"]:
        """Compute the keys: the part of the score that does not depend on the query."""
        if self.kind == "dot":
            return encoded
        projected: Tensor = encoded.new_zeros(len(encoded), 0) if self.kind == "none" else self.key(encoded)
        return projected

    def forward(self, query: Float[Tensor, "sources length hidden"], source: Source, calls: int = 1) -> Attended:
        """Return the contexts (sources, length, width). `calls` is the number of such calls for one target."""
        if self.kind == "none":
            return Attended(query[..., :0], query[..., :0])
        if self.kind == "additive":
            return attend(self.query(query), source, self._additive, self.weights, self.hidden, calls)
        return attend(query, source, self._product, self.weights, 1, calls)

    def _additive(self, query: Tensor, keys: Tensor) -> Tensor:
        scores: Tensor = self.score((query[:, :, None] + keys[:, None]).tanh_())[..., 0]
        return scores

    def _product(self, query: Tensor, keys: Tensor) -> Tensor:
        scores = dot_product(query, keys)
        return scores / math.sqrt(self.hidden) if self.kind == "multiplicative" else scores
