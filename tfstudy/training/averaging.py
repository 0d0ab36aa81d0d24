"""Averages of the weights over training, which are validated and evaluated in place of the last weights."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from lightning.pytorch import Callback, LightningModule, Trainer
from torch import Tensor

from tfstudy.config.schema import TrainConfig

TRAINED = "trained_weights"  # key of a checkpoint whose `state_dict` is an average: the weights to continue with


class AveragedWeights(Callback):
    """Averages the weights after each optimiser step.

    With `ema_decay` d, the average becomes d average + (1 - d) weights, from the weights after the first step on. With
    `average_last` k, it is the mean over the last k of `steps` steps, and equals the weights before them. Validation
    and checkpoints have the average as the weights of the module, so that the best checkpoint is the best average; so
    does the module after training. Without training, its weights stay as they are.

    Lightning's `WeightAveraging` copies the whole module, waits for the device at every step, and validates the initial
    weights until the first update.
    """

    def __init__(self, config: TrainConfig) -> None:
        self._decay = config.ema_decay
        self._first = max(1, config.steps - config.average_last + 1)  # step of the mean
        self._step = 0
        self._average: list[Tensor] = []  # or the weights to continue with, while the module holds the average
        self._exchanged = False

    def on_load_checkpoint(self, trainer: Trainer, pl_module: LightningModule, checkpoint: dict[str, Any]) -> None:
        """Take the average from the module, which has loaded it, and load the weights to continue with, if any."""
        if TRAINED in checkpoint:
            self._average = [weight.detach().clone() for weight in pl_module.parameters()]
            pl_module.load_state_dict(checkpoint[TRAINED])

    def on_fit_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Move the average to the device; a new one starts with the first step."""
        self._step = trainer.global_step
        weights = self._average or [weight.detach().clone() for weight in pl_module.parameters()]
        self._average = [weight.to(pl_module.device) for weight in weights]

    def on_train_batch_end(self, trainer: Trainer, pl_module: LightningModule, *_: Any) -> None:
        if trainer.global_step == self._step:  # gradients are still accumulated
            return
        self._step = trainer.global_step
        weights = [weight.detach() for weight in pl_module.parameters()]
        torch._foreach_lerp_(self._average, weights, self._share(self._step))

    def _share(self, step: int) -> float:
        """Return the share of the weights after step 1, 2, ... in the average."""
        if self._decay:
            return 1.0 if step == 1 else 1 - self._decay
        return 1 / (1 + max(0, step - self._first))

    def on_validation_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self._exchange(pl_module)

    def on_validation_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self._exchange(pl_module)

    def on_save_checkpoint(self, trainer: Trainer, pl_module: LightningModule, checkpoint: dict[str, Any]) -> None:
        if not self._average:
            return
        held = {name: value.clone() for name, value in checkpoint["state_dict"].items()}
        with self._other_weights(pl_module):
            other = {name: value.clone() for name, value in pl_module.state_dict().items()}
        average, trained = (held, other) if self._exchanged else (other, held)
        checkpoint |= {"state_dict": average, TRAINED: trained}

    def on_train_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self._exchange(pl_module)

    @contextmanager
    def _other_weights(self, module: LightningModule) -> Iterator[None]:
        self._exchange(module)
        try:
            yield
        finally:
            self._exchange(module)

    @torch.no_grad()
    def _exchange(self, module: LightningModule) -> None:
        """Exchange the weights of the module and the average, if there is one."""
        if not self._average:
            return
        self._exchanged = not self._exchanged
        for weight, average in zip(module.parameters(), self._average, strict=True):
            kept = weight.clone()
            weight.copy_(average)
            average.copy_(kept)
