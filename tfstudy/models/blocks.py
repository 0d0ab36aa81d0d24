"""Rows of many lengths without much padding: rectangles of rows of like length, laid out as one list of positions.

What acts on each token by itself is one call on all positions; only what looks at other tokens takes the rectangles.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
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
