"""A few shapes to which batches are padded, so that a step computed in advance for each of them fits every batch."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np


class Shape(NamedTuple):
    """The numbers of rows, of source tokens and of target tokens (with BOS and EOS) of a padded batch."""

    rows: int
    source: int
    target: int

    @property
    def tokens(self) -> int:
        """The tokens of the batch, counting padding."""
        return self.rows * (self.source + self.target)

    def holds(self, other: "Shape") -> bool:
        """Whether a batch of the other shape can be padded to this one."""
        return all(mine >= its for mine, its in zip(self, other, strict=True))

    def __str__(self) -> str:
        return f"{self.rows} x ({self.source} + {self.target})"


def smallest(shapes: Iterable[Shape], needed: Shape) -> Shape | None:
    """Return the shape with the fewest tokens to which a batch can be padded; None if there is none."""
    return min((shape for shape in shapes if shape.holds(needed)), key=lambda shape: shape.tokens, default=None)


def choose_shapes(batches: Sequence[Shape], most: int) -> list[Shape]:
    """Return at most `most` shapes, smallest first, to which batches are padded with the fewest tokens in total.

    Batches are ordered by their source and target lengths together, and each shape holds consecutive ones. Of all
    these divisions, dynamic programming finds the one with the least padding; with fewer shapes if that is as good.
    """
    counts = sorted(Counter(batches).items(), key=lambda item: (item[0].source + item[0].target, item[0]))
    sizes = np.array([shape for shape, _ in counts], dtype=np.int64)
    cost = _costs(sizes, np.array([count for _, count in counts], dtype=np.int64))
    best, origins = [cost[0]], []  # best[k][e]: tokens of the batches up to e, in k + 1 shapes
    for _ in range(min(most, len(sizes)) - 1):
        costs = best[-1][:-1, None] + cost[1:]
        origins.append(costs.argmin(0))
        best.append(costs.min(0))
    number = int(np.argmin([costs[-1] for costs in best]))
    ends = [len(sizes)]
    for origin in reversed(origins[:number]):
        ends.append(int(origin[ends[-1] - 1]) + 1)
    starts = [*ends[1:], 0]
    chosen = [Shape(*sizes[start:end].max(0).tolist()) for start, end in zip(starts, ends, strict=True)]
    return sorted(chosen, key=lambda shape: shape.tokens)


def _costs(sizes: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Return the tokens of batches i to j in one shape, as a table (i, j); infinite for j < i."""
    table = np.full((len(sizes), len(sizes)), np.inf)
    totals = np.concatenate([[0], counts.cumsum()])
    for start in range(len(sizes)):
        rows, source, target = np.maximum.accumulate(sizes[start:]).T
        table[start, start:] = (totals[start + 1 :] - totals[start]) * rows * (source + target)
    return table
