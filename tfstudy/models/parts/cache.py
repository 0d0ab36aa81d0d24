"""Keys and values that attention reads, and a cache of them that grows with the target."""

from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

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
