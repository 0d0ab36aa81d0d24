"""Multi-head attention, and the cache of keys and values that it reads: a value, and not a state of the layer."""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention

from tfstudy.models.parts import positions
from tfstudy.models.parts.layers import Dropout, in_chunks, norm_layer
from tfstudy.models.parts.observing import Site, is_recorded, record, recorded_attention
from tfstudy.models.parts.positions.base import Places, consecutive
from tfstudy.models.parts.tokens import Shapes, flatten_groups, split_groups

SPARE = 16  # least number of tokens that a buffer has room for when it is allocated


class KeyValue(NamedTuple):
    """Projected keys and values of some tokens."""

    keys: Float[Tensor, "batch heads length head_dim"]
    values: Float[Tensor, "batch heads length head_dim"]


class Cache:
    """The keys and values of the tokens decoded so far: a value, as all parts of a state are.

    Without gradients they are the beginning of a buffer with spare room, so that appending copies only what is new. Two
    caches with the same buffer may be of different length; only the first to append behind a token may use the room.
    """

    def __init__(self, seen: KeyValue, buffer: "Buffer | None" = None) -> None:
        self.seen, self.buffer = seen, buffer

    @property
    def length(self) -> int:
        """The number of tokens."""
        return self.seen.keys.shape[2]

    def append(self, new: KeyValue) -> "Cache":
        """Return the cache with the keys and values of the tokens that follow."""
        if self.length == 0:
            return Cache(new)
        if torch.is_grad_enabled():
            return Cache(KeyValue(*(torch.cat(both, 2) for both in zip(self.seen, new, strict=True))))
        end = self.length + new.keys.shape[2]
        buffer = self.buffer
        if buffer is None or buffer.used != self.length or buffer.room < end:
            buffer = Buffer(self.seen, len(self.seen.keys), end, self.buffer)
            buffer.write(0, self.seen)
        buffer.write(self.length, new)
        return Cache(buffer.first(end), buffer)

    def select_rows(self, rows: Int[Tensor, " rows"]) -> "Cache":
        """Return the cache of these rows of the batch, in this order."""
        if torch.is_grad_enabled() or self.length == 0:
            return Cache(KeyValue(*(part.index_select(0, rows) for part in self.seen)))
        buffer = Buffer(self.seen, len(rows), self.length + 1, self.buffer)
        for out, part in zip(buffer.first(self.length), self.seen, strict=True):
            torch.index_select(part, 0, rows, out=out)
        buffer.used = self.length
        return Cache(buffer.first(self.length), buffer)


