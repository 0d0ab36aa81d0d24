"""Examples as padded integer tensors, and batches of them."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from tasks.base import Example
from tfstudy.data.ragged import cut, share
from tfstudy.data.vocabulary import BOS, EOS, PAD, Vocab


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


def pad(sequences: Sequence[Sequence[int]]) -> tuple[Tensor, Tensor]:
    """Ids as one tensor (row, longest), filled with PAD, and the lengths (row,)."""
    lengths = torch.tensor([len(s) for s in sequences], dtype=torch.long)
    longest = int(lengths.max()) if len(lengths) else 0
    out = torch.full((len(sequences), longest), PAD, dtype=torch.long)
    filled = torch.arange(longest) < lengths[:, None]
    out[filled] = torch.tensor([token for s in sequences for token in s], dtype=torch.long)
    return out, lengths
