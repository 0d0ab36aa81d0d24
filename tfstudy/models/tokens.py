"""The batch of a model: rows of tokens in a few rectangles, laid flat one behind the other.

A rectangle is a padded tensor (rows, length) of rows of similar length; a padded batch is one rectangle. What acts on
each token (most of a model) is called once, on flat tensors (tokens, ...), with the padding. What looks at other tokens
(attention, recurrence, convolution) is called for each rectangle. This way little is padded, and no kernel is called
for few rows.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch
from jaxtyping import Bool, Int
from torch import Tensor

PAD = 0  # the id of padding in every vocabulary
Shapes = Sequence[tuple[int, int]]  # (rows, length) of each rectangle


def rectangles(shapes: Shapes, *xs: Tensor) -> Iterator[tuple[Tensor, ...]]:
    """Yield each rectangle of flat tensors (tokens, ...), as views (rows, length, ...)."""
    if len(shapes) == 1:
        yield tuple(x.view(*shapes[0], *x.shape[1:]) for x in xs)
        return
    sizes = [rows * length for rows, length in shapes]
    for shape, *parts in zip(shapes, *(torch.split(x, sizes) for x in xs), strict=True):
        yield tuple(part.view(*shape, *part.shape[1:]) for part in parts)


def split_rows(shapes: Shapes, x: Tensor) -> Sequence[Tensor]:
    """Return what each rectangle has of a tensor (rows, ...)."""
    return [x] if len(shapes) == 1 else torch.split(x, [rows for rows, _ in shapes])


def per_source(shapes: Shapes, sources: Sequence[int]) -> Shapes:
    """Return shapes (sources, k * length) for what attends to the sources, of which each has k rows: a beam.

    The hypotheses of a source are next to each other, so their positions are like one longer target.
    """
    pairs = zip(shapes, sources, strict=True)
    return [(count, rows // max(1, count) * length) for (rows, length), count in pairs]


def flat(parts: Sequence[Tensor]) -> Tensor:
    """Return tensors (rows, length, ...) as one (tokens, ...); a single one is not copied."""
    flattened = [part.flatten(0, 1) for part in parts]
    return flattened[0] if len(flattened) == 1 else torch.cat(flattened)


def joined(parts: Sequence[Tensor]) -> Tensor:
    """Return tensors (rows, ...), one of each rectangle, as one; a single one is not copied."""
    return parts[0] if len(parts) == 1 else torch.cat(list(parts))


class Tokens(NamedTuple):
    """Tokens of a source, or of a target after `start` others that a state knows."""

    ids: Int[Tensor, " tokens"]
    mask: Bool[Tensor, " tokens"]  # True where there is a token
    shapes: tuple[tuple[int, int], ...]  # (rows, length) of each rectangle
    start: int = 0  # the number of tokens before the first one of each row
    numbers: tuple[Int[Tensor, "_ _"], ...] = ()  # positions that are not 0, 1, ...; see `so_far`
    limit: int = 0  # above all `numbers`

    @classmethod
    def of(cls, *padded: Int[Tensor, "_ _"]) -> "Tokens":
        """Return the tokens of padded tensors (rows, length), each a rectangle."""
        ids = flat(padded)
        return cls(ids, ids != PAD, tuple((x.shape[0], x.shape[1]) for x in padded))

    def rectangles(self, *xs: Tensor) -> Iterator[tuple[Tensor, ...]]:
        """Yield each rectangle of flat tensors (tokens, ...), as views (rows, length, ...)."""
        return rectangles(self.shapes, *xs)

    def following(self, start: int) -> "Tokens":
        """Return the tokens as those after `start` others, which is the `next_start` of the last ones."""
        if start < 0:
            raise ValueError("a state after several rectangles can't be continued, as their lengths differ")
        return self._replace(start=start)

    @property
    def next_start(self) -> int:
        """The number of tokens of each row so far; -1 if there are several rectangles."""
        return self.start + self.shapes[0][1] if len(self.shapes) == 1 else -1

    @property
    def so_far(self) -> Sequence[Int[Tensor, "_ _"]]:
        """The positions (rows or 1, start + length) of all tokens so far, for each rectangle.

        There is one row if all rows have the same positions.
        """
        return self.numbers or [
            torch.arange(self.start + length, device=self.ids.device)[None] for _, length in self.shapes
        ]

    @property
    def positions(self) -> Int[Tensor, " tokens"]:
        """The position of each of these tokens."""
        pairs = zip(self.so_far, self.shapes, strict=True)
        return flat([numbers[:, self.start :].expand(shape) for numbers, shape in pairs])

    @property
    def bound(self) -> int:
        """A number that all positions are below."""
        return self.limit or self.start + max(length for _, length in self.shapes)

    def select_rows(self, rows: Int[Tensor, " rows"]) -> "Tokens":
        """Return these rows of the only rectangle, in this order."""
        [(ids, mask)] = self.rectangles(self.ids, self.mask)
        numbers = tuple(x if len(x) == 1 else x[rows] for x in self.numbers)
        chosen = ids[rows].flatten(), mask[rows].flatten(), ((len(rows), ids.shape[1]),)
        return Tokens(*chosen, self.start, numbers, self.limit)