class Buffer:
    """Memory for the keys and values of at least `length` tokens; `used` counts those written.

    The memory of a buffer to which no cache refers is used for the next one that succeeds it. A beam selects rows at
    every token, and new memory of that size would come from the operating system each time, at the cost of the copies.
    """

    def __init__(self, like: KeyValue, batch: int, length: int, before: "Buffer | None" = None) -> None:
        self.used = 0
        self.free: list[KeyValue] = [] if before is None else before.free
        parts = self.free.pop() if self.free else None
        if parts is None or len(parts.keys) < batch or parts.keys.shape[2] < length:
            room = length + max(SPARE, length // 2)
            parts = KeyValue(*(part.new_empty(batch, part.shape[1], room, part.shape[3]) for part in like))
        self.whole, self.parts = parts, KeyValue(*(part[:batch] for part in parts))
        self.room = parts.keys.shape[2]

    def __del__(self) -> None:
        if hasattr(self, "whole"):  # else the allocation failed
            self.free[:] = [self.whole]

    def write(self, start: int, new: KeyValue) -> None:
        """Write the keys and values of tokens from position `start` on."""
        self.used = start + new.keys.shape[2]
        for part, written in zip(self.parts, new, strict=True):
            part[:, :, start : self.used] = written

    def first(self, length: int) -> KeyValue:
        """Return the keys and values of the first tokens, as views."""
        return KeyValue(*(part[:, :, :length] for part in self.parts))


class Scores(NamedTuple):
    """How attention makes scores of queries and keys. With a norm, those of each head are normalised.

    The norm has no bias and is the same for all heads (Dehghani et al. 2023, arXiv 2302.05442, section 2, after Henry
    et al. 2020, arXiv 2010.04245). While its gains are 1, the scores are within +-sqrt(head_dim).
    """

    scaled: bool = True
    temperature: float = 1.0
    norm: str = "none"

    def divisor(self, head_dim: int) -> float:
        """Return what the products q k are divided by."""
        return (math.sqrt(head_dim) if self.scaled else 1.0) * self.temperature

    def norm_layer(self, head_dim: int) -> nn.Module:
        """Return the normalisation of the queries or of the keys."""
        return nn.Identity() if self.norm == "none" else norm_layer(self.norm, head_dim, bias=False)


SCALED = Scores()


class MultiHeadAttention(nn.Module):
    """Multi-head attention softmax(Q K^T / sqrt(dim / heads)) V (Vaswani et al. 2017, section 3.2).

    `scheme` is the name of a position scheme; of those that act on embeddings, attention knows nothing. It may depend
    on whether attention is `causal`. With a window w > 0, a causal query sees its own position and the w before it.
    """

    def __init__(
        self,
        dim: int,
        heads: int,
        dropout: float = 0.0,
        scheme: str = "none",
        causal: bool = False,
        scores: Scores = SCALED,
        window: int = 0,
    ) -> None:
        super().__init__()
        self.heads, self.head_dim, self.dropout, self.window = heads, dim // heads, Dropout(dropout), window
        self.divisor = scores.divisor(dim // heads)
        self.scale = None if scores.scaled and scores.temperature == 1 else 1 / self.divisor
        self.query = nn.Linear(dim, dim)
        self.key_value = nn.Linear(dim, 2 * dim)
        self.out = nn.Linear(dim, dim)
        self.relative = positions.relative(scheme, positions.Setup(dim, heads, causal))
        self.query_norm, self.key_norm = (scores.norm_layer(dim // heads) for _ in range(2))
        for weight in (self.query.weight, *self.key_value.weight.chunk(2), self.out.weight):
            nn.init.xavier_uniform_(weight)
        for layer in (self.query, self.key_value, self.out):
            nn.init.zeros_(layer.bias)

    def project(
        self, x: Float[Tensor, "positions dim"], shapes: Shapes, places: Sequence[Places | None] | None = None
    ) -> list[KeyValue]:
        """Project inputs to keys and values, one `KeyValue` for each group.

        The inputs are where the queries of `places` are; without places they are at 0, 1, ...
        """
        keys, values = (split_groups(half, shapes) for half in self.key_value(x).chunk(2, dim=-1))
        projected = [KeyValue(self.key_norm(self._split(k)), self._split(v)) for k, v in zip(keys, values, strict=True)]
        if self.relative is None:
            return projected
        rotated = []
        for new, place in zip(projected, places or [None] * len(shapes), strict=True):
            length = new.keys.shape[2]
            at = (place or consecutive(length, length, x.device)).queries
            rotated.append(new._replace(keys=self.relative.rotate_keys(new.keys, at)))
        return rotated

    def forward(
        self,
        x: Float[Tensor, "positions dim"],
        shapes: Shapes,
        seen: Sequence[KeyValue],
        masks: Sequence[Tensor | None] | None = None,
        causal: bool = False,
        site: Site | None = None,
        places: Sequence[Places | None] | None = None,
    ) -> Float[Tensor, "positions dim"]:
        """Attend from `x` to the keys and values `seen`, group by group.

        A mask (batch, 1 or heads, 1 or query, keys) is True where a key is visible. With `causal` no masks are allowed:
        the last query of a group is at the position of the last key, and no query sees a later key. The weights can be
        recorded at `site`. Without `places`, the keys are at 0, 1, ..., and the queries are the last of them.
        """
        if causal and masks is not None:
            raise ValueError("masks must be None if causal is True")
        nothing = [None] * len(shapes)
        groups = zip(split_groups(self.query(x), shapes), seen, masks or nothing, places or nothing, strict=True)
        attended = [
            self._attend(self.query_norm(self._split(query)), key_value, mask, causal, site, place)
            for query, key_value, mask, place in groups
        ]
        projected: Tensor = self.out(flatten_groups([heads.transpose(1, 2).flatten(2) for heads in attended]))
        return projected

    def empty(self, x: Tensor, batch: int) -> Cache:
        """Return what `attend_causally` takes before the first token, of the type of `x`."""
        empty = x.new_zeros(batch, self.heads, 0, self.head_dim)
        return Cache(KeyValue(empty, empty))

    def attend_causally(
        self,
        x: Float[Tensor, "positions dim"],
        shapes: Shapes,
        past: Sequence[Cache],
        site: Site | None = None,
        places: Sequence[Places | None] | None = None,
        masks: Sequence[Tensor] | None = None,
    ) -> tuple[Float[Tensor, "positions dim"], list[Cache]]:
        """Attend from `x` to the past of each group and to `x` so far; return that, and the past with `x`.

        Masks, as in `forward`, say what is visible if the past has padding.
        """
        new = self.project(x, shapes, places)
        past = [before.append(now) for before, now in zip(past, new, strict=True)]
        seen = [cache.seen for cache in past]
        return self(x, shapes, seen, masks, causal=masks is None, site=site, places=places), past

    def with_weights(
        self, *arguments: Any, site: Site, **named: Any
    ) -> tuple[Float[Tensor, "positions dim"], list[Float[Tensor, "batch queries keys"]]]:
        """Return what `forward` does, and the weights of each group, before dropout and averaged over the heads."""
        with recorded_attention() as recorded:
            attended: Tensor = self(*arguments, site=site, **named)
        for call in recorded:
            record(*call)  # for who listens outside
        return attended, [call.weights.mean(1) for call in recorded]

    def _split(self, x: Tensor) -> Tensor:
        return x.view(*x.shape[:2], self.heads, self.head_dim).transpose(1, 2)

    def _attend(
        self,
        query: Tensor,
        seen: KeyValue,
        mask: Tensor | None,
        causal: bool,
        site: Site | None,
        places: Places | None,
    ) -> Tensor:
        """Return one group's attended values (batch, heads, query, head_dim)."""
        batch, _, length, _ = query.shape
        keys = seen.keys.shape[2]
        first = keys - length  # the key at which the first query is, if attention is causal
        causal = causal and (length > 1 or 0 < self.window < keys - 1)  # else a single query sees all keys
        if self.relative is not None and places is None:
            places = consecutive(keys, length, query.device)
        if is_recorded(site):
            mask = visible(range(first, keys), keys, query.device, self.window) if causal else mask
            return self._explicit(query, seen, mask, places, site)
        if self.relative is None and not self._drops:
            if causal and (first or self.window):
                mask, causal = visible(range(first, keys), keys, query.device, self.window), False
            return scaled_dot_product_attention(
                query, seen.keys, seen.values, attn_mask=mask, is_causal=causal, scale=self.scale
            )

        def compute(rows: slice, queries: slice) -> Tensor:
            of_queries = range(first, keys)[queries]
            part = visible(of_queries, keys, query.device, self.window) if causal else mask_part(mask, rows, queries)
            key_value = KeyValue(seen.keys[rows], seen.values[rows])
            return self._explicit(query[rows, :, queries], key_value, part, places and places.part(rows, queries))

        return in_chunks(compute, batch, length, self.heads * keys * (1 if self.relative is None else 2))

    @property
    def _drops(self) -> bool:
        return self.training and self.dropout.probability > 0

    def _explicit(
        self, query: Tensor, seen: KeyValue, mask: Tensor | None, places: Places | None, site: Site | None = None
    ) -> Tensor:
        """Attend with a position scheme, with dropout on the weights, or recorded."""
        if self.relative is not None and places is not None:
            bias = self.relative.bias(query, seen.keys, places)
            query = self.relative.rotate_queries(query, places.queries)
            if bias is not None:
                bias = bias / self.divisor if self.relative.scaled else bias
                mask = bias if mask is None else bias.masked_fill(~mask, float("-inf"))
        if not (self._drops or is_recorded(site)):  # with dropout, the kernel would draw from the global generator
            return scaled_dot_product_attention(query, seen.keys, seen.values, attn_mask=mask, scale=self.scale)
        scores = query @ seen.keys.transpose(-1, -2) / self.divisor
        if mask is not None:
            scores = scores.masked_fill(~mask, float("-inf")) if mask.dtype == torch.bool else scores + mask
        weights = scores.softmax(-1)
        record(site, weights, mask)
        attended: Tensor = self.dropout(weights) @ seen.values
        return attended


def visible(positions: range, keys: int, device: torch.device, window: int = 0) -> Bool[Tensor, "queries keys"]:
    """Return which keys, at positions 0 to `keys` - 1, are not after the queries at `positions`.

    With a window w > 0, keys more than w positions before a query are not visible.
    """
    seen = torch.ones(len(positions), keys, dtype=torch.bool, device=device).tril(positions.start)
    return seen.triu(positions.start - window) if window else seen


def windowed(mask: Bool[Tensor, "batch keys"], window: int) -> Bool[Tensor, "batch 1 queries keys"]:
    """Return what attention may see of keys that are the queries too: at most `window` positions to each side, or all.

    A query at which nothing is visible is itself padding; it sees all tokens, as it has to see something.
    """
    tokens = mask[:, None, None]
    if not window:
        return tokens
    near = torch.ones(mask.shape[1], mask.shape[1], dtype=torch.bool, device=mask.device).tril(window).triu(-window)
    seen = tokens & near
    return torch.where(seen.any(-1, keepdim=True), seen, tokens)


def mask_part(mask: Tensor | None, rows: slice, queries: slice) -> Tensor | None:
    """Return a mask (batch, 1 or heads, 1 or query, keys) for some rows and queries."""
    if mask is None:
        return None
    return mask[rows] if mask.shape[2] == 1 else mask[rows, :, queries]
