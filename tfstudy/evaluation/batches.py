"""Batches of examples that fit into the memory, by an estimate first and by trial where the estimate is too low."""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, TypeVar

import torch
from torch import Tensor, nn

from tfstudy.models.base import Model
from tfstudy.training.memory import BUDGET, OutOfMemoryError, attempt

T = TypeVar("T")
FLOAT = 4  # bytes
CANDIDATES = 4  # copies that beam search makes of the logits of a position: log-probabilities, scores, sorted ones
SCORES = 16  # attention scores that are kept for a pair of positions: one for each head


class MemoryUse(NamedTuple):
    """Estimates of the memory that a model uses for one row, in bytes."""

    width: int  # activations at a position: the outputs of all layers
    vocab: int
    hypotheses: int  # of beam search; 1 is greedy

    @classmethod
    def of(cls, model: Model, vocab: int, hypotheses: int) -> "MemoryUse":
        """Return the estimates for a model: each matrix gives as many activations as it has rows, embeddings none."""
        embeddings = {id(module.weight) for module in model.modules() if isinstance(module, nn.Embedding)}
        matrices = [p for p in model.parameters() if p.ndim > 1 and id(p) not in embeddings]
        widths = [p.shape[0] for p in matrices if p.shape[0] != vocab]  # the output layer has that of `vocab`
        return cls(sum(widths), vocab, hypotheses)

    def decoding(self, source: Tensor, target: Tensor) -> Tensor:
        """Return bytes per row: about a quarter of the activations are kept in the state; one position has logits."""
        return self.hypotheses * ((source + target) * self.width + CANDIDATES * FLOAT * self.vocab)

    def teacher_forcing(self, source: Tensor, target: Tensor) -> Tensor:
        """Return bytes per row: logits of all target positions, attention scores, half of the activations."""
        attention = SCORES * target * (source + target)
        return FLOAT * (2 * target * self.vocab + attention + (source + target) * self.width // 2)


def in_batches(
    compute: Callable[[Tensor], Sequence[T]],
    order: Tensor,
    source: Tensor,
    target: Tensor,
    bytes_of_row: Callable[[Tensor, Tensor], Tensor],
    most_rows: int,
) -> Iterator[tuple[Tensor, Sequence[T]]]:
    """Yield consecutive parts of `order` and what `compute` returns for them, within `most_rows` and `BUDGET`.

    `source` and `target` are the lengths of all rows; a batch is padded to its longest. If memory runs out all the
    same, this and all further batches have half as many rows. `OutOfMemoryError` if a single row is too much.
    """
    start = 0
    while start < len(order):
        index = order[start : start + most_rows]
        needed = bytes_of_row(source[index].cummax(0).values, target[index].cummax(0).values)
        fitting = int((needed * torch.arange(1, len(index) + 1) <= BUDGET).sum())
        index = index[: max(1, fitting)]
        results = attempt(lambda index=index: compute(index))  # type: ignore[misc]
        if results is None:
            if len(index) == 1:
                raise OutOfMemoryError(
                    f"not enough memory for a single example: its source has {int(source[index]) - 1} tokens, and its "
                    f"output may have {int(target[index])}"
                )
            most_rows = len(index) // 2
            continue
        yield index, results
        start += len(index)
