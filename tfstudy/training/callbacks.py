"""The progress of training, shown on the terminal and written to `train.log`."""

import time
from collections.abc import Callable
from typing import Any

from lightning.pytorch import Callback, LightningModule, Trainer

from tfstudy.data.encoding import Batch
from tfstudy.training.module import Seq2Seq
from tfstudy.training.peak_memory import peak_mib, reset_peak
from tfstudy.training.progress_display import ProgressDisplay

SHARES = {"validation_accuracy": "teacher-forced accuracy", "validation_exact_match": "exact match"}


class ProgressBar(Callback):
    """Shows step, loss, target tokens per second and time left, and passes a line per validation to `log`.

    Its state in a checkpoint holds the seconds of training and the target tokens since the start of the run, and the
    peak memory in MiB.
    """

    state_key = "progress"

    def __init__(self, log: Callable[[str], None]) -> None:
        self._log = log
        self._display: ProgressDisplay | None = None
        self._previous: dict[str, float] = {"seconds": 0.0, "tokens": 0.0, "peak_mib": 0.0}  # of earlier processes
        self._started = 0.0
        self._tokens = 0.0
        self._split_reported = False
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
        self._started = time.monotonic()
        device = pl_module.device
        reset_peak(device)
        self._peak = lambda: peak_mib(device)
        if trainer.is_global_zero:
            self._display = ProgressDisplay("training", trainer.max_steps, "steps", trainer.global_step)

    def on_train_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: Any, batch: Batch, _: int
    ) -> None:
        self._tokens += batch.tokens * trainer.world_size
        if not self._display:
            return
        if isinstance(pl_module, Seq2Seq) and pl_module.executor.splits and not self._split_reported:
            self._report_split(trainer.global_step)
        if self._display.due():
            loss = float(outputs["loss"])  # waits for the device, at most five times a second
            self._display.update(trainer.global_step, f"loss {loss:.4f}, {self._speed():,.0f} tokens/s")

    def _report_split(self, step: int) -> None:
        text = (
            f"step {step}: memory ran out, so batches that are too large are computed in halves "
            "(a lower train.batch_size or train.batch_tokens is faster)"
        )
        self._split_reported = True
        self._log(text)
        print(text, flush=True)

    def _speed(self) -> float:
        """Target tokens per second."""
        return self._tokens / (time.monotonic() - self._started)

    def on_validation_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: Any, batch: Batch, batch_idx: int, _: int = 0
    ) -> None:
        if self._display:
            batches = int(sum(trainer.num_val_batches))
            self._display.update(trainer.global_step, f"validation: batch {batch_idx + 1} of {batches}")

    def on_validation_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self._validated = trainer.global_step

    def on_train_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        # the trainer keeps the metrics of the last validation, which may be of an earlier step
        metrics = trainer.callback_metrics if self._validated == trainer.global_step else {}
        shown = ", ".join(_metric_text(name, float(value)) for name, value in metrics.items())
        if trainer.is_global_zero:
            self._log(f"step {trainer.global_step}  {self._speed():,.0f} tokens/s  {shown}".rstrip())

    def on_train_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        if self._display:
            self._display.stop(trainer.global_step)

    def on_exception(self, trainer: Trainer, pl_module: LightningModule, exception: BaseException) -> None:
        if self._display:
            self._display.stop()


def _metric_text(name: str, value: float) -> str:
    """Return `validation loss 0.0123`, or `exact match 12.0 %`."""
    return f"{SHARES[name]} {100 * value:.1f} %" if name in SHARES else f"{name.replace('_', ' ')} {value:.4f}"
