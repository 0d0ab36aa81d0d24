"""Examples as a few integer tensors; a batch is an index into them, a pure function of (seed, step)."""

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import torch
from lightning.pytorch import LightningDataModule
from torch import Tensor

from tasks.base import Example, Task
from tfstudy.vocab import BOS, EOS, PAD, Vocab

ORDER, DROPOUT = range(2)  # what random numbers are for: streams of one seed must not meet
PARTS, BLOCKS = 2, 4  # of a batch, and of a part, on a CPU
OVERHEAD = 48  # of one more block on a CPU, in padded positions: 20 to 65 by architecture (benchmarks/parts.py)


class Rows(NamedTuple):
    """Padded token ids of rows of like length. `target` starts with BOS and both end with EOS."""

    source: Tensor  # (rows, source)
    target: Tensor  # (rows, target)


class Batch(NamedTuple):
    """Rows that make one gradient. The sum of losses is that of the whole padded batch, with less padding.

    Parts have about as many tokens each and may be computed side by side, each in one pass over its rectangles.
    """

    parts: tuple[tuple[Rows, ...], ...]
    tokens: float  # labels of all parts on all devices (EOS counts, padding and BOS don't), over the number of devices


class Encoded:
    """One split as tensors; `rows(index)` cuts a batch to its own longest source and target."""

    def __init__(self, examples: Sequence[Example], source_vocab: Vocab, target_vocab: Vocab) -> None:
        self.source, self.source_lengths = pad([[*source_vocab.encode(e.source), EOS] for e in examples])
        self.target, self.target_lengths = pad([[BOS, *target_vocab.encode(e.target), EOS] for e in examples])

    def __len__(self) -> int:
        return len(self.source_lengths)

    def to(self, device: torch.device) -> "Encoded":
        """The same split with its ids on `device`; the lengths stay on the CPU, where shapes are decided."""
        self.source, self.target = self.source.to(device), self.target.to(device)
        return self

    def rows(self, index: Tensor) -> Rows:
        """These rows (a CPU index), padded to the longest of them."""
        source_length, target_length = int(self.source_lengths[index].max()), int(self.target_lengths[index].max())
        index = index.to(self.source.device)
        return Rows(self.source[index, :source_length], self.target[index, :target_length])

    def batch(self, index: Tensor, parts: int = 1, blocks: int = 1, rank: int = 0, ranks: int = 1) -> Batch:
        """The batch of these rows, or what of it belongs to device `rank` of `ranks`.

        It has at most so many parts, and each of them at most so many blocks.
        """
        mine = index[rank::ranks]
        if parts > 1 or blocks > 1:
            mine = mine[self.target_lengths[mine].sort(stable=True).indices]
        source, target = self.source_lengths[mine].numpy(), self.target_lengths[mine].numpy()
        made = []
        for start, end in share(source + target, parts):
            cuts = cut(source[start:end], target[start:end], blocks)
            made.append(tuple(self.rows(mine[start + first : start + last]) for first, last in cuts))
        return Batch(tuple(made), float(self.target_lengths[index].sum() - len(index)) / ranks)


def share(lengths: np.ndarray, parts: int) -> list[tuple[int, int]]:
    """Consecutive (start, end) of at most `parts` parts whose sums of lengths are about alike."""
    middles = np.cumsum(lengths) - lengths / 2
    bounds = np.searchsorted(middles, lengths.sum() * np.arange(1, parts) / parts)
    return [(a, b) for a, b in itertools.pairwise([0, *bounds.tolist(), len(lengths)]) if a < b]


def cut(source: np.ndarray, target: np.ndarray, blocks: int) -> list[tuple[int, int]]:
    """Consecutive (start, end) of at most `blocks` blocks, with the fewest padded positions and `OVERHEAD` for each."""
    n = len(target)
    if blocks == 1 or n < 2 or n > 2048:  # the costs of all blocks are a table of n x n
        return [(0, n)] if n else []
    start, end = np.arange(n)[:, None], np.arange(n)
    widths = sum(np.maximum.accumulate(np.where(end >= start, x, 0), axis=1) for x in (source, target))
    cost = np.where(end >= start, (end - start + 1) * widths + OVERHEAD, np.inf)  # of a block from start to end
    best, origin = [cost[0]], []  # best[k][e]: k + 1 blocks that end at e
    for _ in range(blocks - 1):
        ways = best[-1][:-1, None] + cost[1:]
        origin.append(ways.argmin(0))
        best.append(ways.min(0))
    count = int(np.argmin([costs[-1] for costs in best]))
    cuts, last = [], n
    for before in reversed(origin[:count]):
        first = int(before[last - 1]) + 1
        cuts.append((first, last))
        last = first
    return [(0, last), *reversed(cuts)]


