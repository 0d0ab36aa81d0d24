"""The numbers of positions: 0, 1, ..., random numbers of a larger range, and positions of digits in their numbers."""

from collections.abc import Collection, Sequence
from random import Random
from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Int
from torch import Tensor, nn

from tfstudy.models.parts.layers import uniform
from tfstudy.models.parts.positions.base import Places, Setup
from tfstudy.models.parts.positions.schemes import Learned

SPECIAL = 4  # padding, begin, end and unknown have the first ids
Rows = Sequence[Int[Tensor, "_ _"]]  # one tensor for each group


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
    """Gives tokens their positions: 0, 1, ..., or with a `size` above 0 random positions below it, in ascending order
    (Ruoss et al. 2023, arXiv 2305.16843).

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


class DigitState(NamedTuple):
    """What the positions of the digits that follow depend on."""

    offset: Int[Tensor, " batch"]  # added to all positions of digits
    last: Int[Tensor, " batch"]  # the position of the last token, without the offset; 0 if it is no digit


class DigitPositions(nn.Module):
    """A learned embedding of the position of each digit in its number, which counts from 1; 0 is for all other tokens
    (McLeish et al. 2024, arXiv 2405.17399; Cho et al. 2024, arXiv 2405.20671).

    A number is a sequence of digits without another token between them. If its first digit is the least significant
    one, digits that belong together have the same position in all operands and the result. In training, an offset is
    added to all positions of a group, so that the whole table is trained; it is drawn such that the table is not
    exceeded by numbers as long as the source (padding included), and 0 if the table is not longer by two. Larger
    positions have the last embedding. Before `mark_digits`, all tokens are digits.
    """

    source_digits: Tensor
    target_digits: Tensor

    def __init__(self, setup: Setup, source_vocab: int, target_vocab: int) -> None:
        super().__init__()
        self.size, self.table = setup.positions, Learned(setup)
        for name, vocab in (("source_digits", source_vocab), ("target_digits", target_vocab)):
            self.register_buffer(name, torch.arange(vocab) >= SPECIAL, persistent=False)

    def start(self, source: Int[Tensor, "batch source"]) -> DigitState:
        """Return the state before the first token."""
        zeros = source.new_zeros(len(source))
        room = self.size - source.shape[1]
        if not self.training or room <= 1:
            return DigitState(zeros, zeros)
        return DigitState(zeros + (uniform(1, source.device) * room).long(), zeros)

    def positions(
        self, tokens: Int[Tensor, "batch length"], digits: Bool[Tensor, " vocab"], state: DigitState
    ) -> tuple[Int[Tensor, "batch length"], DigitState]:
        """Return the positions of tokens that follow those in the state, and the state after them."""
        digit, steps = digits[tokens], torch.arange(1, tokens.shape[1] + 1, device=tokens.device)
        other = torch.where(digit, 0, steps).cummax(1).values  # the last token up to each that is no digit
        within = steps - other + torch.where(other == 0, state.last[:, None], 0)
        positions = torch.where(digit, within, 0)
        shifted = torch.where(digit, within + state.offset[:, None], 0)
        return shifted.clamp(max=self.size - 1), state._replace(last=positions[:, -1])

    def embed(self, x: Tensor, positions: Rows) -> Tensor:
        """Add the embeddings of all groups' positions to their flat embeddings."""
        return self.table.embed(x, torch.cat([group.flatten() for group in positions]))


def digits_of_sources(digits: DigitPositions | None, sources: Rows) -> tuple[Rows, list[tuple[Tensor, ...]]]:
    """Return the positions of the digits of each group, and what its state keeps for those of the target."""
    if digits is None:
        return [], [()] * len(sources)
    starts = [digits.start(source) for source in sources]
    groups = zip(sources, starts, strict=True)
    return [digits.positions(source, digits.source_digits, start)[0] for source, start in groups], [*starts]


def digits_of_targets(digits: DigitPositions | None, tokens: Rows, states: Sequence[Any]) -> tuple[Rows, Sequence[Any]]:
    """Return the positions of the digits of each group, and the states after them (field `digits`)."""
    if digits is None:
        return [], states
    groups = zip(tokens, states, strict=True)
    new = [digits.positions(group, digits.target_digits, DigitState(*state.digits)) for group, state in groups]
    after = [state._replace(digits=last) for state, (_, last) in zip(states, new, strict=True)]
    return [positions for positions, _ in new], after


def mark_digits(model: nn.Module, digits: Collection[str], source: Sequence[str], target: Sequence[str]) -> None:
    """Let the model know which tokens of the source and target vocabularies are digits."""
    for module in model.modules():
        if isinstance(module, DigitPositions):
            for table, tokens in ((module.source_digits, source), (module.target_digits, target)):
                table.copy_(torch.tensor([token in digits for token in tokens]))
