"""The progress of training as a person sees it."""

import sys
import time
from collections.abc import Callable
from typing import Any

from lightning.pytorch import Callback, LightningModule, Trainer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from tfstudy.data.encoding import Batch
from tfstudy.training.module import Seq2Seq

EVERY = 10.0  # seconds between two plain lines


class Watch(Callback):
    """Shows step, loss, label tokens per second and time left, and passes a line per validation to `log`."""

    def __init__(self, log: Callable[[str], None]) -> None:
        self._log = log
        self._bar: Progress | None = None
        self._shown = 0.0
        self._text = ""
        self._before: dict[str, float] = {"seconds": 0.0, "tokens": 0.0}  # what earlier processes of the run did
        self._began = 0.0
        self._tokens = 0.0

    @property
    def work(self) -> dict[str, float]:
        """Seconds in training and labels trained on, those of earlier processes that the checkpoint knows included."""
        seconds = time.monotonic() - self._began if self._began else 0.0
        return {"seconds": self._before["seconds"] + seconds, "tokens": self._before["tokens"] + self._tokens}

    def state_dict(self) -> dict[str, Any]:
        return self.work

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self._before = state_dict

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self._began = self._shown = time.monotonic()
        self._from = self._step(pl_module)
        if trainer.is_global_zero and sys.stdout.isatty():
            columns = (TextColumn("{task.completed}/{task.total}"), BarColumn(), TextColumn("{task.fields[text]}"))
            self._bar = Progress(*columns, TimeRemainingColumn(compact=True), console=Console())
            self._task = self._bar.add_task("", total=self._from + trainer.max_steps, completed=self._from, text="")
            self._bar.start()

    def on_train_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: Any, batch: Batch, _: int
    ) -> None:
        self._tokens += batch.tokens * trainer.world_size
        now, step = time.monotonic(), self._step(pl_module)
        if now - self._shown < (0.2 if self._bar else EVERY) or not trainer.is_global_zero:
            return
        speed = self._tokens / (now - self._began)
        loss = float(outputs["loss"])  # waits for the device, at most five times a second
        self._text = f"loss {loss:.4f}  {speed:,.0f} tokens/s"
        self._shown = now
        if self._bar:
            self._bar.update(self._task, completed=step, text=self._text)
        else:
            steps = self._from + trainer.max_steps
            left = (steps - step) * (now - self._began) / max(1, step - self._from)
            print(f"step {step}/{steps}  {self._text}  {left:.0f} s left", flush=True)

    def on_train_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        metrics = {name: float(value) for name, value in trainer.callback_metrics.items()}
        shown = "  ".join(f"{name} {value:.4f}" for name, value in metrics.items())
        if trainer.is_global_zero:
            speed = self._tokens / (time.monotonic() - self._began)
            self._log(f"step {self._step(pl_module)}  {speed:,.0f} tokens/s  {shown}")

    @staticmethod
    def _step(module: LightningModule) -> int:
        assert isinstance(module, Seq2Seq)
        return module.step

    def stop(self) -> None:
        """Ends the bar, however training ended."""
        if self._bar:
            self._bar.stop()
            self._bar = None

    def on_train_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        if self._bar:
            self._bar.update(self._task, completed=self._step(pl_module))
        self.stop()

    def on_exception(self, trainer: Trainer, pl_module: LightningModule, exception: BaseException) -> None:
        self.stop()
