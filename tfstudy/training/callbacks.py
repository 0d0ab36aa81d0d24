"""Callbacks: the progress of training, its checkpoints, and how it continues from one."""

import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from lightning.pytorch import Callback, LightningModule, Trainer
from lightning.pytorch.plugins.io import TorchCheckpointIO

from tfstudy.data.encoding import Batch
from tfstudy.training import checkpoints as files
from tfstudy.training.checkpoints import BEST, LAST, PREVIOUS
from tfstudy.training.progress import ProgressLines


class TrainingProgress(Callback):
    """Shows step, loss, target tokens per second and time left, and passes a line per validation to `log`.

    Its state in a checkpoint holds the seconds of training and the target tokens since the start of the run.
    """

    state_key = "progress"

    def __init__(self, log: Callable[[str], None] = lambda line: None) -> None:
        self._log = log
        self._earlier: dict[str, float] = {"seconds": 0.0, "tokens": 0.0}  # of earlier processes
        self._started, self._tokens = time.monotonic(), 0.0

    def state_dict(self) -> dict[str, Any]:
        return {
            "seconds": self._earlier["seconds"] + time.monotonic() - self._started,
            "tokens": self._earlier["tokens"] + self._tokens,
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self._earlier = state_dict

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self._started = time.monotonic()
        self._lines = ProgressLines("training", trainer.max_steps, "steps", trainer.global_step)

    def on_train_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: Any, batch: Batch, _: int
    ) -> None:
        self._tokens += batch.tokens
        if self._lines.due():
            loss = float(outputs["loss"])  # waits for the device
            self._lines.update(trainer.global_step, f"loss {loss:.4f}, {self._speed():,.0f} tokens/s")

    def on_validation_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        shown = (f"{name.replace('_', ' ')} {value:.4f}" for name, value in trainer.callback_metrics.items())
        self._log(f"step {trainer.global_step}  {self._speed():,.0f} tokens/s  {', '.join(shown)}")

    def _speed(self) -> float:
        """Target tokens per second."""
        return self._tokens / (time.monotonic() - self._started)


class Checkpoints(Callback):
    """Writes `last.ckpt` after every epoch, and `best.ckpt` when the validation loss is the lowest so far.

    Lightning continues exactly from the start of an epoch, not from its end, so an epoch's checkpoint is written when
    the next one starts, or training ends. The last checkpoint but one is kept as `previous.ckpt` until the run is
    finished. A checkpoint holds the length and the sha256 of the file of metrics, which belongs to it.
    """

    state_key = files.STATE_KEY

    def __init__(self, folder: Path, run: str, metrics: Path | None = None) -> None:
        self.folder, self.run, self.metrics = folder, run, metrics
        self.best = math.inf  # the lowest validation loss so far
        self._written = 0  # the step of the last checkpoint

    def state_dict(self) -> dict[str, Any]:
        digest = files.metrics_digest(self.metrics) if self.metrics else None
        return {"run": self.run, "best": self.best, "metrics": digest}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.best = state_dict["best"]

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self._written = trainer.global_step

    def on_train_batch_start(self, trainer: Trainer, pl_module: LightningModule, batch: Batch, batch_idx: int) -> None:
        if batch_idx == 0:
            self._write(trainer)

    def on_train_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self._write(trainer)

    def _write(self, trainer: Trainer) -> None:
        if trainer.global_step == self._written:
            return
        self._written = trainer.global_step
        loss = float(trainer.callback_metrics.get("validation_loss", math.inf))
        if loss < self.best:
            self.best = loss
            trainer.save_checkpoint(self.folder / BEST)
        if (self.folder / LAST).exists():
            (self.folder / LAST).replace(self.folder / PREVIOUS)  # from which a run resumes if it is killed here
        trainer.save_checkpoint(self.folder / LAST)


class AtomicCheckpointIO(TorchCheckpointIO):
    """Writes checkpoints atomically and with a digest. Lightning's own writer goes through the temporary folder."""

    def save_checkpoint(self, checkpoint: dict[str, Any], path: str | Path, storage_options: Any = None) -> None:
        files.save_checkpoint(checkpoint, Path(path))

    def load_checkpoint(self, path: str | Path, *_: Any, **__: Any) -> dict[str, Any]:
        return files.load_checkpoint(Path(path))
