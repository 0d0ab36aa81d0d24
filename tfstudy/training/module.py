"""The LightningModule that trains any model."""

import math
from typing import Any

import torch
from lightning.pytorch import LightningModule
from torch import Tensor, nn
from torchmetrics import MeanMetric, SumMetric
from torchmetrics.classification import MulticlassAccuracy

from tfstudy.config.schema import TrainConfig
from tfstudy.data.batching import DROPOUT, mix
from tfstudy.data.encoding import PAD, Batch, micro_batch_count
from tfstudy.models.base import Model
from tfstudy.training.loss import BatchLoss, exact_matches, ragged_group, summed_loss, target_tokens
from tfstudy.training.micro_batches import MicroBatch, MicroBatchExecutor, in_memory
from tfstudy.training.step import EagerStep, StepRunner, build_optimizer, learning_rate_factor

LOGIT_COPIES = 4  # of a validation: logits, log-probabilities, and those of the metrics


class DivergenceError(ArithmeticError):
    """The loss is not a finite number."""


class Seq2Seq(LightningModule):
    """Maximum likelihood training of a `Model` on the batches of a `TaskData`.

    The loss is the sum over target tokens, divided by `batch.tokens` unless `config.loss_reduction` is `sum`. All
    random numbers of a step come from generators seeded by (seed, step), including torch's global one, so a resumed run
    continues as if it had never stopped. Metrics are collected on the device and logged every `config.log_interval`
    steps: `train_loss` (nats per target token), `gradient_norm` and `learning_rate`, and after validation
    `validation_loss` (nats per target token, without label smoothing), `validation_accuracy` (of target tokens,
    teacher-forced) and `validation_exact_match` (by greedy decoding). `DivergenceError` if a logged loss is not finite.
    """

    def __init__(self, model: Model, target_vocab: int, config: TrainConfig | None = None, seed: int = 0) -> None:
        super().__init__()
        self.model = model
        self.config = config or TrainConfig()
        self.executor = MicroBatchExecutor()
        self._seed, self._target_vocab = seed, target_vocab
        self.train_loss = MeanMetric(nan_strategy="disable")  # the other strategies wait for the device at every step
        self.validation_loss = SumMetric(nan_strategy="disable")  # a MeanMetric without nan checks ignores weights
        self.validation_tokens = SumMetric(nan_strategy="disable")
        self.validation_accuracy = MulticlassAccuracy(
            target_vocab, average="micro", ignore_index=PAD, validate_args=False
        )
        self.validation_matches = SumMetric(nan_strategy="disable")
        self.validation_rows = SumMetric(nan_strategy="disable")
        self._logged_step = 0
        self.loss_of = BatchLoss(model, self.config)
        self._eager = EagerStep(self.loss_of, model, self.config, self.executor)
        self.runner: StepRunner = self._eager

    def on_fit_start(self) -> None:
        """Start the threads for micro-batches, where batches are split and the model allows it."""
        self._logged_step = self.global_step
        count = 1 if self.config.compile else micro_batch_count(self.config.micro_batches, self.device)
        if self.device.type == "cpu" and self.model.parallel and count > 1 and self.config.batch_size > 1:
            self.executor.start()

    def teardown(self, stage: str) -> None:
        self.executor.stop()
        self.runner = self._eager

    def training_step(self, batch: Batch, batch_idx: int) -> Tensor:
        trainer = self.trainer
        number = trainer.current_epoch * int(trainer.num_training_batches) + batch_idx
        seed = mix(mix(self._seed, DROPOUT), number * trainer.world_size + trainer.global_rank)
        if self.device.type == "cpu":
            # `torch.manual_seed` formats a stack trace for each kind of device that is missing
            torch.default_generator.manual_seed(seed)
        else:
            torch.manual_seed(seed)
        loss = self.runner.loss(batch, seed)
        mean = loss / batch.tokens
        self.train_loss.update(mean.detach())
        # devices average their gradients
        return loss * trainer.world_size if self.config.loss_reduction == "sum" else mean

    def validation_step(self, batch: Batch, batch_idx: int) -> None:
        for micro_batch in batch.micro_batches:
            in_memory(self._validate, micro_batch, self._logit_bytes)

    def _logit_bytes(self, micro_batch: MicroBatch) -> int:
        """Return the memory of a validation's logits and of the copies that the loss and the metrics make of them."""
        positions = sum(rows.target[:, 1:].numel() for rows in micro_batch)
        return LOGIT_COPIES * 4 * self._target_vocab * positions

    def _validate(self, micro_batch: MicroBatch) -> None:
        logits = self.model.forward_groups([ragged_group(rows) for rows in micro_batch])
        targets = target_tokens(micro_batch)
        loss, matches = summed_loss(logits, targets), exact_matches(logits, micro_batch)
        self.validation_accuracy.update(logits, targets)  # the last that can run out of memory
        self.validation_loss.update(loss)
        self.validation_tokens.update((targets != PAD).sum())
        self.validation_matches.update(matches)
        self.validation_rows.update(sum(len(rows.target) for rows in micro_batch))

    def configure_gradient_clipping(self, optimizer: torch.optim.Optimizer, *_: Any, **__: Any) -> None:
        maximum = self.config.gradient_clip_norm or math.inf
        self.runner.gradient_norm = nn.utils.clip_grad_norm_(self.parameters(), maximum)

    def backward(self, loss: Tensor, *args: Any, **kwargs: Any) -> None:
        if not self.runner.whole:
            super().backward(loss, *args, **kwargs)

    def optimizer_step(self, epoch: int, batch_idx: int, optimizer: Any, optimizer_closure: Any = None) -> None:
        """Take a whole step: forward, backward, clip, optimiser."""
        if self.runner.whole:  # the closure calls `training_step`, which updates the weights
            optimizer_closure()
        else:
            super().optimizer_step(epoch, batch_idx, optimizer, optimizer_closure)

    def on_train_batch_end(self, *_: Any) -> None:
        step = self.global_step
        if step == self._logged_step or (step % self.config.log_interval and step != self.config.steps):
            return
        self._logged_step = step
        loss = float(self.train_loss.compute())
        self.train_loss.reset()
        learning_rate = self.config.learning_rate * self._rate_factor(step - 1)
        self._log(step, train_loss=loss, gradient_norm=float(self.runner.gradient_norm), learning_rate=learning_rate)
        if not math.isfinite(loss):
            raise DivergenceError(f"the training loss is {loss} at step {step}")

    def on_validation_epoch_end(self) -> None:
        metrics = {
            "validation_loss": float(self.validation_loss.compute() / self.validation_tokens.compute()),
            "validation_accuracy": float(self.validation_accuracy.compute()),
            "validation_exact_match": float(self.validation_matches.compute() / self.validation_rows.compute()),
        }
        counts = (self.validation_tokens, self.validation_matches, self.validation_rows)
        for metric in (self.validation_loss, self.validation_accuracy, *counts):
            metric.reset()
        self.log_dict(metrics, logger=False)
        self._log(self.global_step, **metrics)

    def _log(self, step: int, **metrics: float) -> None:
        """Pass metrics to every logger: `self.log` costs more than a step of a small model and counts steps from 0."""
        for logger in self.loggers:
            logger.log_metrics(metrics, step)

    def _rate_factor(self, step: int) -> float:
        return learning_rate_factor(self.config, step, self.model.dim)

    def configure_optimizers(self) -> Any:
        optimizer = build_optimizer(self.model, self.config)
        schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: self._rate_factor(step))
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": schedule, "interval": "step"}}
