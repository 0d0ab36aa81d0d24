"""Run the micro-batches of a step on CPU threads, with a result that does not depend on the number of threads."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import torch
from torch import Tensor

from tfstudy.data.batching import mix
from tfstudy.models.layers import dropout_seed


class MicroBatchExecutor:
    """Computes micro-batches one after the other, or on threads between `start` and `stop`.

    Each thread uses one thread within torch, and so does all other work of the process until `stop`.
    """

    def __init__(self) -> None:
        self._pool: ThreadPoolExecutor | None = None
        self._torch_threads = 0

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

    def loss(self, loss_of: Callable[[int], Tensor], count: int, parameters: Sequence[Tensor], seed: int) -> Tensor:
        """Return the sum of `loss_of(0)` to `loss_of(count - 1)`, with its gradient already computed.

        The gradients are added in order and each micro-batch has its own dropout seed, so the sum does not depend on
        the number of threads. Without micro-batches (fewer rows than devices) it is a zero that takes part in backward.
        """
        # threads do not inherit autocast
        cast = torch.autocast("cpu", torch.get_autocast_dtype("cpu"), enabled=torch.is_autocast_enabled("cpu"))

        def compute(number: int) -> tuple[Tensor, tuple[Tensor, ...]]:
            with dropout_seed(mix(seed, number)), torch.enable_grad(), cast:
                loss = loss_of(number)
            return loss.detach(), torch.autograd.grad(loss, parameters, materialize_grads=True)

        computed = list((self._pool.map if self._pool else map)(compute, range(count)))
        if not computed:
            computed = [(torch.zeros(()), tuple(torch.zeros_like(p) for p in parameters))]
        total = torch.stack([loss for loss, _ in computed]).sum()
        gradients = computed[0][1]
        for _, more in computed[1:]:
            gradients = tuple(torch._foreach_add(gradients, more))  # not in place: two biases may share one gradient
        loss: Tensor = _KnownGradient.apply(total, gradients, *parameters)  # type: ignore[no-untyped-call]
        return loss


class _KnownGradient(torch.autograd.Function):
    """A value with a known gradient, which backward only scales."""

    @staticmethod
    def forward(ctx: Any, value: Tensor, gradients: Sequence[Tensor], *parameters: Tensor) -> Tensor:
        ctx.gradients = gradients
        return value.clone()

    @staticmethod
    def backward(ctx: Any, *outer: Tensor) -> Any:
        return None, None, *torch._foreach_mul(ctx.gradients, outer[0])
