"""Layers and attention in less memory: what the backward pass needs is computed again, in chunks if it is large."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from tfstudy.models.dropout import replayed_dropout, same_dropout

Out = TypeVar("Out")
MAX_ELEMENTS = 2**24  # of one intermediate tensor of `in_chunks`: 64 MiB of float32
ALL = slice(None)
_ENABLED: ContextVar[bool] = ContextVar("gradient_checkpointing", default=False)


@contextmanager
def gradient_checkpointing(enabled: bool = True) -> Iterator[None]:
    """Within this context, models of this thread keep only the inputs of each layer for the backward pass.

    The rest is computed again in the backward pass (Chen et al. 2016). The gradients are the same, dropout included: a
    layer draws the same random numbers when it is computed again.
    """
    token = _ENABLED.set(enabled)
    try:
        yield
    finally:
        _ENABLED.reset(token)


def run_layer(layer: Callable[..., Out], *arguments: object) -> Out:
    """Return `layer(*arguments)`, for one layer of a stack; its intermediates are not kept if the context says so."""
    if torch.compiler.is_compiling() or not (_ENABLED.get() and torch.is_grad_enabled()):
        return layer(*arguments)
    computed: Out = checkpoint(replayed_dropout(layer), *arguments, use_reentrant=False)
    return computed


def in_chunks(compute: Callable[[slice, slice], Tensor], rows: int, queries: int, size: int) -> Tensor:
    """Return `compute(ALL, ALL)`, a tensor (rows, ..., queries, width), in chunks if it is too large for one pass.

    `compute` takes slices of the rows and of the queries. Its largest intermediate tensor has `size` elements for each
    pair of a row and a query, and at most `MAX_ELEMENTS` in a chunk of several pairs. For gradients, each chunk is
    computed again in the backward pass, so that only one chunk's intermediates are in memory at a time.
    """
    if rows * queries * size <= MAX_ELEMENTS:
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
