"""Run the micro-batches of a step on CPU threads, with a result that does not depend on the number of threads.

A micro-batch that does not fit into the memory is computed in halves.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from typing import Any

import torch
from torch import Tensor

from tfstudy.data.batching import mix
from tfstudy.data.encoding import PaddedRows
from tfstudy.models.parts.layers import dropout_seed
from tfstudy.training.memory import BUDGET, OutOfMemoryError, attempt

MicroBatch = Sequence[PaddedRows]  # ragged groups
Gradients = tuple[Tensor, ...]


class MicroBatchExecutor:
    """Computes micro-batches one after the other, or on threads between `start` and `stop`.

    Each thread uses one thread within torch, and so does all other work of the process until `stop`. `splits` counts
    how often a micro-batch was halved because memory ran out.
    """

    def __init__(self) -> None:
        self._pool: ThreadPoolExecutor | None = None
        self._torch_threads = 0
        self.splits = 0

    def start(self) -> None:
        """Start as many threads as torch uses now, if that is more than one."""
        threads = torch.get_num_threads()
        if threads > 1 and self._pool is None:
            self._torch_threads = threads
            torch.set_num_threads(1)
            self._pool = ThreadPoolExecutor(threads, initializer=torch.set_num_threads, initargs=(1,))

    def stop(self) -> None:
        """End the threads and restore torch's number of threads."""
        if self._pool:
            self._pool.shutdown()
            self._pool = None
            torch.set_num_threads(self._torch_threads)

    def loss(
        self,
        loss_of: Callable[[MicroBatch], Tensor],
        micro_batches: Sequence[MicroBatch],
        parameters: Sequence[Tensor],
        seed: int,
    ) -> Tensor:
        """Return the sum of `loss_of` over all micro-batches, with its gradient already computed.

        The gradients are added in order and each micro-batch has its own dropout seed, so the sum does not depend on
        the number of threads. A single micro-batch draws from torch's global generator. Without micro-batches (fewer
        rows than devices) the sum is a zero that takes part in backward. `OutOfMemoryError` if even one row is too
        much.
        """
        # threads do not inherit autocast
        cast = torch.autocast("cpu", torch.get_autocast_dtype("cpu"), enabled=torch.is_autocast_enabled("cpu"))
        alone = len(micro_batches) == 1

        def compute(number: int) -> tuple[Tensor, Gradients]:
            with torch.enable_grad(), cast:
                return self.gradients(loss_of, micro_batches[number], parameters, None if alone else mix(seed, number))

        computed = list((self._pool.map if self._pool and not alone else map)(compute, range(len(micro_batches))))
        if not computed:
            computed = [(torch.zeros(()), tuple(torch.zeros_like(p) for p in parameters))]
        total, gradients = _sum(computed)
        loss: Tensor = _KnownGradient.apply(total, gradients, *parameters)  # type: ignore[no-untyped-call]
        return loss

    def gradients(
        self,
        loss_of: Callable[[MicroBatch], Tensor],
        micro_batch: MicroBatch,
        parameters: Sequence[Tensor],
        seed: int | None,
    ) -> tuple[Tensor, Gradients]:
        """Return the loss and its gradients, computed in halves if memory runs out; each half has its own seed.

        Without a seed, dropout draws from torch's global generator.
        """

        def compute() -> tuple[Tensor, Gradients]:
            with nullcontext() if seed is None else dropout_seed(seed):
                loss = loss_of(micro_batch)
                with torch.autocast(loss.device.type, enabled=False):
                    return loss.detach(), torch.autograd.grad(loss, parameters, materialize_grads=True)

        if computed := attempt(compute):
            return computed
        parts = halves(micro_batch)
        self.splits += 1
        seeds = [None if seed is None else mix(seed, number) for number in range(len(parts))]
        return _sum([self.gradients(loss_of, part, parameters, own) for part, own in zip(parts, seeds, strict=True)])


def in_memory(
    compute: Callable[[MicroBatch], object], micro_batch: MicroBatch, bytes_of: Callable[[MicroBatch], int]
) -> None:
    """Compute a micro-batch in parts of at most `BUDGET` bytes, in smaller ones where memory runs out."""
    rows = sum(len(group.source) for group in micro_batch)
    fits = rows < 2 or bytes_of(micro_batch) <= BUDGET
    if not fits or attempt(lambda: (compute(micro_batch),)) is None:
        for part in halves(micro_batch):
            in_memory(compute, part, bytes_of)


def halves(micro_batch: MicroBatch) -> tuple[MicroBatch, MicroBatch]:
    """Return a micro-batch as two with about half the rows each; `OutOfMemoryError` for a single row."""
    rows = sum(len(group.source) for group in micro_batch)
    if rows < 2:
        size = " and ".join(f"{len(ids[0])}" for group in micro_batch for ids in group)
        raise OutOfMemoryError(f"not enough memory for a single example (source and target of {size} tokens)")
    first: list[PaddedRows] = []
    second: list[PaddedRows] = []
    left = rows // 2
    for group in micro_batch:
        here = min(left, len(group.source))
        left -= here
        first += [PaddedRows(*(ids[:here] for ids in group))] * bool(here)
        second += [PaddedRows(*(ids[here:] for ids in group))] * (here < len(group.source))
    return first, second


def _sum(computed: Sequence[tuple[Tensor, Gradients]]) -> tuple[Tensor, Gradients]:
    """Return the sum of losses and the sum of their gradients, added in order."""
    gradients = computed[0][1]
    for _, more in computed[1:]:
        gradients = tuple(torch._foreach_add(gradients, more))  # not in place: two biases may share one gradient
    return torch.stack([loss for loss, _ in computed]).sum(), gradients


class _KnownGradient(torch.autograd.Function):
    """A value with a known gradient, which backward only scales."""

    @staticmethod
    def forward(ctx: Any, value: Tensor, gradients: Sequence[Tensor], *parameters: Tensor) -> Tensor:
        ctx.gradients = gradients
        return value.clone()

    @staticmethod
    def backward(ctx: Any, *outer: Tensor) -> Any:
        return None, None, *torch._foreach_mul(ctx.gradients, outer[0])
