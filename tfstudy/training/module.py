"""The LightningModule that trains any model."""

import math
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import torch
from lightning.pytorch import LightningModule
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torchmetrics import MeanMetric, SumMetric
from torchmetrics.classification import MulticlassAccuracy

from tfstudy.config.schema import TrainConfig
from tfstudy.data.batching import DROPOUT, mix
from tfstudy.data.encoding import Batch, Rows
from tfstudy.data.vocabulary import BOS, PAD
from tfstudy.models.base import Model, dropout_seed
from tfstudy.models.ragged import Block
from tfstudy.training.optimization import rate


class DivergenceError(ArithmeticError):
    """The loss is no longer a finite number."""


class Seq2Seq(LightningModule):
    """Maximum likelihood training of a `Model` on the batches of a `TaskData`.

    The loss is the sum over labels divided by `batch.tokens`. All random numbers of a batch come from generators seeded
    by (seed, batch), torch's global one included, so that a resumed run goes on as if it had never stopped. Metrics are
    gathered on the device and read every `config.log_interval` steps: `train_loss`, `gradient_norm`, `learning_rate`, and
    after validation `validation_loss` (nats a label, not smoothed) and `validation_accuracy` (of labels,
    teacher-forced). A loss that is not finite when it is read raises `DivergenceError`.
    """

    def __init__(self, model: Model, target_vocab: int, config: TrainConfig | None = None, seed: int = 0) -> None:
        super().__init__()
        self.model = model
        self.config = config or TrainConfig()
        self._seed = seed
        self.train_loss = MeanMetric(nan_strategy="disable")  # the others wait for the device at every step
        self.validation_loss = SumMetric(nan_strategy="disable")  # a MeanMetric without nan checks ignores weights
        self.validation_labels = SumMetric(nan_strategy="disable")
        self.validation_accuracy = MulticlassAccuracy(
            target_vocab, average="micro", ignore_index=PAD, validate_args=False
        )
        self._gradient_norm = torch.zeros(())
        self._state: dict[str, Any] = {}  # of a checkpoint to go on from
        self._logged = 0
        self._pool: ThreadPoolExecutor | None = None
        self._forward: Callable[[Sequence[Block]], Tensor] = model.forward_blocks
        if self.config.compile:
            self._forward = torch.compile(model.forward_blocks)

    def training_step(self, batch: Batch, batch_idx: int) -> Tensor:
        number = (self.first_epoch + self.trainer.current_epoch) * int(self.trainer.num_training_batches) + batch_idx
        seed = mix(mix(self._seed, DROPOUT), number * self.trainer.world_size + self.global_rank)
        torch.manual_seed(seed)
        fed = self.config.teacher_forcing == 1 or bool(torch.rand(()) < self.config.teacher_forcing)
        alone = len(batch.parts) == 1
        loss = self._loss(batch.parts[0], fed) if alone else self._side_by_side(batch.parts, fed, seed)
        loss = loss / batch.tokens
        self.train_loss.update(loss.detach())
        return loss

    def _loss(self, part: Sequence[Rows], fed: bool) -> Tensor:
        """The summed loss of a part; `fed` with gold tokens or with the model's own."""
        blocks = [block(rows) for rows in part]
        if not fed:
            blocks = [b._replace(tokens=own_words(self.model, *b[:2], b.tokens.shape[1])) for b in blocks]
        return summed_loss(self._forward(blocks), labels(part), self.config.label_smoothing)

    def _side_by_side(self, parts: Sequence[Sequence[Rows]], fed: bool, seed: int) -> Tensor:
        """The summed loss of several parts, each with its gradient from a thread of its own.

        The gradients are added in the parts' order and each part has its own seed, so the sum does not depend on the
        number of threads. No parts (fewer rows than devices) give a zero that takes part in the backward pass.
        """
        parameters = [p for p in self.model.parameters() if p.requires_grad]
        cast = torch.autocast("cpu", torch.get_autocast_dtype("cpu"), enabled=torch.is_autocast_enabled("cpu"))

        def work(number: int) -> tuple[Tensor, tuple[Tensor, ...]]:
            with dropout_seed(mix(seed, number)), torch.enable_grad(), cast:
                loss = self._loss(parts[number], fed)
            return loss.detach(), torch.autograd.grad(loss, parameters, materialize_grads=True)

        done = list((self._pool.map if self._pool else map)(work, range(len(parts))))
        total = torch.stack([loss for loss, _ in done]).sum() if done else torch.zeros(())
        gradients: tuple[Tensor, ...] = done[0][1] if done else tuple(torch.zeros_like(p) for p in parameters)
        for _, more in done[1:]:
            gradients = tuple(torch._foreach_add(gradients, more))  # not in place: two biases may share one gradient
        loss: Tensor = KnownGradient.apply(total, gradients, *parameters)  # type: ignore[no-untyped-call]
        return loss

    @property
    def step(self) -> int:
        """Optimiser steps made, those before a resumption included."""
        return int(self._state.get("global_step", 0)) + int(self.trainer.global_step)

    @property
    def first_epoch(self) -> int:
        """Epochs before the resumption; checkpoints are written at an epoch's end."""
        return int(self._state.get("global_step", 0)) // self.config.validation_interval

    def resume(self, checkpoint: dict[str, Any]) -> None:
        """Goes on from a checkpoint with the next `Trainer`, which makes the steps that are left.

        Lightning's own way restores its loops' counters too; it can skip a validation, and without a validation split
        it does not end. Weights, optimiser, schedule and loss scale are all that decides what comes next.
        """
        self.load_state_dict(checkpoint["state_dict"])
        self._state = checkpoint
        self._logged = checkpoint["global_step"]

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        checkpoint["global_step"] = self.step

    def on_fit_start(self) -> None:
        """Threads that compute parts on a CPU use one thread each within torch, and so does all else in training."""
        self._threads = torch.get_num_threads()
        several = getattr(getattr(self.trainer, "datamodule", None), "parts", 1) > 1 and self.config.batch_size > 1
        if self.device.type == "cpu" and several and self.model.parallel and self._threads > 1:
            torch.set_num_threads(1)
            self._pool = ThreadPoolExecutor(self._threads, initializer=torch.set_num_threads, initargs=(1,))

    def teardown(self, stage: str) -> None:
        if self._pool:
            self._pool.shutdown()
            self._pool = None
            torch.set_num_threads(self._threads)

    def validation_step(self, batch: Batch, batch_idx: int) -> None:
        for part in batch.parts:
            logits, gold = self.model.forward_blocks([block(rows) for rows in part]), labels(part)
            self.validation_loss.update(summed_loss(logits, gold))
            self.validation_labels.update((gold != PAD).sum())
            self.validation_accuracy.update(logits, gold)

    def configure_gradient_clipping(self, optimizer: torch.optim.Optimizer, *_: Any, **__: Any) -> None:
        self._gradient_norm = nn.utils.clip_grad_norm_(self.parameters(), self.config.gradient_clip_norm or math.inf)

    def on_train_batch_end(self, *_: Any) -> None:
        step = self.step
        if step == self._logged or (step % self.config.log_interval and step != self.config.steps):
            return
        self._logged = step
        loss = float(self.train_loss.compute())
        self.train_loss.reset()
        learning_rate = self.config.learning_rate * rate(self.config, step - 1)
        self._write(step, train_loss=loss, gradient_norm=float(self._gradient_norm), learning_rate=learning_rate)
        if not math.isfinite(loss):
            raise DivergenceError(f"the training loss is {loss} at step {step}")

    def on_validation_epoch_end(self) -> None:
        metrics = {
            "validation_loss": float(self.validation_loss.compute() / self.validation_labels.compute()),
            "validation_accuracy": float(self.validation_accuracy.compute()),
        }
        self.validation_loss.reset()
        self.validation_labels.reset()
        self.validation_accuracy.reset()
        self.log_dict(metrics, logger=False)
        self._write(self.step, **metrics)

    def _write(self, step: int, **metrics: float) -> None:
        """To every logger, at once: `self.log` costs more than a small model's step, and numbers steps from 0."""
        for logger in self.loggers:
            logger.log_metrics(metrics, step)

    def configure_optimizers(self) -> Any:
        config = self.config
        parts: tuple[list[Tensor], list[Tensor]] = [], []
        for name, parameter in self.named_parameters():  # original0 is the gain of weight normalisation
            matrix = parameter.ndim > 1 and not name.endswith(("original0", "_bias"))
            parts[matrix].append(parameter)
        groups = [{"params": parts[1], "weight_decay": config.weight_decay}, {"params": parts[0], "weight_decay": 0.0}]
        fused = config.precision != "16-mixed"  # a fused optimiser would have its scaled gradients clipped
        optimizer: torch.optim.Optimizer
        if config.optimizer == "adamw":
            betas = (config.beta1, config.beta2)
            optimizer = torch.optim.AdamW(groups, config.learning_rate, betas=betas, eps=1e-9, fused=fused)
        else:
            optimizer = torch.optim.SGD(
                groups, config.learning_rate, momentum=config.beta1, nesterov=config.beta1 > 0, fused=fused
            )
        schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: rate(config, step))
        if self._state:
            optimizer.load_state_dict(self._state["optimizer_states"][0])
            schedule.load_state_dict(self._state["lr_schedulers"][0])
            if scale := self._state.get("MixedPrecision"):
                self.trainer.precision_plugin.load_state_dict(scale)
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": schedule, "interval": "step"}}


