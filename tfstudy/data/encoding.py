"""Examples as padded integer tensors, and batches of them."""

import copy
from collections.abc import Sequence
from typing import NamedTuple, Self

import numpy as np
import torch
from torch import Tensor

from tfstudy.data.ragged import least_padding, split_evenly
from tfstudy.data.vocabulary import BOS, EOS, PAD, Vocab
from tfstudy.tasks.base import Example, Task


class PaddedRows(NamedTuple):
    """Padded token ids of examples. Targets start with BOS; sources and targets end with EOS (see `Encoded`)."""

    source: Tensor  # (batch, source)
    target: Tensor  # (batch, target)


class Batch(NamedTuple):
    """The examples of one gradient, as micro-batches of about equal cost, each of several ragged groups.

    The loss is that of the whole padded batch, computed with less padding. Micro-batches may be computed in parallel.
    """

    micro_batches: tuple[tuple[PaddedRows, ...], ...]
    tokens: float  # target tokens on all devices (EOS counts; padding and BOS do not), divided by the number of devices
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

    def batch(
        self,
        index: Tensor,
        micro_batches: int = 1,
        groups: int = 1,
        rank: int = 0,
        ranks: int = 1,
        group_overhead: int | None = None,
    ) -> Batch:
        """Return the batch of these rows, or the share of device `rank` of `ranks`.

        The batch has at most `micro_batches` micro-batches, and each of these has at most `groups` groups;
        for `group_overhead`, see `least_padding`.
        """
        rows = index[rank::ranks]
        if micro_batches > 1 or groups > 1:
            rows = rows[self.target_lengths[rows].sort(stable=True).indices]
        source, target = self.source_lengths[rows].numpy(), self.target_lengths[rows].numpy()
        divided = []
        for start, end in split_evenly(source + target, micro_batches):
            ranges = least_padding(source[start:end], target[start:end], groups, group_overhead)
            divided.append(tuple(self.rows(rows[start + first : start + last]) for first, last in ranges))
        return Batch(tuple(divided), float(self.target_lengths[index].sum() - len(index)) / ranks)


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
