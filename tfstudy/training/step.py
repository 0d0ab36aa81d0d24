"""A training step: the contract, the eager step, and the whole step as work on tensors that keep their place."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from tfstudy.config.schema import TrainConfig
from tfstudy.data.encoding import Batch
from tfstudy.data.resident import ResidentRows
from tfstudy.data.shapes import Shape
from tfstudy.data.vocabulary import PAD
from tfstudy.models.base import Model
from tfstudy.models.parts.layers import gradient_checkpointing
from tfstudy.models.parts.tokens import RaggedGroup
from tfstudy.training.loss import follows_eos, predicted_inputs, ragged_group, summed_loss, target_tokens
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


class BatchLoss:
    """The loss of micro-batches, summed over target tokens, compiled or not."""

    def __init__(self, model: Model, config: TrainConfig) -> None:
        self._model, self._config = model, config
        self._forward: Callable[[Sequence[RaggedGroup]], Tensor] = model.forward_groups
        if config.compile:
            self._forward = torch.compile(model.forward_groups)

    def __call__(self, micro_batch: MicroBatch, teacher_forcing: bool) -> Tensor:
        """Return the summed loss, with decoder inputs from the targets or, in scheduled sampling, from the model."""
        groups, targets = [ragged_group(rows) for rows in micro_batch], target_tokens(micro_batch)
        if not teacher_forcing:
            groups = [
                group._replace(tokens=predicted_inputs(self._model, *group[:2], group.tokens.shape[1]))
                for group in groups
            ]
            if self._config.sampling_stops_at_eos:
                targets = targets.masked_fill(follows_eos(groups), PAD)
        with gradient_checkpointing(self._config.gradient_checkpointing):
            logits = self._forward(groups)
        return summed_loss(logits, targets, self._config.label_smoothing)


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
