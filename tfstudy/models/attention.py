"""Multi-head attention, what it sees, and the cache of keys and values that generation appends to."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention

from tfstudy.models.checkpointing import ALL, in_chunks
from tfstudy.models.dropout import Dropout
from tfstudy.models.positions import Places, Setup, acts_on_attention, on_attention
from tfstudy.models.tokens import Shapes, Tokens, flat, per_source, rectangles

SPARE = 16  # least number of tokens that a buffer has room for when it is allocated


class KeyValue(NamedTuple):
    """Projected keys and values of the tokens of one rectangle."""

    keys: Float[Tensor, "rows heads length head_dim"]
    values: Float[Tensor, "rows heads length head_dim"]


class Sight(NamedTuple):
    """What the queries of attention see, the same in all layers: one mask and one pair of positions per rectangle."""

    shapes: Shapes  # (rows, queries); to attend to a source, the hypotheses of a beam are one longer row
    masks: Sequence[Bool[Tensor, "_ 1 _ _"] | None]  # (rows, 1, queries or 1, keys), True = visible
    places: Sequence[Places | None]  # None if the position scheme does not depend on them
    kind: str = "encoder"  # or decoder, cross, prefix, for who reads the weights
    causal: bool = False  # the last query is at the last key, and no query sees a later one: `visible` makes the mask

    @classmethod
    def within(cls, tokens: Tokens, scheme: str = "none") -> "Sight":
        """Tokens see each other in both directions (encoder)."""
        masks = [mask[:, None, None] for (mask,) in tokens.rectangles(tokens.mask)]
        return cls(tokens.shapes, masks, places(tokens, scheme))

    @classmethod
    def back(cls, tokens: Tokens, scheme: str) -> "Sight":
        """Tokens see themselves and all tokens before them (decoder), those of a cache included.

        Padding of the target is not masked: it comes after all tokens that are scored. A window would act in `visible`
        and `causal_mask`, and hide keys from a single query too.
        """
        return cls(tokens.shapes, [None] * len(tokens.shapes), places(tokens, scheme), "decoder", True)

    @classmethod
    def across(cls, target: Tokens, source: Tokens) -> "Sight":
        """Tokens of the target see all tokens of their source (cross-attention)."""
        shapes = per_source(target.shapes, [rows for rows, _ in source.shapes])
        masks = [mask[:, None, None] for (mask,) in source.rectangles(source.mask)]
        return cls(shapes, masks, [None] * len(shapes), "cross")

    def visible(
        self, mask: Tensor | None, queries: int, keys: int, device: torch.device, fused: bool
    ) -> tuple[Tensor | None, bool]:
        """Return the mask of a rectangle, of that in `masks`, and whether a fused kernel is to add the causal one."""
        past = keys - queries
        if not self.causal or queries == 1:
            return mask, False  # a single query is the last token: it sees all keys
        if fused and not past:
            return mask, True  # the kernel's causal mask begins at the first key, so only without a past is it ours
        return causal_mask(queries, keys, device), False


def places(tokens: Tokens, scheme: str) -> Sequence[Places | None]:
    """Return the positions of new queries and of all keys so far, for each rectangle; None if the scheme has none."""
    if not acts_on_attention(scheme):
        return [None] * len(tokens.shapes)
    found = []
    for (_, length), at in zip(tokens.shapes, tokens.so_far, strict=True):
        first, end = (0, tokens.limit) if tokens.limit else (tokens.start, tokens.start + length)
        found.append(Places(at[:, tokens.start :], at, first - (tokens.limit or at.shape[1]) + 1, end - 1))
    return found


class Weights(nn.Identity):
    """Attention weights (rows, heads, queries, keys) pass through here unchanged, before dropout, where one hooks it.

    Attention is computed explicitly while there is a hook (`register_forward_hook`), and otherwise by a fused kernel
    that has no weights. A hook also gets the mask (True or above -inf where a key is visible; None: everywhere) and the
    kind of attention.
    """

    def forward(self, weights: Tensor, mask: Tensor | None = None, kind: str = "cross") -> Tensor:
        return weights

    @property
    def hooked(self) -> bool:
        """Whether somebody reads or replaces the weights."""
        return bool(self._forward_hooks or self._forward_pre_hooks)


class MultiHeadAttention(nn.Module):
    """Multi-head attention softmax(Q K^T / sqrt(dim / heads)) V (Vaswani et al. 2017, section 3.2).

    `scheme` is the name of a position scheme; of those that act on embeddings, attention knows nothing. `causal` tells
    the scheme that no key is after its query, and masks nothing: the mask is in `Sight`.
    """

    def __init__(self, dim: int, heads: int, dropout: float = 0.0, scheme: str = "none", causal: bool = False) -> None:
        super().__init__()
        self.heads, self.head_dim, self.dropout = heads, dim // heads, Dropout(dropout)
        self.query = nn.Linear(dim, dim)
        self.key_value = nn.Linear(dim, 2 * dim)
        self.out = nn.Linear(dim, dim)
        # the position scheme; its name is that of its weights in checkpoints
        self.relative = on_attention(scheme, Setup(dim, heads, causal))
        self.weights = Weights()
        for weight in (self.query.weight, *self.key_value.weight.chunk(2), self.out.weight):
            nn.init.xavier_uniform_(weight)
        for layer in (self.query, self.key_value, self.out):
            nn.init.zeros_(layer.bias)

    def key_values(self, x: Float[Tensor, "tokens dim"], sight: Sight) -> tuple[KeyValue, ...]:
        """Return the keys and values of inputs that are where the queries of `sight` are, for each rectangle."""
        found = []
        parts = rectangles(sight.shapes, *self.key_value(x).chunk(2, dim=-1))
        for (keys, values), at in zip(parts, sight.places, strict=True):
            keys = self.split(keys)
            if self.relative is not None and at is not None:
                keys = self.relative.rotate(keys, at.queries)
            found.append(KeyValue(keys, self.split(values)))
        return tuple(found)

    def forward(
        self, x: Float[Tensor, "tokens dim"], sight: Sight, key_values: "Sequence[KeyValue | Cache]"
    ) -> Float[Tensor, "tokens dim"]:
        """Attend from `x` to the keys and values of each rectangle."""
        outputs = []
        queries = rectangles(sight.shapes, self.query(x))
        for (query,), key_value, mask, at in zip(queries, key_values, sight.masks, sight.places, strict=True):
            attended = self._attend(self.split(query), key_value, mask, at, sight)
            outputs.append(attended.transpose(1, 2).flatten(2))
        out: Tensor = self.out(flat(outputs))
        return out

    def split(self, x: Float[Tensor, "rows length dim"]) -> Float[Tensor, "rows heads length head_dim"]:
        """Return the part of each head."""
        return x.view(*x.shape[:2], self.heads, self.head_dim).transpose(1, 2)

    def _attend(
        self, query: Tensor, key_value: "KeyValue | Cache", mask: Tensor | None, at: Places | None, sight: Sight
    ) -> Float[Tensor, "rows heads queries head_dim"]:
        """Return the attended values of one rectangle.

        The fused kernel computes them, except where somebody reads the weights, or where dropout acts on them: the
        kernel would draw it from the global generator.
        """
        keys, values, (rows, _, length, _) = key_value.keys, key_value.values, query.shape
        explicit = self.weights.hooked or (self.training and self.dropout.probability > 0)
        fused = self.relative is None and not explicit
        mask, by_kernel = sight.visible(mask, length, keys.shape[2], query.device, fused)
        if fused:
            return scaled_dot_product_attention(query, keys, values, attn_mask=mask, is_causal=by_kernel)

        def compute(rows: slice) -> Tensor:
            visible = mask if mask is None or len(mask) == 1 else mask[rows]
            q, visible = self._positioned(query[rows], keys[rows], visible, at and at.of_rows(rows))
            if not explicit:
                return scaled_dot_product_attention(q, keys[rows], values[rows], attn_mask=visible)
            scores = q @ keys[rows].transpose(-1, -2) / math.sqrt(self.head_dim)
            if visible is not None:  # True where a key is visible, or added to the scores
                hides = visible.dtype == torch.bool
                scores = scores.masked_fill(~visible, float("-inf")) if hides else scores + visible
            attended: Tensor = self.dropout(self.weights(scores.softmax(-1), visible, sight.kind)) @ values[rows]
            return attended

        if self.weights.hooked:  # whoever reads the weights gets those of all rows at once
            return compute(ALL)
        scored = 1 if self.relative is None else 2  # a bias is as large as the scores
        return in_chunks(compute, rows, length * self.heads * keys.shape[2] * scored)

    def _positioned(
        self, query: Tensor, keys: Tensor, mask: Tensor | None, at: Places | None
    ) -> tuple[Tensor, Tensor | None]:
        """Return the queries and the mask as the position scheme changes them: rotated, and with its bias."""
        if self.relative is None or at is None:
            return query, mask
        bias = self.relative.bias(query, keys, at)
        query = self.relative.rotate_queries(query, at.queries)
        if bias is None:
            return query, mask
        bias = bias / math.sqrt(self.head_dim) if self.relative.scaled else bias
        return query, bias if mask is None else bias.masked_fill(~mask, float("-inf"))


def causal_mask(queries: int, keys: int, device: torch.device) -> Bool[Tensor, "1 1 {queries} {keys}"]:
    """Return which keys are not after the queries, which are at the last keys."""
    return torch.ones(queries, keys, dtype=torch.bool, device=device).tril(keys - queries)[None, None]


class Cache:
    """The keys and values of the tokens decoded so far: a value, as all parts of a state are.

    Without gradients they are the beginning of a buffer with spare room, so that appending copies only what is new. Two
    caches with the same buffer may be of different length; only the first to append behind a token may use the room.
    """

    def __init__(self, keys: Tensor, values: Tensor, buffer: "Buffer | None" = None) -> None:
        self.keys, self.values, self.buffer = keys, values, buffer  # (rows, heads, length, head_dim)

    @property
    def length(self) -> int:
        """The number of tokens."""
        return self.keys.shape[2]

    def append(self, new: KeyValue) -> "Cache":
        """Return the cache with the keys and values of the tokens that follow."""
        if torch.is_grad_enabled():
            return Cache(torch.cat([self.keys, new.keys], 2), torch.cat([self.values, new.values], 2))
        end, buffer = self.length + new.keys.shape[2], self.buffer
        if buffer is None or buffer.used != self.length or buffer.room < end:
            buffer = Buffer(self, len(self.keys), end)
            buffer.write(0, self)
        buffer.write(self.length, new)
        return buffer.first(end)

    def select_rows(self, rows: Int[Tensor, " rows"]) -> "Cache":
        """Return the cache of these rows of the batch, in this order."""
        if torch.is_grad_enabled():
            return Cache(self.keys.index_select(0, rows), self.values.index_select(0, rows))
        buffer = Buffer(self, len(rows), self.length + 1)
        chosen = buffer.first(self.length)
        torch.index_select(self.keys, 0, rows, out=chosen.keys)
        torch.index_select(self.values, 0, rows, out=chosen.values)
        buffer.used = self.length
        return chosen


def append(past: Sequence[Cache], new: Sequence[KeyValue]) -> tuple[Cache, ...]:
    """Return the cache of each rectangle with the keys and values that follow; without a past, they are the first."""
    if not past:
        return tuple(Cache(*own) for own in new)
    return tuple(cache.append(own) for cache, own in zip(past, new, strict=True))


class Buffer:
    """Memory for the keys and values of at least `length` tokens; `used` counts those written.

    The memory of a buffer to which no cache refers is used for the next one that succeeds it. A beam selects rows at
    every token, and new memory of that size would come from the operating system each time, at the cost of the copies.
    """

    def __init__(self, like: Cache, rows: int, length: int) -> None:
        self.used = 0
        # what no cache refers to any more, at most one; a buffer and its successors share the list
        self.free: list[KeyValue] = [] if like.buffer is None else like.buffer.free
        parts = self.free.pop() if self.free else None
        if parts is None or len(parts.keys) < rows or parts.keys.shape[2] < length:
            _, heads, _, head_dim = like.keys.shape
            shape = rows, heads, length + max(SPARE, length // 2), head_dim
            parts = KeyValue(like.keys.new_empty(shape), like.values.new_empty(shape))
        self.whole, self.parts = parts, KeyValue(parts.keys[:rows], parts.values[:rows])
        self.room = parts.keys.shape[2]

    def __del__(self) -> None:
        if hasattr(self, "whole"):  # else the allocation failed
            self.free[:] = [self.whole]

    def write(self, start: int, new: KeyValue | Cache) -> None:
        """Write the keys and values of tokens from position `start` on."""
        self.used = start + new.keys.shape[2]
        self.parts.keys[:, :, start : self.used] = new.keys
        self.parts.values[:, :, start : self.used] = new.values

    def first(self, length: int) -> Cache:
        """Return the keys and values of the first tokens, as views."""
        return Cache(self.parts.keys[:, :, :length], self.parts.values[:, :, :length], self)
