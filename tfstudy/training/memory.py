"""Memory: whether it ran out, and batches within a budget. Imports no Lightning."""

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

import torch

from tfstudy.data.encoding import PaddedRows
from tfstudy.errors import UserError

T = TypeVar("T")
BUDGET = 512 * 2**20  # bytes that an evaluation or a validation may use at a time, as estimated
# Of RuntimeErrors: the allocators of CPU and CUDA, cuBLAS, oneDNN
PHRASES = ("can't allocate memory", "not enough memory", "out of memory", "ALLOC_FAILED", "not create a memory object")


class OutOfMemoryError(UserError):
    """Even a single example does not fit into the memory."""


def attempt(compute: Callable[[], T]) -> T | None:
    """Return the result of `compute`; None if memory ran out, after the memory that it used has been released."""
    try:
        return compute()
    except (MemoryError, torch.OutOfMemoryError):
        pass
    except RuntimeError as error:
        if not any(phrase in str(error) for phrase in PHRASES):
            raise
    if torch.cuda.is_available():
        torch.cuda.empty_cache()  # only now: the error held the tensors
    return None


def within_budget(
    micro_batch: Sequence[PaddedRows], bytes_of: Callable[[Sequence[PaddedRows]], int]
) -> Iterator[Sequence[PaddedRows]]:
    """Yield a micro-batch, halved until each part has at most `BUDGET` bytes or a single row."""
    rows = sum(len(rectangle.source) for rectangle in micro_batch)
    if rows < 2 or bytes_of(micro_batch) <= BUDGET:
        yield micro_batch
        return
    left = rows // 2
    halves: tuple[list[PaddedRows], list[PaddedRows]] = [], []
    for source, target in micro_batch:
        for half, part in zip(halves, (slice(left), slice(left, None)), strict=True):
            if len(source[part]):
                half.append(PaddedRows(source[part], target[part]))
        left = max(0, left - len(source))
    for half in halves:
        yield from within_budget(half, bytes_of)