def pad(sequences: Sequence[Sequence[int]]) -> tuple[Tensor, Tensor]:
    """Ids as one tensor (row, longest), filled with PAD, and the lengths (row,)."""
    lengths = torch.tensor([len(s) for s in sequences], dtype=torch.long)
    longest = int(lengths.max()) if len(lengths) else 0
    out = torch.full((len(sequences), longest), PAD, dtype=torch.long)
    filled = torch.arange(longest) < lengths[:, None]
    out[filled] = torch.tensor([token for s in sequences for token in s], dtype=torch.long)
    return out, lengths


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


class Loader:
    """What Lightning iterates: `count` batches from number `first()` on, asked for anew at every pass."""

    def __init__(self, count: int, first: Callable[[], int], batch: Callable[[int], Batch]) -> None:
        self._count, self._first, self._batch = count, first, batch

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Batch]:
        first = self._first()
        return map(self._batch, range(first, first + self._count))


class TaskData(LightningDataModule):
    """Any task for a `lightning.Trainer`: its vocabularies, its splits as tensors, batches by `Batches`.

    An epoch is a pass over the train split, or `epoch` batches if that is set; the first is number `first_epoch`. A
    batch is computed in at most `parts` parts, with 1 as a padded whole; 0 means `PARTS` on a CPU, where padding costs
    most, and 1 elsewhere, where the number of kernels does. The validation loader covers the validation split, if any,
    in batches sorted by length.
    """

    def __init__(
        self,
        task: Task,
        batch_size: int = 64,
        batch_tokens: int = 0,
        batching: str = "random",
        seed: int = 0,
        parts: int = 0,
    ) -> None:
        super().__init__()
        self.task = task
        self.epoch = self.first_epoch = 0
        self.source_vocab, self.target_vocab = (Vocab(tokens) for tokens in task.vocabulary())
        names = [task.splits().train, *filter(None, [task.splits().validation])]
        self.encoded = {name: self.encode(task.examples(name)) for name in names}
        self.batches = Batches(self.encoded[names[0]], batch_size, batch_tokens, batching, seed)
        self._parts = parts

    def encode(self, examples: Sequence[Example]) -> Encoded:
        """Examples as tensors, by this module's vocabularies."""
        return Encoded(examples, self.source_vocab, self.target_vocab)

    def setup(self, stage: str) -> None:
        """Moves the data to the device, once: they are small, and a batch is then an index on it."""
        if self.trainer:
            for encoded in self.encoded.values():
                encoded.to(self.trainer.strategy.root_device)

    def train_dataloader(self) -> Loader:
        count = self.epoch or len(self.batches)
        return self._loader(self.task.splits().train, self.batches, count, lambda: self._epochs_done() * count)

    def val_dataloader(self) -> Loader | list[Loader]:
        validation = self.task.splits().validation
        if validation is None:
            return []
        order = Batches(self.encoded[validation], 256, batching="length")
        return self._loader(validation, order, len(order), lambda: 0)

    def _epochs_done(self) -> int:
        return self.first_epoch + (self.trainer.current_epoch if self.trainer else 0)

    def _loader(self, split: str, batches: Batches, count: int, first: Callable[[], int]) -> Loader:
        rank, ranks = (self.trainer.global_rank, self.trainer.world_size) if self.trainer else (0, 1)
        encoded, parts = self.encoded[split], self.parts
        blocks = BLOCKS if parts > 1 else 1
        return Loader(count, first, lambda number: encoded.batch(batches.index(number), parts, blocks, rank, ranks))

    @property
    def parts(self) -> int:
        """The most parts that a batch is computed in, on the device where the data are."""
        on_cpu = next(iter(self.encoded.values())).source.device.type == "cpu"
        return self._parts or (PARTS if on_cpu else 1)
