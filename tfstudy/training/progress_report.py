"""A Lightning callback that reports how far training is."""

import time
from collections.abc import Callable

from lightning.pytorch import Callback, LightningModule, Trainer

from tfstudy.training.module import Seq2Seq

INTERVAL = 2.0  # seconds between two reports


class ProgressReport(Callback):
    """Calls `report(step, seconds_per_step)` after every validation and every two seconds, in the first process only.

    The seconds are those of this process, validation included.
    """

    state_key = "progress_report"

    def __init__(self, report: Callable[[int, float], None]) -> None:
        self._report = report

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self._started = self._reported = time.monotonic()
        self._first_step = self._step(pl_module)

    def on_train_batch_end(self, trainer: Trainer, pl_module: LightningModule, *_: object) -> None:
        if time.monotonic() - self._reported >= INTERVAL:
            self._write(trainer, pl_module)

    def on_train_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self._write(trainer, pl_module)

    def _write(self, trainer: Trainer, pl_module: LightningModule) -> None:
        step, self._reported = self._step(pl_module), time.monotonic()
        if trainer.is_global_zero and step > self._first_step:
            self._report(step, (self._reported - self._started) / (step - self._first_step))

    @staticmethod
    def _step(module: LightningModule) -> int:
        assert isinstance(module, Seq2Seq)
        return module.step
