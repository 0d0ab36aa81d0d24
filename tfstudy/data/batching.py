"""The order of training: the batch at a step is a pure function of (seed, step)."""

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from tfstudy.data.encoding import Encoded

ORDER, DROPOUT = range(2)  # purposes of random numbers: each has its own stream for a seed


class Batches:
    """The rows of the batch at every step, computed from (seed, step) alone.

    With `batching="random"`, each epoch is shuffled and divided into batches of `batch_size` rows. With
    `batching="length"`, the shuffled rows are sorted by length before they are divided (ties stay shuffled), and then
    the batches are shuffled. `batch_tokens` limits the padded positions on a batch's longer side, as in fairseq (0: no
    limit). Every epoch holds every row once and has the same number of batches: all epochs sort the same lengths.
    """

    def __init__(
        self, encoded: Encoded, batch_size: int, batch_tokens: int = 0, batching: str = "random", seed: int = 0
    ) -> None:
        source, target = encoded.source_lengths, encoded.target_lengths
        self._key = target * (int(source.max()) + 1) + source if batching == "length" else torch.zeros_like(source)
        self._seed = seed
        lengths = torch.maximum(source, target)[self._key.sort(stable=True).indices].tolist()
        self._ranges = list(_ranges(lengths, batch_size, batch_tokens))
        self._epoch = -1
        self._order: list[Tensor] = []  # the batches of that epoch

    def __len__(self) -> int:
        """The number of batches per epoch."""
        return len(self._ranges)

    def index(self, step: int) -> Tensor:
        """Return the rows of batch `step`, counted from the start of training, as a CPU tensor."""
        epoch, position = divmod(step, len(self))
        if epoch != self._epoch:
            self._order, self._epoch = self._draw(epoch), epoch
        return self._order[position]

    def _draw(self, epoch: int) -> list[Tensor]:
        generator = torch.Generator().manual_seed(mix(mix(self._seed, ORDER), epoch))
        rows = torch.randperm(len(self._key), generator=generator)
        rows = rows[self._key[rows].sort(stable=True).indices]
        batches = [rows[start:end] for start, end in self._ranges]
        return [batches[i] for i in torch.randperm(len(batches), generator=generator).tolist()]


def _ranges(lengths: Sequence[int], batch_size: int, batch_tokens: int) -> Iterator[tuple[int, int]]:
    """Yield consecutive (start, end) within both limits; a row longer than `batch_tokens` is a batch by itself."""
    start, width = 0, 0
    for end, length in enumerate(lengths):
        width = max(width, length)
        rows = end - start + 1
        if rows > batch_size or (batch_tokens and rows > 1 and rows * width > batch_tokens):
            yield start, end
            start, width = end, length
    yield start, len(lengths)


def mix(seed: int, step: int) -> int:
    """Mix two numbers into one 63-bit seed, unrelated for neighbouring numbers (splitmix64, Steele et al. 2014)."""
    z = (seed * 0x9E3779B97F4A7C15 + step + 1) * 0xBF58476D1CE4E5B9 % 2**64
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB % 2**64
    return (z ^ (z >> 31)) % 2**63
