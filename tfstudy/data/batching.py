"""The order of training: the batch at a step is a pure function of (seed, step)."""

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from tfstudy.data.encoding import Encoded

# Purposes of random numbers: each has its own stream for a seed.
ORDER, DROPOUT, RESAMPLING, FIXED_BATCHES = range(4)
MULTIPLE = 8  # of rows in a batch, with batching "fairseq"


class Batches:
    """The rows of the batch at every step, computed from (seed, step) alone.

    With `batching="random"`, each epoch is shuffled and divided into batches of `batch_size` rows, or with
    `batch_tokens` into batches of about equally many tokens: on average at most `batch_tokens`, counting the longer of
    source and target of each row. With `batching="length"`, the shuffled rows are sorted by length before they are
    divided, by target and then by source (ties stay shuffled), and then the batches are shuffled; here `batch_tokens`
    limits the padded positions on a batch's longer side. 0 is no limit; a target counts BOS and EOS, a source EOS.
    Every epoch holds every row once and has the same number of batches.

    `batching="fairseq"` divides as fairseq 0.6 does (`LanguagePairDataset.ordered_indices` and `batch_by_size`): rows
    are sorted by source and then by target, BOS does not count, and a full batch of 8 rows or more gives its last rows
    to the next batch, so that its size is a multiple of 8 (a batch that gets rows in this way may exceed
    `batch_tokens`). The batches are made once; only their order changes from epoch to epoch.

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
        self._key = _sort_key(source, target, batching)
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


def _sort_key(source: Tensor, target: Tensor, batching: str) -> Tensor:
    """Return what rows are sorted by before they are divided into batches; all zeros keep them shuffled."""
    if batching == "length":
        return target * (int(source.max()) + 1) + source
    if batching == "fairseq":
        return source * (int(target.max()) + 1) + target
    return torch.zeros_like(source)


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
