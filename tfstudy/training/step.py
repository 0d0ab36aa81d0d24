"""A step of training: the loss and gradients of a batch, plainly or in threads (as CUDA graphs: `graphs.py`), the
learning rate, and the optimiser. Imports no Lightning.
"""

import math
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from typing import Any

import torch
from torch import Tensor

from tfstudy.config.schema import TrainConfig
from tfstudy.data.batching import mix
from tfstudy.data.encoding import Batch
from tfstudy.models.base import Model
from tfstudy.models.dropout import dropout_seed
from tfstudy.training.loss import MicroBatch, TrainingLoss

Gradients = tuple[Tensor, ...]  # of the parameters, in their order


class PlainGradients:
    """Computes the loss of a batch, summed over target tokens, and its gradients: one micro-batch after the other.

    The gradients are added in order, and each micro-batch has its own dropout seed, so the sum does not depend on the
    number of threads. A single micro-batch draws from torch's global generator.
    """

    def __init__(self, loss_of: TrainingLoss) -> None:
        self.loss_of = loss_of
        self.parameters = [p for p in loss_of.model.parameters() if p.requires_grad]

    def __call__(self, batch: Batch, seed: int, teacher_forcing: bool) -> tuple[Tensor, Gradients]:
        parts = batch.micro_batches
        if len(parts) == 1:
            return self.part(parts[0], None, teacher_forcing)
        seeds = [mix(seed, number) for number in range(len(parts))]
        return total(self.map(lambda part, own: self.part(part, own, teacher_forcing), parts, seeds))

    def map(self, compute: Callable[..., Any], *arguments: Iterable[Any]) -> Iterable[Any]:
        """Return the results for all micro-batches, in their order."""
        return map(compute, *arguments)

    def part(self, part: MicroBatch, seed: int | None, teacher_forcing: bool) -> tuple[Tensor, Gradients]:
        """Return the loss and gradients of a micro-batch; without a seed, dropout draws from the global generator."""
        with nullcontext() if seed is None else dropout_seed(seed):
            loss = self.loss_of(part, teacher_forcing)
            # not `backward`: threads must not add to the same `.grad`; gradients are computed outside of autocast
            with torch.autocast(loss.device.type, enabled=False):
                return loss.detach(), torch.autograd.grad(loss, self.parameters, materialize_grads=True)

    def stop(self) -> None:
        """Do nothing: there are no threads."""


class ThreadedGradients(PlainGradients):
    """Computes micro-batches on threads, each with one thread within torch."""

    def __init__(self, loss_of: TrainingLoss, threads: int) -> None:
        super().__init__(loss_of)
        self._pool = ThreadPoolExecutor(threads, initializer=torch.set_num_threads, initargs=(1,))

    def map(self, compute: Callable[..., Any], *arguments: Iterable[Any]) -> Iterable[Any]:
        cast = torch.is_autocast_enabled("cpu"), torch.get_autocast_dtype("cpu")  # which threads do not inherit

        def in_thread(*values: Any) -> Any:
            # without the cache of casts, which threads would share, and Lightning does not use either
            with torch.autocast("cpu", cast[1], enabled=cast[0], cache_enabled=False):
                return compute(*values)

        return self._pool.map(in_thread, *arguments)

    def stop(self) -> None:
        """End the threads."""
        self._pool.shutdown()


def total(computed: Iterable[tuple[Tensor, Gradients]]) -> tuple[Tensor, Gradients]:
    """Return the sum of losses and the sum of their gradients, added in order."""
    losses, gradients = zip(*computed, strict=True)
    summed: Gradients = gradients[0]
    for more in gradients[1:]:
        summed = tuple(torch._foreach_add(summed, more))  # not in place: two biases may share one gradient
    return torch.stack(losses).sum(), summed


def learning_rate_factor(config: TrainConfig, step: int, dim: int) -> float:
    """Return the learning rate of step 0, 1, ... divided by `config.learning_rate`, for a model of this width.

    With schedule `noam` it is dim^-0.5 min(step^-0.5, step warmup^-1.5), with steps counted from 1 (Vaswani et al.
    2017, eq. 3); without warm-up, (dim step)^-0.5.
    """
    warmup, step = config.warmup_steps, step + 1
    if config.schedule == "noam":
        return min(1 / math.sqrt(step), step / math.sqrt(max(1, warmup) ** 3)) / math.sqrt(dim)
    if step < warmup:
        return step / warmup
    if config.schedule == "cosine":
        return 0.5 * (1 + math.cos(math.pi * min(1.0, (step - warmup) / max(1, config.steps + 1 - warmup))))
    if config.schedule == "inverse_sqrt":
        return math.sqrt(max(1, warmup) / step)
    return 1.0


def build_optimizer(model: Model, config: TrainConfig) -> torch.optim.Optimizer:
    """Return the optimiser of a model, with weight decay for all parameters that the model does not exempt."""
    exempt = {id(parameter) for parameter in model.parameters_without_decay()}
    groups = [
        {"params": [p for p in model.parameters() if id(p) not in exempt], "weight_decay": config.weight_decay},
        {"params": [p for p in model.parameters() if id(p) in exempt], "weight_decay": 0.0},
    ]
    if config.optimizer == "adamw":
        betas = (config.beta1, config.beta2)
        return torch.optim.AdamW(groups, config.learning_rate, betas=betas, eps=config.adam_epsilon, fused=True)
    return torch.optim.SGD(groups, config.learning_rate, momentum=config.beta1, nesterov=config.beta1 > 0, fused=True)
