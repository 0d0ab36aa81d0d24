"""A split in the memory of a device, of which a batch is an index."""

from collections.abc import Iterator
from typing import NamedTuple, Self

import torch
from torch import Tensor

from tfstudy.data.batching import Batches
from tfstudy.data.encoding import Encoded, PaddedRows
from tfstudy.data.shapes import Shape
from tfstudy.data.vocabulary import BOS, EOS, PAD


class ResidentRows(NamedTuple):
    """The rows of a split on a device, and one more, the filler, which has no target tokens and so no loss.

    The filler's source is EOS: a row must have something to attend to.
    """

    source: Tensor  # (examples + 1, longest)
    target: Tensor  # (examples + 1, longest)
    lengths: tuple[Tensor, Tensor]  # of sources and targets, on the CPU: (examples,) each

    @classmethod
    def of(cls, encoded: Encoded, device: torch.device) -> Self:
        """Return a split with its filler on a device."""
        source, target = _with_filler(encoded.source.to(device), EOS), _with_filler(encoded.target.to(device), BOS)
        return cls(source, target, (encoded.source_lengths, encoded.target_lengths))

    @property
    def filler(self) -> int:
        """The number of the filler."""
        return len(self.source) - 1

    def shape(self, rows: Tensor) -> Shape:
        """Return the shape of the batch of these rows (a CPU index), without more padding than it needs."""
        return Shape(len(rows), *(int(lengths[rows].max()) for lengths in self.lengths))

    def padded(self, rows: Tensor, shape: Shape) -> Tensor:
        """Return an index (shape.rows,) on the CPU: these rows, and then fillers."""
        index = torch.full((shape.rows,), self.filler)
        index[: len(rows)] = rows
        return index

    def gather(self, index: Tensor, shape: Shape) -> PaddedRows:
        """Return the rows of an index (shape.rows,) on the device, padded to a shape; does not wait for the device."""
        return PaddedRows(
            self.source[:, : shape.source].index_select(0, index), self.target[:, : shape.target].index_select(0, index)
        )

    def shapes(self, batches: Batches, first: int, count: int) -> Iterator[Shape]:
        """Iterate over the shapes of `count` batches from the `first` on."""
        return (self.shape(batches.index(number)) for number in range(first, first + count))


def _with_filler(ids: Tensor, token: int) -> Tensor:
    row = torch.full_like(ids[:1], PAD)
    row[:, 0] = token
    return torch.cat([ids, row])
