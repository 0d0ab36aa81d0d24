"""Gradient checkpointing: the intermediates of a layer are computed again in the backward pass (Chen et al. 2016)."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

import torch
from torch.utils.checkpoint import checkpoint

from tfstudy.models.parts.layers import replayed_dropout

Out = TypeVar("Out")
_ENABLED: ContextVar[bool] = ContextVar("gradient_checkpointing", default=False)


@contextmanager
def gradient_checkpointing(enabled: bool = True) -> Iterator[None]:
    """Within this context, models of this thread keep only the inputs of each layer for the backward pass.

    The gradients are the same, dropout included: a layer draws the same random numbers when it is computed again.
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
