"""Vocabularies, examples as padded integer tensors, and batches of them, divided into rectangles."""

import copy
import itertools
from collections.abc import Iterable, Sequence
from typing import NamedTuple, Self

import numpy as np
import torch
from torch import Tensor

from tfstudy.tasks.base import Example, Task

PAD, BOS, EOS, UNK = range(4)
SPECIAL = ("<pad>", "<bos>", "<eos>", "<unk>")
UNKNOWN = "⁇"  # an output that is no word of the vocabulary, as sentencepiece prints it
MICRO_BATCHES, RECTANGLES = 2, 4  # on CPU: micro-batches per batch, and rectangles per micro-batch
# Cost on CPU of one more rectangle, in padded positions: measured 20 (Transformer, CNN) to 65 (LSTM), by least squares
# over steps of 1 to 12 (time = a + b rectangles + c positions). Four micro-batches are 15 to 20 % slower than two.
RECTANGLE_OVERHEAD = 48
# Parameters times tokens of a batch below which one micro-batch is faster than two (by 1.15 to 1.25 at width 64 and 32
# rows): most of such a step is calls, which two threads cannot make at the same time.
SMALL_STEP = 200_000_000
SMALL_STEP_OVERHEAD = 150  # `RECTANGLE_OVERHEAD` of such batches: a position costs less, and a rectangle as much
# Rows where a rectangle may start: division takes 1 ms at most, and 190 ms if all of 2,048 rows are candidates.
CANDIDATES = 256


class Vocab:
    """A vocabulary. Ids 0 to 3 are padding, begin, end and unknown; the tokens follow in sorted order.

    The first four are ids only: a word `<pad>` in the data is a word like any other, and unknown if it is not in train.
    """

    def __init__(self, tokens: Iterable[str]) -> None:
        self.tokens = [*SPECIAL, *sorted(set(tokens))]
        self._ids = {token: index for index, token in enumerate(self.tokens) if index >= len(SPECIAL)}

    def __len__(self) -> int:
        return len(self.tokens)

    def __contains__(self, token: str) -> bool:
        return token in self._ids

    def encode(self, sequence: Sequence[str]) -> list[int]:
        """Return ids, with `UNK` for tokens that are not in the vocabulary."""
        return [self._ids.get(token, UNK) for token in sequence]

    def decode(self, ids: Iterable[int]) -> tuple[str, ...]:
        """Return the tokens before the first EOS, with `UNKNOWN` for what is none."""
        out: list[str] = []
        for index in ids:
            if index == EOS:
                break
            out.append(self.tokens[index] if index >= len(SPECIAL) else UNKNOWN)
        return tuple(out)

    def ids_of(self, other: "Vocab") -> list[int]:
        """Return the id here of each id of another vocabulary, `UNK` for its tokens that are not here."""
        return [*range(len(SPECIAL)), *self.encode(other.tokens[len(SPECIAL) :])]


def micro_batch_count(requested: int, device: torch.device) -> int:
    """Return the maximum number of micro-batches per batch. 0 stands for `MICRO_BATCHES` on CPU and 1 elsewhere."""
    return requested or (MICRO_BATCHES if device.type == "cpu" else 1)


def split_evenly(lengths: np.ndarray, count: int) -> list[tuple[int, int]]:
    """Split rows into at most `count` consecutive ranges (start, end) with about the same sum of lengths."""
    middles = np.cumsum(lengths) - lengths / 2
    bounds = np.searchsorted(middles, lengths.sum() * np.arange(1, count) / count)
    return [(start, end) for start, end in itertools.pairwise([0, *bounds.tolist(), len(lengths)]) if start < end]


def least_padding(
    source: np.ndarray, target: np.ndarray, rectangles: int, overhead: int | None = None
) -> list[tuple[int, int]]:
    """Split rows into at most `rectangles` consecutive ranges (start, end) such that padding costs least.

    The cost of a rectangle is its number of padded positions plus `overhead`, by default `RECTANGLE_OVERHEAD`. The
    minimum is that of all splits; with more than `CANDIDATES` rows, of splits at `CANDIDATES` equally spaced rows.
    """
    rows = len(target)
    if rectangles == 1 or rows < 2:
        return [(0, rows)] if rows else []
    edges = np.linspace(0, rows, min(rows, CANDIDATES) + 1).astype(np.int64)
    start, end = edges[:-1, None], edges[1:]
    valid = end > start
    longest = (np.maximum.reduceat(lengths, edges[:-1]) for lengths in (source, target))
    widths = sum(np.maximum.accumulate(np.where(valid, x, 0), axis=1) for x in longest)
    cost = (end - start) * widths + (RECTANGLE_OVERHEAD if overhead is None else overhead)
    return [(int(edges[i]), int(edges[j])) for i, j in cheapest_ranges(np.where(valid, cost, np.inf), rectangles)]


