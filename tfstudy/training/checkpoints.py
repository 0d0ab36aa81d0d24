"""Checkpoints: when they are written, and how training continues from one."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lightning.pytorch import Callback, LightningModule, Trainer
from lightning.pytorch.plugins.io import TorchCheckpointIO

from tfstudy.runs.files import link_or_copy
from tfstudy.training.recovery import BEST, LAST, PREVIOUS
from tfstudy.training.saved_weights import STATE_KEY, save_checkpoint


class Checkpoints(Callback):
    """Writes `last.ckpt` after every epoch, and `best.ckpt` when the validation loss is the lowest so far.

    The last checkpoint but one is kept as `previous.ckpt` until the run is finished.
    """

    state_key = STATE_KEY

    def __init__(self, folder: Path, run: str) -> None:
        self.folder, self.run = folder, run
        self.best, self.best_step = math.inf, 0

    def state_dict(self) -> dict[str, Any]:
        return {"run": self.run, "best": self.best, "best_step": self.best_step}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.best, self.best_step = state_dict["best"], state_dict.get("best_step", 0)

    def on_train_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        loss = float(trainer.callback_metrics.get("validation_loss", math.inf))
        if loss < self.best:
            self.best, self.best_step = loss, trainer.global_step
            trainer.save_checkpoint(self.folder / BEST)
        if trainer.is_global_zero and (self.folder / LAST).exists():
            link_or_copy(self.folder / LAST, self.folder / PREVIOUS)
        trainer.save_checkpoint(self.folder / LAST)


class Resume(Callback):
    """Continues training from a checkpoint: weights, optimiser, schedule, loss scale and the states of callbacks.

    Lightning's own way also restores the counters of its loops; it can skip a validation, and without a validation
    split it does not end. Here training continues at the start of an epoch, with only the numbers of steps and epochs.
    """

    state_key = "resume"

    def __init__(self, checkpoint: dict[str, Any], epochs: int, callbacks: Sequence[Callback]) -> None:
        self._checkpoint, self._epochs, self._callbacks = checkpoint, epochs, callbacks

    def setup(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        """Load what does not depend on the device; a callback without a state in the checkpoint starts afresh."""
        pl_module.load_state_dict(self._checkpoint["state_dict"])
        for callback in self._callbacks:
            if state := self._checkpoint["callbacks"].get(callback.state_key):
                callback.load_state_dict(state)
        epochs, steps = trainer.fit_loop.epoch_progress.current, trainer.fit_loop.epoch_loop
        epochs.processed = epochs.completed = self._epochs  # type: ignore[attr-defined]
        steps.automatic_optimization.optim_progress.optimizer.step.total.completed = self._checkpoint["global_step"]

    def on_fit_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Load the state of the optimiser, which is on the device now."""
        trainer.optimizers[0].load_state_dict(self._checkpoint["optimizer_states"][0])
        trainer.lr_scheduler_configs[0].scheduler.load_state_dict(self._checkpoint["lr_schedulers"][0])
        if scale := self._checkpoint.get("MixedPrecision"):
            trainer.precision_plugin.load_state_dict(scale)


class AtomicCheckpointIO(TorchCheckpointIO):
    """Writes checkpoints atomically and with a digest. Lightning's own writer goes through the temporary folder."""

    def save_checkpoint(self, checkpoint: dict[str, Any], path: str | Path, storage_options: Any = None) -> None:
        save_checkpoint(checkpoint, Path(path))
