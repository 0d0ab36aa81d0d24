"""Rows of many lengths without much padding: rectangles of rows of like length, laid out as one list of positions.

What acts on each token by itself is one call on all positions; only what looks at other tokens takes the rectangles.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

Shapes = Sequence[tuple[int, int]]  # of each rectangle, its rows and their padded length


class Block(NamedTuple):
    """Rows of like length, as teacher forcing takes them."""

    source: Tensor  # (rows, source)
    source_mask: Tensor  # (rows, source), True where there is a token
    tokens: Tensor  # (rows, length), which start with BOS


def shapes(blocks: Sequence[Tensor]) -> Shapes:
    """Rows and length of each."""
    return [(block.shape[0], block.shape[1]) for block in blocks]


def joined(blocks: Sequence[Tensor]) -> Tensor:
    """(rows, length, ...) of each as the (positions, ...) of all; a view if there is one only."""
    flat = [block.flatten(0, 1) for block in blocks]
    return flat[0] if len(flat) == 1 else torch.cat(flat)


def parted(x: Tensor, places: Shapes) -> list[Tensor]:
    """(positions, ...) of all as the (rows, length, ...) of each, which are views."""
    pieces = torch.split(x, [rows * length for rows, length in places])
    return [piece.view(*place, *x.shape[1:]) for piece, place in zip(pieces, places, strict=True)]


def positions(blocks: Sequence[Tensor], start: int = 0) -> Tensor:
    """The place of every token in its row, counted from `start`: (positions,)."""
    device = blocks[0].device
    return joined([torch.arange(start, start + n, device=device).expand(rows, n) for rows, n in shapes(blocks)])


class Blockwise(ABC):
    """For a `Model` that computes blocks together: it defines the two abstract methods, and gets those of `Model`.

    It stands before `Model` among the bases. A state is that of one block, with the block's rows first.
    """

    @abstractmethod
    def encode_blocks(self, sources: Sequence[Tensor], masks: Sequence[Tensor]) -> list[Any]:
        """The state of each block of sources (rows, length); a mask is True where there is a token."""

    @abstractmethod
    def decode_blocks(self, tokens: Sequence[Tensor], states: Sequence[Any]) -> tuple[Tensor, list[Any]]:
        """The logits (positions, vocab) after all tokens (rows, length) of all blocks, and the state of each."""

    def encode(self, source: Int[Tensor, "batch source"], source_mask: Bool[Tensor, "batch source"]) -> Any:
        """The state from which decoding starts."""
        return self.encode_blocks([source], [source_mask])[0]

    def decode(
        self, tokens: Int[Tensor, "batch length"], state: Any
    ) -> tuple[Float[Tensor, "batch length target_vocab"], Any]:
        """Logits of the token after each of `tokens`, and the new state."""
        logits, [state] = self.decode_blocks([tokens], [state])
        return logits.view(*tokens.shape, logits.shape[1]), state

    def forward_blocks(self, blocks: Sequence[Block]) -> Float[Tensor, "positions target_vocab"]:
        """Teacher forcing of several blocks in one pass."""
        sources, masks, tokens = zip(*blocks, strict=True)
        return self.decode_blocks(tokens, self.encode_blocks(sources, masks))[0]
