"""The order of training: the batch at a step is a pure function of (seed, step)."""

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from tfstudy.data.encoding import Encoded

ORDER, DROPOUT = range(2)  # what random numbers are for: streams of one seed must not meet


class Batches:
    """The order of training: which rows make the batch of every step, computed from (seed, step) alone.

    `batching="random"`: each epoch is shuffled and cut into batches of `batch_size` rows. `batching="length"`: between
    the two it is sorted by length (ties stay shuffled), the batches are shuffled, and with `batch_tokens` a batch has
    at most that many padded positions on its longer side, as in fairseq. Every epoch holds every row once and has the
    same number of batches, since the lengths of a sorted epoch are always the same.
    """

    def __init__(
        self, encoded: Encoded, batch_size: int, batch_tokens: int = 0, batching: str = "random", seed: int = 0
    ) -> None:
        source, target = encoded.source_lengths, encoded.target_lengths
        self.batching = batching
        self._key = target * (int(source.max()) + 1) + source if batching == "length" else torch.zeros_like(source)
        self._seed = seed
        longest = torch.maximum(source, target)[self._key.sort(stable=True).indices].tolist()
        self._cuts = list(_cuts(longest, batch_size, batch_tokens))
        self._epoch = -1
        self._order: list[Tensor] = []

    def __len__(self) -> int:
        """Batches an epoch."""
        return len(self._cuts)

    def index(self, step: int) -> Tensor:
        """The rows of batch `step`, counted from the start of training; a CPU tensor."""
        epoch, place = divmod(step, len(self))
        if epoch != self._epoch:
            self._order, self._epoch = self._draw(epoch), epoch
        return self._order[place]

    def _draw(self, epoch: int) -> list[Tensor]:
        draw = torch.Generator().manual_seed(mix(mix(self._seed, ORDER), epoch))
        rows = torch.randperm(len(self._key), generator=draw)
        rows = rows[self._key[rows].sort(stable=True).indices]
        batches = [rows[start:end] for start, end in self._cuts]
        return [batches[i] for i in torch.randperm(len(batches), generator=draw).tolist()]


def _cuts(longest: Sequence[int], batch_size: int, batch_tokens: int) -> Iterator[tuple[int, int]]:
    """Consecutive (start, end) within both bounds; a row longer than `batch_tokens` makes a batch of its own."""
    start, width = 0, 0
    for end, length in enumerate(longest):
        width = max(width, length)
        rows = end - start + 1
        if rows > batch_size or (batch_tokens and rows > 1 and rows * width > batch_tokens):
            yield start, end
            start, width = end, length
    yield start, len(longest)


def mix(seed: int, step: int) -> int:
    """One 64-bit seed out of two numbers, such that neighbours have nothing in common (splitmix64, Steele 2014)."""
    z = (seed * 0x9E3779B97F4A7C15 + step + 1) * 0xBF58476D1CE4E5B9 % 2**64
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB % 2**64
    return (z ^ (z >> 31)) % 2**63
