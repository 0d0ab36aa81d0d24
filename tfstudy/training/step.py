"""A training step: the eager step, the whole step as work on tensors that keep their place, and the optimiser.

Imports no Lightning.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from tfstudy.config.schema import TrainConfig
from tfstudy.data.batching import ResidentRows, Shape
from tfstudy.data.encoding import PAD, Batch
from tfstudy.models.base import Model
from tfstudy.training.micro_batches import MicroBatch, MicroBatchExecutor

LossOf = Callable[[MicroBatch, bool], Tensor]  # with teacher forcing or not


class StepRunner(ABC):
    """Computes the loss of a batch, from which the gradient is computed, or whole steps."""

    whole = False  # whether `loss` has also updated the weights

    def __init__(self) -> None:
        self.gradient_norm = torch.zeros(())  # of the last step, before clipping

    @abstractmethod
    def loss(self, batch: Batch, seed: int) -> Tensor:
        """Return the loss of a batch, summed over target tokens. Torch's global generators are seeded with `seed`."""


class EagerStep(StepRunner):
    """The loss of a batch with its gradient known; the trainer clips the gradient and updates the weights."""

    def __init__(self, loss_of: LossOf, model: Model, config: TrainConfig, executor: MicroBatchExecutor) -> None:
        super().__init__()
        self._loss_of, self._model, self._config, self._executor = loss_of, model, config, executor

    def loss(self, batch: Batch, seed: int) -> Tensor:
        teacher_forcing = self._config.teacher_forcing == 1 or bool(torch.rand(()) < self._config.teacher_forcing)

        def loss_of(micro_batch: MicroBatch) -> Tensor:
            return self._loss_of(micro_batch, teacher_forcing)

        if len(batch.micro_batches) == 1 and self._config.precision == "16-mixed":
            return loss_of(batch.micro_batches[0])  # the loss is scaled before its gradient is computed
        parameters = [p for p in self._model.parameters() if p.requires_grad]
        return self._executor.loss(loss_of, batch.micro_batches, parameters, seed)


class WholeStep:
    """A teacher-forced step, from the rows of a batch to the new weights, as work on tensors that keep their place.

    `prepare` writes the rows and the learning rate; then a call computes the step, without waiting for the device, and
    writes `loss` (summed over target tokens) and `gradient_norm`. So the work of a call can be captured once for each
    shape, and replayed after each `prepare`. Gradients exist during a call only.
    """

    def __init__(
        self,
        loss_of: LossOf,
        parameters: Sequence[nn.Parameter],
        optimizer: torch.optim.Optimizer,
        config: TrainConfig,
        data: ResidentRows,
        executor: MicroBatchExecutor,
    ) -> None:
        device = data.source.device
        self._loss_of, self._parameters, self._optimizer = loss_of, parameters, optimizer
        self._config, self._data, self._executor = config, data, executor
        self._indices: dict[Shape, Tensor] = {}
        self._rate, self.loss, self.gradient_norm = torch.zeros(3, device=device).unbind()

    def prepare(self, rows: Tensor, shape: Shape) -> None:
        """Write the rows (a CPU index) of the next batch, padded to a shape, and the learning rate of the optimiser."""
        index = self._data.padded(rows, shape)
        if self._rate.is_cuda:  # from pinned memory, which is not used again before the device has read it
            index = index.pin_memory()
        if shape not in self._indices:
            self._indices[shape] = torch.empty(shape.rows, dtype=torch.long, device=self._rate.device)
        self._indices[shape].copy_(index, non_blocking=True)
        self._rate.fill_(self._optimizer.param_groups[0]["lr"])

    def __call__(self, shape: Shape) -> None:
        """Compute the step for the rows and the learning rate that were written."""
        batch = self._data.gather(self._indices[shape], shape)
        loss, gradients = self._executor.gradients(
            lambda part: self._loss_of(part, True), [batch], self._parameters, None
        )
        tokens = (batch.target[:, 1:] != PAD).sum()
        scale = 1 / tokens if self._config.loss_reduction == "mean" else torch.ones_like(self._rate)
        with torch.autocast(self._rate.device.type, enabled=False):
            self._update(torch._foreach_mul(gradients, scale))
        self.loss.copy_(loss)

    def _update(self, gradients: Sequence[Tensor]) -> None:
        """Clip the gradients and update the weights."""
        for parameter, gradient in zip(self._parameters, gradients, strict=True):
            parameter.grad = gradient
        maximum = self._config.gradient_clip_norm or float("inf")
        self.gradient_norm.copy_(nn.utils.clip_grad_norm_(self._parameters, maximum))
        with _capturable(self._optimizer, self._rate):
            self._optimizer.step()
        self._optimizer.zero_grad()


@contextmanager
def _capturable(optimizer: torch.optim.Optimizer, rate: Tensor) -> Iterator[None]:
    """Within this context, the optimiser reads its learning rate from a tensor and may be captured in a graph.

    Outside of it is as it was, so that schedules and checkpoints do not know of this.
    """
    kept = [dict(group) for group in optimizer.param_groups]
    capturing = rate.is_cuda and torch.cuda.is_current_stream_capturing()  # otherwise AdamW would warn of the flag
    for group in optimizer.param_groups:
        group.update({"lr": rate} | ({"capturable": capturing} if "capturable" in group else {}))
    try:
        yield
    finally:
        for group, before in zip(optimizer.param_groups, kept, strict=True):
            group.update(before)


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
    fused = config.precision != "16-mixed"  # a fused optimiser would have its scaled gradients clipped
    if config.optimizer == "adamw":
        betas = (config.beta1, config.beta2)
        return torch.optim.AdamW(groups, config.learning_rate, betas=betas, eps=config.adam_epsilon, fused=fused)
    return torch.optim.SGD(groups, config.learning_rate, momentum=config.beta1, nesterov=config.beta1 > 0, fused=fused)
