"""The order of training: the batch at a step is a pure function of (seed, step).

For graphs of steps, batches are also padded to a few fixed shapes, and gathered from a split in the device's memory.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, Self

import numpy as np
import torch
from torch import Tensor

from tfstudy.data.encoding import BOS, EOS, PAD, Encoded, PaddedRows, cheapest_ranges

# Purposes of random numbers: each has its own stream for a seed.
ORDER, DROPOUT, RESAMPLING, FIXED_BATCHES = range(4)
MULTIPLE = 8  # of rows in a batch, with batching "fairseq"


class Batches:
    """The rows of the batch at every step, computed from (seed, step) alone.

    With `batching="random"`, each epoch is shuffled and divided into batches of `batch_size` rows, or with
    `batch_tokens` into batches of about equally many tokens: on average at most `batch_tokens`, counting the longer of
    source and target of each row. With `batching="length"`, the shuffled rows are sorted by target and then by source
    before they are divided, and then the batches are shuffled; here `batch_tokens` limits the padded positions on a
    batch's longer side. 0 is no limit; a target counts BOS and EOS, a source EOS. Every epoch holds every row once.

    `batching="fairseq"` divides as fairseq 0.6 does (`LanguagePairDataset.ordered_indices` and `batch_by_size`): rows
    are sorted by source and then by target, BOS does not count, and a full batch of 8 rows or more gives its last rows
    to the next batch, so that its size is a multiple of 8 (the next may then exceed `batch_tokens`). The batches are
    made once; only their order changes from epoch to epoch.

    With `resampled_examples`, a sample of that many rows, drawn once and with replacement, replaces the split.
    """

    def __init__(
        self,
        encoded: Encoded,
        batch_size: int,
        batch_tokens: int = 0,
        batching: str = "random",
        seed: int = 0,
        resampled_examples: int = 0,
    ) -> None:
        self._seed = seed
        self._examples = torch.arange(len(encoded))
        if resampled_examples:
            generator = self._generator(RESAMPLING)
            self._examples = torch.randint(len(encoded), (resampled_examples,), generator=generator)
        source, target = encoded.source_lengths[self._examples], encoded.target_lengths[self._examples]
        fairseq = batching == "fairseq"
        self._key = torch.zeros_like(
            source
        )  # what rows are sorted by before they are divided; zeros keep them shuffled
        if batching != "random":
            first, second = (source, target) if fairseq else (target, source)
            self._key = first * (int(second.max()) + 1) + second
        self._lengths = torch.maximum(source, target - 1 if fairseq else target)
        self._batch_size, self._even = batch_size, batching == "random" and batch_tokens > 0
        if self._even:
            least = max(-(-int(self._lengths.sum()) // batch_tokens), -(-len(source) // batch_size))
            self._count = min(least, len(source))
        else:
            lengths = self._lengths[self._key.sort(stable=True).indices].tolist()
            self._ranges = list(_ranges(lengths, batch_size, batch_tokens, MULTIPLE if fairseq else 1))
            self._count = len(self._ranges)
        self._fixed = self._divide(self._generator(FIXED_BATCHES)) if fairseq else None
        self._epoch = -1
        self._order: list[Tensor] = []  # the batches of that epoch

    def __len__(self) -> int:
        """The number of batches per epoch."""
        return self._count

    def index(self, step: int) -> Tensor:
        """Return the rows of batch `step`, counted from the start of training, as a CPU tensor."""
        epoch, position = divmod(step, len(self))
        if epoch != self._epoch:
            self._order, self._epoch = self._draw(epoch), epoch
        return self._order[position]

    def _draw(self, epoch: int) -> list[Tensor]:
        generator = self._generator(ORDER, epoch)
        batches = self._fixed or self._divide(generator)
        return [batches[i] for i in torch.randperm(len(batches), generator=generator).tolist()]

    def _divide(self, generator: torch.Generator) -> list[Tensor]:
        order = torch.randperm(len(self._key), generator=generator)
        order = order[self._key[order].sort(stable=True).indices]
        rows, even = self._examples[order], self._even
        ranges = _even_ranges(self._lengths[order], self._count, self._batch_size) if even else self._ranges
        return [rows[start:end] for start, end in ranges]

    def _generator(self, purpose: int, number: int = 0) -> torch.Generator:
        return torch.Generator().manual_seed(mix(mix(self._seed, purpose), number))


def _ranges(lengths: Sequence[int], batch_size: int, batch_tokens: int, multiple: int) -> Iterator[tuple[int, int]]:
    """Yield consecutive (start, end) within both limits; a row longer than `batch_tokens` is a batch by itself.

    If there are more than `multiple` rows, those beyond a multiple of it go to the next range, which may be too large.
    """
    start, width = 0, 0
    for end, length in enumerate(lengths):
        width, rows = max(width, length), end - start
        if rows and (rows == batch_size or (batch_tokens and (rows + 1) * width > batch_tokens)):
            size = rows - rows % multiple or rows
            yield start, start + size
            start += size
            width = max(lengths[start : end + 1])
    yield start, len(lengths)


def _even_ranges(lengths: Tensor, count: int, batch_size: int) -> Iterator[tuple[int, int]]:
    """Yield `count` consecutive (start, end) of about the same sum of lengths, of 1 to `batch_size` rows each."""
    sums, rows, start = lengths.cumsum(0), len(lengths), 0
    ends = torch.searchsorted(sums - lengths / 2, sums[-1:] * torch.arange(1, count + 1) / count).tolist()
    for left, end in zip(range(count - 1, -1, -1), ends, strict=True):
        least = max(start + 1, rows - left * batch_size)
        end = min(max(end, least), start + batch_size, rows - left)  # each of those left has a row
        yield start, end
        start = end


def mix(seed: int, step: int) -> int:
    """Mix two numbers into one 63-bit seed, unrelated for neighbouring numbers (splitmix64, Steele et al. 2014)."""
    z = (seed * 0x9E3779B97F4A7C15 + step + 1) * 0xBF58476D1CE4E5B9 % 2**64
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB % 2**64
    return (z ^ (z >> 31)) % 2**63


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


def smallest(shapes: Iterable[Shape], needed: Shape) -> Shape | None:
    """Return the shape with the fewest tokens to which a batch can be padded; None if there is none."""
    return min((shape for shape in shapes if shape.holds(needed)), key=lambda shape: shape.tokens, default=None)


def choose_shapes(batches: Sequence[Shape], most: int) -> list[Shape]:
    """Return at most `most` shapes, smallest first, to which batches are padded with the fewest tokens in total.

    Batches are ordered by their source and target lengths together, and each shape holds consecutive ones. Of all
    these divisions it is the one with the least padding; with fewer shapes if that is as good.
    """
    counts = sorted(Counter(batches).items(), key=lambda item: (item[0].source + item[0].target, item[0]))
    sizes = np.array([shape for shape, _ in counts], dtype=np.int64)
    totals = np.cumsum([0, *(count for _, count in counts)])
    cost = np.full((len(sizes), len(sizes)), np.inf)  # tokens of batches i to j in one shape
    for start in range(len(sizes)):
        rows, source, target = np.maximum.accumulate(sizes[start:]).T
        cost[start, start:] = (totals[start + 1 :] - totals[start]) * rows * (source + target)
    chosen = [Shape(*sizes[start:end].max(0).tolist()) for start, end in reversed(cheapest_ranges(cost, most))]
    return sorted(chosen, key=lambda shape: shape.tokens)


class ResidentRows(NamedTuple):
    """The rows of a split on a device, and behind them the filler, which has no target tokens and so no loss.

    The filler's source is EOS: a row must have something to attend to.
    """

    source: Tensor  # (examples + 1, longest)
    target: Tensor  # (examples + 1, longest)
    lengths: tuple[Tensor, Tensor]  # of sources and targets, on the CPU: (examples,) each

    @classmethod
    def of(cls, encoded: Encoded, device: torch.device) -> Self:
        """Return a split with its filler on a device."""

        def filled(ids: Tensor, token: int) -> Tensor:
            row = torch.full_like(ids[:1], PAD)
            row[:, 0] = token
            return torch.cat([ids, row]).to(device)

        lengths = encoded.source_lengths, encoded.target_lengths
        return cls(filled(encoded.source, EOS), filled(encoded.target, BOS), lengths)

    def shape(self, rows: Tensor) -> Shape:
        """Return the shape of the batch of these rows (a CPU index), without more padding than it needs."""
        return Shape(len(rows), *(int(lengths[rows].max()) for lengths in self.lengths))

    def padded(self, rows: Tensor, shape: Shape) -> Tensor:
        """Return an index (shape.rows,) on the CPU: these rows, and then fillers."""
        index = torch.full((shape.rows,), len(self.source) - 1)
        index[: len(rows)] = rows
        return index

    def gather(self, index: Tensor, shape: Shape) -> PaddedRows:
        """Return the rows of an index (shape.rows,) on the device, padded to a shape; does not wait for the device."""
        source, target = self.source[:, : shape.source], self.target[:, : shape.target]
        return PaddedRows(source.index_select(0, index), target.index_select(0, index))
