"""The LightningModule that trains any model."""

import math
from typing import Any

import torch
from lightning.pytorch import LightningModule
from torch import Tensor, nn
from torchmetrics import MeanMetric

from tfstudy.config.schema import TrainConfig
from tfstudy.data.batching import DROPOUT, mix
from tfstudy.data.encoding import Batch, micro_batch_count
from tfstudy.models.base import Model
from tfstudy.training.loss import TrainingLoss, logit_bytes, validate
from tfstudy.training.memory import within_budget
from tfstudy.training.step import Gradients, PlainGradients, ThreadedGradients, build_optimizer, learning_rate_factor


class DivergenceError(ArithmeticError):
    """The loss is not a finite number."""


class Seq2Seq(LightningModule):
    """Maximum likelihood training of a `Model` on the batches of a `TaskData`, with manual optimisation.

    The loss is the sum over target tokens, divided by `batch.tokens` unless `config.loss_reduction` is `sum`. All
    random numbers of a step come from generators seeded by (seed, step), so a resumed run continues as if it had
    never stopped. Every `config.log_interval` steps it logs `train_loss` (nats per target token, the mean since the
    last time), `gradient_norm` (before clipping) and `learning_rate`, and after validation `validation_loss`
    (without label smoothing), `validation_accuracy` (of target tokens, teacher-forced) and `validation_exact_match`
    (by greedy decoding). `DivergenceError` if a training loss is not finite, or that of validation is nan.

    `compute_gradients` returns the loss and gradients of a batch: `PlainGradients`, or on a CPU `ThreadedGradients`;
    the callback `Execution` replaces it by `GraphedGradients`. They are clipped in `on_before_optimizer_step`.
    """

    def __init__(self, model: Model, target_vocab: int, config: TrainConfig | None = None, seed: int = 0) -> None:
        super().__init__()
        self.automatic_optimization = False
        self.model, self.config = model, config or TrainConfig()
        self.compute_gradients = PlainGradients(TrainingLoss(model, self.config))
        self.gradient_norm = torch.zeros(())  # of the last step, before clipping
        self.train_loss = MeanMetric(nan_strategy="disable")  # the other strategies wait for the device at every step
        self._validated: list[tuple[Any, ...]] = []  # the sums of each part of the validation
        self._seed, self._target_vocab, self._threads = seed, target_vocab, torch.get_num_threads()

    def on_fit_start(self) -> None:
        """Start threads for micro-batches on a CPU, where batches are divided and the model allows it.

        Torch uses one thread until `teardown`, since their number within an operation changes its rounding. A small
        step is a single micro-batch and then uses one core.
        """
        if self.device.type != "cpu":
            return
        count = 1 if self.config.compile else micro_batch_count(self.config.micro_batches, self.device)
        divided = self.model.parallel and count > 1 and self.config.batch_size > 1
        self._threads = torch.get_num_threads()
        if divided and self._threads > 1 and type(self.compute_gradients) is PlainGradients:
            self.compute_gradients = ThreadedGradients(self.compute_gradients.loss_of, self._threads)
        torch.set_num_threads(1)

    def teardown(self, stage: str) -> None:
        self.compute_gradients.stop()
        self.compute_gradients = PlainGradients(self.compute_gradients.loss_of)
        torch.set_num_threads(self._threads)

    def training_step(self, batch: Batch, batch_idx: int) -> Tensor:
        """Take one step of the optimiser, or one of `config.accumulate_grad_batches` parts of it; return the loss.

        Gradients come from `torch.autograd.grad`, so hooks of `backward` are not called; there is one device.
        """
        optimizer: Any = self.optimizers()
        schedule: Any = self.lr_schedulers()
        accumulated = self.config.accumulate_grad_batches
        number = self.trainer.current_epoch * int(self.trainer.num_training_batches) + batch_idx
        seed = self._seed_step(number)
        teacher_forcing = self.config.teacher_forcing == 1 or bool(torch.rand(()) < self.config.teacher_forcing)
        if number % accumulated == 0:
            optimizer.zero_grad()
        loss, gradients = self.compute_gradients(batch, seed, teacher_forcing)
        self._accumulate(gradients, batch.tokens)
        mean = loss / batch.tokens
        self.train_loss.update(mean)
        if (number + 1) % accumulated == 0:
            optimizer.step()  # calls `on_before_optimizer_step`
            if self.global_step % self.config.log_interval == 0 or self.global_step == self.config.steps:
                self._log_training(optimizer.param_groups[0]["lr"])
            schedule.step()
        return mean

    def _seed_step(self, number: int) -> int:
        """Seed torch's generators for a batch, counted from the start of training, and return the seed."""
        seed = mix(mix(self._seed, DROPOUT), number)
        if self.device.type == "cpu":
            # `torch.manual_seed` formats a stack trace for each kind of device that is missing
            torch.default_generator.manual_seed(seed)
        else:
            torch.manual_seed(seed)
        return seed

    def _accumulate(self, gradients: Gradients, tokens: float) -> None:
        """Add the gradients of a summed loss to those of the parameters, scaled."""
        scale = torch.ones((), device=self.device) / self.config.accumulate_grad_batches
        scale = scale if self.config.loss_reduction == "sum" else scale / tokens
        parameters = self.compute_gradients.parameters
        for parameter, gradient in zip(parameters, torch._foreach_mul(gradients, scale), strict=True):
            parameter.grad = gradient if parameter.grad is None else parameter.grad + gradient

    def on_before_optimizer_step(self, optimizer: torch.optim.Optimizer) -> None:
        """Clip the gradient; callbacks have seen it before that."""
        maximum = self.config.gradient_clip_norm or math.inf
        self.gradient_norm = nn.utils.clip_grad_norm_(self.parameters(), maximum)

    def _log_training(self, learning_rate: float) -> None:
        loss = float(self.train_loss.compute())
        self.train_loss.reset()
        self._log(train_loss=loss, gradient_norm=float(self.gradient_norm), learning_rate=learning_rate)
        if not math.isfinite(loss):
            raise DivergenceError(f"the training loss is {loss} at step {self.global_step}")

    def validation_step(self, batch: Batch, batch_idx: int) -> None:
        for micro_batch in batch.micro_batches:
            for part in within_budget(micro_batch, lambda rows: logit_bytes(rows, self._target_vocab)):
                self._validated.append(validate(self.model, part))

    def on_validation_epoch_end(self) -> None:
        loss, correct, tokens, matches, rows = (sum(values) for values in zip(*self._validated, strict=True))
        self._validated.clear()
        shares = {"loss": loss / tokens, "accuracy": correct / tokens, "exact_match": matches / rows}
        metrics = {f"validation_{name}": float(value) for name, value in shares.items()}
        self.log_dict(metrics, logger=False)  # for callbacks
        self._log(**metrics)
        if math.isnan(metrics["validation_loss"]):
            raise DivergenceError(f"the validation loss is nan at step {self.global_step}")

    def _log(self, **metrics: float) -> None:
        """Pass metrics to every logger; `self.log` logs a value again at every step until the next one."""
        for logger in self.loggers:
            logger.log_metrics(metrics, self.global_step)

    def configure_optimizers(self) -> Any:
        optimizer = build_optimizer(self.model, self.config)
        schedule = torch.optim.lr_scheduler.LambdaLR(
            optimizer, lambda step: learning_rate_factor(self.config, step, self.model.dim)
        )
        return {"optimizer": optimizer, "lr_scheduler": schedule}