def cheapest_ranges(cost: np.ndarray, most: int) -> list[tuple[int, int]]:
    """Split items into at most `most` consecutive ranges (start, end) of the least total cost, by dynamic programming.

    `cost[i, j]` is the cost of items i to j, infinite for j < i. Of splits that cost the same, the one with the fewest
    ranges is returned.
    """
    best, origins = [cost[0]], []  # best[k][j]: cost of items 0 to j in k + 1 ranges
    for _ in range(min(most, len(cost)) - 1):
        costs = best[-1][:-1, None] + cost[1:]
        origins.append(costs.argmin(0))
        best.append(costs.min(0))
    count = int(np.argmin([costs[-1] for costs in best]))
    ends = [len(cost)]
    for origin in reversed(origins[:count]):
        ends.append(int(origin[ends[-1] - 1]) + 1)
    return list(itertools.pairwise([0, *reversed(ends)]))


class PaddedRows(NamedTuple):
    """A rectangle of sources, and that of their targets, as padded ids.

    Targets start with BOS; sources and targets end with EOS (see `Encoded`).
    """

    source: Tensor  # (batch, source)
    target: Tensor  # (batch, target)


class Batch(NamedTuple):
    """The examples of one gradient, as micro-batches of about equal cost, each of several rectangles.

    The loss is that of the whole padded batch, computed with less padding. Micro-batches may be computed in parallel.
    """

    micro_batches: tuple[tuple[PaddedRows, ...], ...]
    tokens: float  # target tokens (EOS counts; padding and BOS do not)
    rows: np.ndarray = np.empty(0, np.int64)  # numbers of the rows, without micro-batches, if the step gathers them


class Encoded:
    """A split as tensors: `source` and `target` (examples, longest), and their lengths with BOS and EOS (examples,).

    With `target_eos=False` targets do not end with EOS.
    """

    def __init__(
        self, examples: Sequence[Example], source_vocab: Vocab, target_vocab: Vocab, target_eos: bool = True
    ) -> None:
        end = [EOS] if target_eos else []
        self.source, self.source_lengths = pad([[*source_vocab.encode(e.source), EOS] for e in examples])
        self.target, self.target_lengths = pad([[BOS, *target_vocab.encode(e.target), *end] for e in examples])

    def __len__(self) -> int:
        return len(self.source_lengths)

    def to(self, device: torch.device) -> Self:
        """Return the same split with its ids on `device`. The lengths stay on the CPU, where shapes are decided."""
        moved = copy.copy(self)
        moved.source, moved.target = self.source.to(device), self.target.to(device)
        return moved

    def tokens(self, index: Tensor) -> int:
        """Return the number of tokens in the sources and targets of a CPU index, with BOS and EOS."""
        return int(self.source_lengths[index].sum() + self.target_lengths[index].sum())

    def rows(self, index: Tensor) -> PaddedRows:
        """Return the rows of a CPU index, padded to the longest source and the longest target among them."""
        source_length, target_length = int(self.source_lengths[index].max()), int(self.target_lengths[index].max())
        index = index.to(self.source.device)
        return PaddedRows(self.source[index, :source_length], self.target[index, :target_length])

    def batch_of_rows(self, index: Tensor) -> Batch:
        """Return the batch of these rows with their numbers only, for a step that gathers them by itself."""
        return Batch((), float(self.target_lengths[index].sum() - len(index)), index.numpy())

    def batch(self, index: Tensor, micro_batches: int = 1, rectangles: int = 1, overhead: int | None = None) -> Batch:
        """Return the batch of these rows.

        It has at most `micro_batches` micro-batches, and each of these has at most `rectangles` rectangles; for
        `overhead`, see `least_padding`.
        """
        if micro_batches > 1 or rectangles > 1:
            # rows of similar length stand together, so that rectangles have little padding
            index = index[self.target_lengths[index].sort(stable=True).indices]
        source, target = self.source_lengths[index].numpy(), self.target_lengths[index].numpy()
        divided = []
        for start, end in split_evenly(source + target, micro_batches):
            ranges = least_padding(source[start:end], target[start:end], rectangles, overhead)
            divided.append(tuple(self.rows(index[start + first : start + last]) for first, last in ranges))
        return Batch(tuple(divided), float(self.target_lengths[index].sum() - len(index)))


class TaskEncoder:
    """A task with its vocabularies, which encode examples."""

    def __init__(self, task: Task) -> None:
        self.task = task
        self.source_vocab, self.target_vocab = (Vocab(tokens) for tokens in task.vocabulary())

    def encode(self, examples: Sequence[Example], target_eos: bool = True) -> Encoded:
        """Return examples as tensors, with targets that end with EOS or not."""
        return Encoded(examples, self.source_vocab, self.target_vocab, target_eos)


def pad(sequences: Sequence[Sequence[int]]) -> tuple[Tensor, Tensor]:
    """Return ids as one tensor (row, longest), filled with PAD, and the lengths (row,)."""
    lengths = torch.tensor([len(s) for s in sequences], dtype=torch.long)
    longest = int(lengths.max()) if len(lengths) else 0
    out = torch.full((len(sequences), longest), PAD, dtype=torch.long)
    filled = torch.arange(longest) < lengths[:, None]
    out[filled] = torch.tensor([token for s in sequences for token in s], dtype=torch.long)
    return out, lengths
