"""Attention with explicit scores in bounded memory."""

from collections.abc import Callable, Iterator

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from tfstudy.models.parts.layers import same_dropout

MAX_ELEMENTS = 2**24  # of one intermediate tensor: 64 MiB of float32
ALL = slice(None)


def in_chunks(compute: Callable[[slice, slice], Tensor], rows: int, queries: int, size: int, calls: int = 1) -> Tensor:
    """Return `compute(ALL, ALL)`, a tensor (rows, ..., queries, width), in chunks if it is too large for one pass.

    `compute` takes slices of the rows and of the queries. Its largest intermediate tensor has `size` elements for each
    pair of a row and a query, and at most `MAX_ELEMENTS` in a chunk of several pairs. For gradients, each chunk is
    computed again in the backward pass, so that only one chunk's intermediates are in memory at a time. `calls` is the
    number of such calls of which the backward pass would have the intermediates in memory at once.
    """
    if rows * queries * size * calls <= MAX_ELEMENTS:
        return compute(ALL, ALL)
    pairs = max(1, MAX_ELEMENTS // size)
    if pairs >= queries:
        return torch.cat([_run(compute, part, ALL) for part in _slices(rows, pairs // queries)])
    each_row = [
        torch.cat([_run(compute, row, part) for part in _slices(queries, pairs)], -2) for row in _slices(rows, 1)
    ]
    return torch.cat(each_row)


def _slices(length: int, step: int) -> Iterator[slice]:
    return (slice(start, start + step) for start in range(0, length, step))


def _run(compute: Callable[[slice, slice], Tensor], rows: slice, queries: slice) -> Tensor:
    if not torch.is_grad_enabled():
        return compute(rows, queries)
    computed: Tensor = checkpoint(same_dropout(compute), rows, queries, use_reentrant=False)
    return computed