class KnownGradient(torch.autograd.Function):
    """A value whose gradient is already known; backward only scales it."""

    @staticmethod
    def forward(ctx: Any, value: Tensor, gradients: Sequence[Tensor], *parameters: Tensor) -> Tensor:
        ctx.gradients = gradients
        return value.clone()

    @staticmethod
    def backward(ctx: Any, *outer: Tensor) -> Any:
        return None, None, *torch._foreach_mul(ctx.gradients, outer[0])


def block(rows: Rows) -> Block:
    """What a model is given of these rows: sources, and targets without their last token."""
    return Block(rows.source, rows.source != PAD, rows.target[:, :-1])


def labels(part: Sequence[Rows]) -> Tensor:
    """What a model should say after each of the tokens it is given, of all rows: (positions,)."""
    return torch.cat([rows.target[:, 1:].flatten() for rows in part])


def summed_loss(logits: Tensor, gold: Tensor, smoothing: float = 0.0) -> Tensor:
    """The cross entropy, in nats, of logits (positions, vocab), summed over all labels (positions,) but PAD."""
    return cross_entropy(logits, gold, ignore_index=PAD, reduction="sum", label_smoothing=smoothing)


@torch.no_grad()
def own_words(model: Model, source: Tensor, mask: Tensor, length: int) -> Tensor:
    """Decoder inputs (batch, length): BOS, then the model's own most probable tokens, without regard to EOS."""
    state = model.encode(source, mask)
    tokens = [torch.full_like(source[:, 0], BOS)]
    for _ in range(length - 1):
        logits, state = model.decode(tokens[-1][:, None], state)
        logits[:, -1, [PAD, BOS]] = -math.inf
        tokens.append(logits[:, -1].argmax(-1))
    return torch.stack(tokens, 1)
