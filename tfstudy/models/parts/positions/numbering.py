"""The numbers of positions: 0, 1, ..., or random numbers of a larger range (Ruoss et al. 2023, arXiv 2305.16843)."""

from random import Random
from typing import NamedTuple

import torch
from jaxtyping import Int
from torch import Tensor, nn

from tfstudy.models.parts.layers import uniform
from tfstudy.models.parts.positions.base import Places


class Numbers(NamedTuple):
    """The positions of one group's tokens, the same for all rows; those from `start` on are new."""

    all: Int[Tensor, "1 length"]
    start: int
    first: int  # no new position is below
    end: int  # all positions are below

    @property
    def new(self) -> Int[Tensor, "1 new"]:
        """The positions of the new tokens."""
        return self.all[:, self.start :]


def places(queries: Numbers, keys: Numbers, repeated: int = 1) -> Places:
    """Return where the new queries (`repeated` times, one after the other) and all keys are."""
    return Places(queries.new.repeat(1, repeated), keys.all, queries.first - keys.end + 1, queries.end - 1)


class Numbering(nn.Module):
    """Gives tokens their positions: 0, 1, ..., or with a `size` above 0 random positions below it, in ascending order.

    In training, the positions of source and target are the first of one random sample of distinct positions, drawn for
    each group and pass. In the paper the sample has exactly as many positions as the sequence has tokens; but a decoder
    has to place the first token before it knows the length. So evaluation uses one sample of `longest` positions, drawn
    once from a fixed seed, and the size of a sample in training is drawn between both, with a uniform logarithm.
    """

    fixed: Tensor

    def __init__(self, size: int, longest: int) -> None:
        super().__init__()
        self.size, self.longest = size, longest
        sample = sorted(Random("positions").sample(range(size), longest)) if size else []
        self.register_buffer("fixed", torch.tensor(sample, dtype=torch.int64), persistent=False)

    def forward(
        self,
        start: int,
        new: int,
        device: torch.device,
        sample: Int[Tensor, "rows length"] | None = None,
    ) -> Numbers:
        """Return the positions of `new` tokens that follow `start` others: those of a `sample`, or of the fixed one.

        A length above `longest` raises an IndexError if positions are random.
        """
        length = start + new
        if not self.size:
            return Numbers(torch.arange(length, device=device)[None], start, start, length)
        if length > self.longest:
            raise IndexError(f"there are random positions for {self.longest} tokens, but a sequence has {length}")
        positions = self.fixed[None] if sample is None else sample[:1]
        return Numbers(positions[:, :length], start, 0, self.size)

    def sample(self, length: int, device: torch.device) -> Int[Tensor, "1 length"] | None:
        """Draw the positions of `length` tokens in training; None in evaluation, or if positions are not random."""
        return self.drawn(length, device)[None] if self.size and self.training else None

    def known(self, positions: Int[Tensor, "rows length"]) -> Numbers:
        """Return positions that `forward` returned earlier; without rows if the batch is empty."""
        return Numbers(positions, 0, 0, self.size or positions.shape[1])

    def drawn(self, length: int, device: torch.device) -> Int[Tensor, " length"]:
        """Draw the positions of `length` tokens."""
        random = uniform(self.size + 1, device)
        sample = length * (self.longest / length) ** random[0]
        chosen = random[1:].argsort().argsort() < sample
        numbers = torch.arange(self.size, device=device)
        return torch.where(chosen, numbers, self.size).sort().values[:length]
