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
from tfstudy.training.memory import peak_mib, reset_peak
from tfstudy.training.progress_display import ProgressDisplay


class TrainingProgress(Callback):
    """Shows step, loss, target tokens per second and time left, and passes a line per validation to `log`.

    Its state in a checkpoint holds the seconds of training and the target tokens since the start of the run, and the
    peak memory in MiB.
    """

    state_key = "progress"

    def __init__(self, log: Callable[[str], None] = lambda line: None) -> None:
        self._log = log
        self._display: ProgressDisplay | None = None  # before training starts
        self._previous: dict[str, float] = {"seconds": 0.0, "tokens": 0.0}  # of earlier processes
        self._started = self._tokens = 0.0
        self._splits = 0
        self._validated = -1  # the step of the last validation
        self._peak: Callable[[], float] = lambda: 0.0

    def state_dict(self) -> dict[str, Any]:
        seconds = time.monotonic() - self._started if self._started else 0.0
        return {
            "seconds": self._previous["seconds"] + seconds,
            "tokens": self._previous["tokens"] + self._tokens,
            "peak_mib": max(self._previous.get("peak_mib", 0.0), self._peak()),
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self._previous = state_dict

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self._started, device = time.monotonic(), pl_module.device
        reset_peak(device)
        self._peak = lambda: peak_mib(device)
        self._display = ProgressDisplay("training", trainer.max_steps, "steps", trainer.global_step)

    def on_train_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: Any, batch: Batch, _: int
    ) -> None:
        self._tokens += batch.tokens
        if not self._display:
            return
        splits, self._splits = self._splits, pl_module.compute_gradients.splits  # type: ignore[assignment, union-attr]
        if self._splits and not splits:
            text = (
                f"step {trainer.global_step}: memory ran out, so batches that are too large are computed in halves "
                "(a lower train.batch_size or train.batch_tokens is faster)"
            )
            self._log(text)
            print(text, flush=True)
        if self._display.due():
            loss = float(outputs["loss"])  # waits for the device, at most five times a second
            self._display.update(trainer.global_step, f"loss {loss:.4f}, {self._speed():,.0f} tokens/s")

    def on_validation_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: Any, batch: Batch, batch_idx: int, _: int = 0
    ) -> None:
        if self._display:
            batches = int(sum(trainer.num_val_batches))
            self._display.update(trainer.global_step, f"validation: batch {batch_idx + 1} of {batches}")

    def on_validation_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self._validated = trainer.global_step

    def on_train_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        if not self._display:
            return
        # the trainer keeps the metrics of the last validation, which may be of an earlier step
        metrics = trainer.callback_metrics if self._validated == trainer.global_step else {}
        shown = ", ".join(f"{name.replace('_', ' ')} {value:.4f}" for name, value in metrics.items())
        self._log(f"step {trainer.global_step}  {self._speed():,.0f} tokens/s  {shown}".rstrip())

    def _speed(self) -> float:
        """Target tokens per second."""
        return self._tokens / (time.monotonic() - self._started)

    def on_train_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        if self._display:
            self._display.stop(trainer.global_step)

    def on_exception(self, trainer: Trainer, pl_module: LightningModule, exception: BaseException) -> None:
        if self._display:
            self._display.stop()


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
