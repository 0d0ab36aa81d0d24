"""Less memory: layers that the backward pass computes again, and attention in chunks where there is no such pass."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from typing import TypeVar

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from tfstudy.models.dropout import replayed_dropout

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
    twice = nullcontext(), replayed_dropout()  # the contexts of the first and of the second computation
    computed: Out = checkpoint(layer, *arguments, use_reentrant=False, context_fn=lambda: twice)
    return computed


def in_chunks(compute: Callable[[slice], Tensor], rows: int, size: int) -> Tensor:
    """Return `compute(ALL)`, a tensor (rows, ...), without gradients in chunks of rows if it is too large for one pass.

    The largest intermediate tensor of `compute` has `size` elements for each row, and at most `MAX_ELEMENTS` in a chunk
    of several rows.
    """
    if rows * size <= MAX_ELEMENTS or torch.is_grad_enabled():
        return compute(ALL)
    step = max(1, MAX_ELEMENTS // size)
    return torch.cat([compute(slice(start, start + step)) for start in range(0, rows, step)])
