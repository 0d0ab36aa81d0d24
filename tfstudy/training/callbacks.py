"""The progress of training, shown on the terminal and written to `train.log`."""

import sys
import time
from collections.abc import Callable
from typing import Any

from lightning.pytorch import Callback, LightningModule, Trainer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from tfstudy.data.encoding import Batch

LINE_INTERVAL = 10.0  # seconds between two lines without a terminal
BAR_INTERVAL = 0.2  # seconds between two updates of the bar


class ProgressBar(Callback):
    """Shows step, loss, target tokens per second and time left, and passes a line per validation to `log`.

    Its state in a checkpoint holds the seconds of training and the target tokens since the start of the run.
    """

    state_key = "progress"

    def __init__(self, log: Callable[[str], None]) -> None:
        self._log = log
        self._bar: Progress | None = None
        self._shown = 0.0
        self._previous: dict[str, float] = {"seconds": 0.0, "tokens": 0.0}  # of earlier processes of the run
        self._started = 0.0
        self._tokens = 0.0

    def state_dict(self) -> dict[str, Any]:
        seconds = time.monotonic() - self._started if self._started else 0.0
        return {"seconds": self._previous["seconds"] + seconds, "tokens": self._previous["tokens"] + self._tokens}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self._previous = state_dict

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self._started = self._shown = time.monotonic()
        self._first_step = trainer.global_step
        if trainer.is_global_zero and sys.stdout.isatty():
            columns = (TextColumn("{task.completed}/{task.total}"), BarColumn(), TextColumn("{task.fields[text]}"))
            self._bar = Progress(*columns, TimeRemainingColumn(compact=True), console=Console())
            self._task = self._bar.add_task("", total=trainer.max_steps, completed=self._first_step, text="")
            self._bar.start()

    def on_train_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: Any, batch: Batch, _: int
    ) -> None:
        self._tokens += batch.tokens * trainer.world_size
        now, step = time.monotonic(), trainer.global_step
        if now - self._shown < (BAR_INTERVAL if self._bar else LINE_INTERVAL) or not trainer.is_global_zero:
            return
        speed = self._tokens / (now - self._started)
        loss = float(outputs["loss"])  # waits for the device, at most five times a second
        text = f"loss {loss:.4f}  {speed:,.0f} tokens/s"
        self._shown = now
        if self._bar:
            self._bar.update(self._task, completed=step, text=text)
        else:
            steps = trainer.max_steps
            left = (steps - step) * (now - self._started) / max(1, step - self._first_step)
            print(f"step {step}/{steps}  {text}  {left:.0f} s left", flush=True)

    def on_train_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        metrics = {name: float(value) for name, value in trainer.callback_metrics.items()}
        shown = "  ".join(f"{name} {value:.4f}" for name, value in metrics.items())
        if trainer.is_global_zero:
            speed = self._tokens / (time.monotonic() - self._started)
            self._log(f"step {trainer.global_step}  {speed:,.0f} tokens/s  {shown}")

    def stop(self) -> None:
        """Remove the bar."""
        if self._bar:
            self._bar.stop()
            self._bar = None

    def on_train_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        if self._bar:
            self._bar.update(self._task, completed=trainer.global_step)
        self.stop()

    def on_exception(self, trainer: Trainer, pl_module: LightningModule, exception: BaseException) -> None:
        self.stop()
