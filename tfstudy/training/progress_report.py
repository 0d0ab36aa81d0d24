"""A Lightning callback that reports how far training is."""

import time
from collections.abc import Callable

from lightning.pytorch import Callback, LightningModule, Trainer

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
        self._first_step = trainer.global_step

    def on_train_batch_end(self, trainer: Trainer, pl_module: LightningModule, *_: object) -> None:
        if time.monotonic() - self._reported >= INTERVAL:
            self._write(trainer)

    def on_train_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self._write(trainer)

    def _write(self, trainer: Trainer) -> None:
        step, self._reported = trainer.global_step, time.monotonic()
        if trainer.is_global_zero and step > self._first_step:
            self._report(step, (self._reported - self._started) / (step - self._first_step))
