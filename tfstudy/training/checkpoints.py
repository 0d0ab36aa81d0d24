"""Checkpoints: when they are written, how they are read."""

import io
import math
from pathlib import Path
from typing import Any

import torch
from lightning.pytorch import Callback, LightningModule, Trainer
from lightning.pytorch.plugins.io import TorchCheckpointIO
from torch import Tensor

from tasks.errors import UserError
from tfstudy.runs.files import write_whole


class Checkpoints(Callback):
    """Writes `last.ckpt` after every epoch, and `best.ckpt` when the validation loss is lowest."""

    def __init__(self, folder: Path, run: str) -> None:
        self.folder, self.run = folder, run
        self.best = math.inf

    def state_dict(self) -> dict[str, Any]:
        return {"run": self.run, "best": self.best}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.best = state_dict["best"]

    def on_train_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        loss = float(trainer.callback_metrics.get("validation_loss", math.inf))
        if loss < self.best:
            self.best = loss
            trainer.save_checkpoint(self.folder / "best.ckpt")
        trainer.save_checkpoint(self.folder / "last.ckpt")


def load_checkpoint(path: Path, run: str) -> dict[str, Any]:
    """A checkpoint of this run, on the CPU; `UserError` if it can't be read or is another run's."""
    try:
        checkpoint: dict[str, Any] = torch.load(path, map_location="cpu", weights_only=True)
        owner = checkpoint["callbacks"]["Checkpoints"]["run"]
        checkpoint["state_dict"], checkpoint["global_step"]
    except Exception as error:  # a damaged file can fail in any part of the reader
        reason = str(error).split("\n")[0][:120] or type(error).__name__
        raise UserError(
            f"{path} is not a readable checkpoint ({reason}); --fresh sets the run aside and redoes it"
        ) from None
    if owner != run:
        raise UserError(
            f"{path} belongs to another run ({owner[:8]}, not {run[:8]}); --fresh sets the run aside and redoes it"
        )
    return checkpoint


def model_weights(checkpoint: dict[str, Any]) -> dict[str, Tensor]:
    """The `Model`'s part of a checkpoint's state."""
    return {k.removeprefix("model."): v for k, v in checkpoint["state_dict"].items() if k.startswith("model.")}


class WholeFile(TorchCheckpointIO):
    """Checkpoints that are there whole or not at all. Lightning's own go by way of the temporary folder."""

    def save_checkpoint(self, checkpoint: dict[str, Any], path: str | Path, storage_options: Any = None) -> None:
        buffer = io.BytesIO()
        torch.save(checkpoint, buffer)
        write_whole(Path(path), buffer.getvalue())
