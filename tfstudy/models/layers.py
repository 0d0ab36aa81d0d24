"""Layers that several architectures use: dropout."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

import torch
from jaxtyping import Float
from torch import nn

Out = TypeVar("Out")


class _DropoutGenerator(threading.local):
    """The generator that `Dropout` draws from in this thread; None is torch's global generator."""

    generator: torch.Generator | None = None


_DROPOUT = _DropoutGenerator()


@contextmanager
def dropout_seed(seed: int) -> Iterator[None]:
    """Within this context, `Dropout` on a CPU draws from a generator of the current thread, seeded with `seed`."""
    previous, _DROPOUT.generator = _DROPOUT.generator, torch.Generator().manual_seed(seed)
    try:
        yield
    finally:
        _DROPOUT.generator = previous


def same_dropout(function: Callable[..., Out]) -> Callable[..., Out]:
    """Return the function, with the same dropout on a CPU at each call."""
    seed = int(torch.empty((), dtype=torch.int64).random_(generator=_DROPOUT.generator))

    def call(*arguments: object) -> Out:
        with dropout_seed(seed):
            return function(*arguments)

    return call


class Dropout(nn.Module):
    """Dropout as in `nn.Dropout`, with a faster draw on CPU: one 64-bit random number for four elements.

    The probability is rounded to a multiple of 2^-16, and kept activations are scaled by the rounded probability, so
    that the expectation stays the same (`benchmarks/models/dropout.py`).
    """

    def __init__(self, probability: float) -> None:
        super().__init__()
        self.probability = probability
        self._threshold = min(round(probability * 2**16), 2**16 - 1)

    def forward(self, x: Float[torch.Tensor, "*shape"]) -> Float[torch.Tensor, "*shape"]:
        if not self.training or not self._threshold:
            return x
        if x.device.type != "cpu":
            return nn.functional.dropout(x, self.probability)
        bits = torch.empty((x.numel() + 3) // 4, dtype=torch.int64)
        bits = bits.random_(-(2**63), None, generator=_DROPOUT.generator).view(torch.int16)
        mask = torch.empty(x.shape, dtype=x.dtype)
        torch.ge(bits[: x.numel()].view(x.shape), self._threshold - 2**15, out=mask)
        return x * mask.mul_(1 / (1 - self._threshold / 2**16))
