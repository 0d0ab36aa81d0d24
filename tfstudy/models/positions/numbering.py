"""The numbers of positions: 0, 1, ..., random numbers of a larger range, and positions of digits in their numbers."""

from collections.abc import Collection, Sequence
from random import Random
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from tfstudy.models.dropout import uniform
from tfstudy.models.positions.base import Setup
from tfstudy.models.positions.schemes import Learned
from tfstudy.models.tokens import Tokens, flat, joined, split_rows

SPECIAL = 4  # padding, begin, end and unknown have the first ids


class Numbering(nn.Module):
    """Gives tokens their positions: 0, 1, ..., or with a `size` above 0 random positions below it, in ascending order
    (Ruoss et al. 2023, arXiv 2305.16843).

    In training, the positions of source and target are the first of one random sample of distinct positions, drawn for
    each rectangle and pass. In the paper the sample has exactly as many positions as the sequence has tokens; but a
    decoder has to place the first token before it knows the length. So evaluation uses one sample of `longest`
    positions, drawn once from a fixed seed, and the size of a sample in training is drawn between both, with a uniform
    logarithm.
    """

    fixed: Tensor

    def __init__(self, size: int, longest: int) -> None:
        super().__init__()
        self.size, self.longest = size, longest
        sample = sorted(Random("positions").sample(range(size), longest)) if size else []
        self.register_buffer("fixed", torch.tensor(sample, dtype=torch.int64), persistent=False)

    def forward(self, tokens: Tokens) -> Tokens:
        """Return tokens with their positions: those that `drawn` gave them, the fixed random ones, or 0, 1, ..."""
        if not self.size or tokens.numbers:
            return tokens
        return self._placed(tokens, [self.fixed] * len(tokens.shapes))

    def drawn(self, source: Tokens, target: Tokens) -> tuple[Tokens, Tokens]:
        """Return source and target with a new sample for each rectangle, if positions are random in training."""
        if not (self.size and self.training):
            return source, target
        lengths = [max(one, other) for (_, one), (_, other) in zip(source.shapes, target.shapes, strict=True)]
        samples = [self.sample(length, source.ids.device) for length in lengths]
        return self._placed(source, samples), self._placed(target, samples)

    def sample(self, length: int, device: torch.device) -> Int[Tensor, " length"]:
        """Draw the positions of `length` tokens."""
        random = uniform(self.size + 1, device)
        sample = length * (self.longest / length) ** random[0]
        chosen = random[1:].argsort().argsort() < sample
        numbers = torch.arange(self.size, device=device)
        return torch.where(chosen, numbers, self.size).sort().values[:length]

    def _placed(self, tokens: Tokens, samples: Sequence[Tensor]) -> Tokens:
        lengths = [tokens.start + length for _, length in tokens.shapes]
        if max(lengths) > self.longest:
            raise IndexError(f"there are random positions for {self.longest} tokens, but a sequence has {max(lengths)}")
        numbers = tuple(sample[None, :length] for sample, length in zip(samples, lengths, strict=True))
        return tokens._replace(numbers=numbers, limit=self.size)


class DigitState(NamedTuple):
    """What the positions of the digits that follow depend on, for all rows."""

    offset: Int[Tensor, " rows"]  # added to all positions of digits
    last: Int[Tensor, " rows"]  # the position of the last token, without the offset; 0 if it is no digit


class DigitPositions(nn.Module):
    """A learned embedding of the position of each digit in its number, which counts from 1; 0 is for all other tokens
    (McLeish et al. 2024, arXiv 2405.17399; Cho et al. 2024, arXiv 2405.20671).

    A number is a sequence of digits without another token between them. If its first digit is the least significant
    one, digits that belong together have the same position in all operands and the result. In training, an offset is
    added to all positions of a rectangle, so that the whole table is trained; it is drawn such that the table is not
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

    def of_source(
        self, x: Float[Tensor, "tokens dim"], source: Tokens
    ) -> tuple[Float[Tensor, "tokens dim"], DigitState]:
        """Return embeddings of the source with those of its digits, and the state before the first target token."""
        start = self.start(source)
        return self._added(x, self.positions(source, self.source_digits, start)[0]), start

    def of_target(
        self, x: Float[Tensor, "tokens dim"], target: Tokens, state: DigitState
    ) -> tuple[Float[Tensor, "tokens dim"], DigitState]:
        """Return embeddings of the target with those of its digits, and the state after them."""
        at, state = self.positions(target, self.target_digits, state)
        return self._added(x, at), state

    def start(self, source: Tokens) -> DigitState:
        """Return the state before the first token, with an offset for each rectangle in training."""
        zeros = source.ids.new_zeros(sum(rows for rows, _ in source.shapes))
        offsets = []
        for (_, length), zero in zip(source.shapes, split_rows(source.shapes, zeros), strict=True):
            room = self.size - length
            random = self.training and room > 1
            offsets.append(zero + (uniform(1, zero.device) * room).long() if random else zero)
        return DigitState(joined(offsets), zeros)

    def positions(
        self, tokens: Tokens, digits: Bool[Tensor, " vocab"], state: DigitState
    ) -> tuple[Int[Tensor, " tokens"], DigitState]:
        """Return the positions of tokens that follow those in the state, and the state after them."""
        found, ends = [], []
        rows = zip(tokens.rectangles(tokens.ids), *(split_rows(tokens.shapes, part) for part in state), strict=True)
        for (ids,), offset, last in rows:
            digit, steps = digits[ids], torch.arange(1, ids.shape[1] + 1, device=ids.device)
            other = torch.where(digit, 0, steps).cummax(1).values  # the last token up to each that is no digit
            within = steps - other + torch.where(other == 0, last[:, None], 0)
            ends.append(torch.where(digit, within, 0)[:, -1])
            found.append(torch.where(digit, within + offset[:, None], 0).clamp(max=self.size - 1))
        return flat(found), state._replace(last=joined(ends))

    def _added(self, x: Tensor, at: Tensor) -> Tensor:
        return self.table.embed(x, at, self.size)


def mark_digits(model: nn.Module, digits: Collection[str], source: Sequence[str], target: Sequence[str]) -> None:
    """Let the model know which tokens of the source and target vocabularies are digits."""
    for module in model.modules():
        if isinstance(module, DigitPositions):
            for table, tokens in ((module.source_digits, source), (module.target_digits, target)):
                table.copy_(torch.tensor([token in digits for token in tokens]))
