"""Read checkpoints. This imports no Lightning, so that finished runs are ready quickly."""

from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from tasks.errors import UserError

STATE_KEY = "checkpoints"  # of the callback that writes them: the entry that names the run


def load_checkpoint(path: Path, run: str) -> dict[str, Any]:
    """Load a checkpoint of this run to the CPU; `UserError` if it is unreadable or belongs to another run."""
    try:
        checkpoint: dict[str, Any] = torch.load(path, map_location="cpu", weights_only=True)
        owner = checkpoint["callbacks"][STATE_KEY]["run"]
        checkpoint["state_dict"], checkpoint["global_step"]
    except Exception as error:  # a damaged file can fail anywhere in the reader
        reason = str(error).split("\n")[0][:120] or type(error).__name__
        raise UserError(f"{path} is not a readable checkpoint ({reason}); --restart runs it again") from None
    if owner != run:
        raise UserError(f"{path} belongs to another run ({owner[:8]}, not {run[:8]}); --restart runs it again")
    return checkpoint


def model_weights(checkpoint: dict[str, Any]) -> dict[str, Tensor]:
    """Return the weights of the `Model` in a checkpoint."""
    return {k.removeprefix("model."): v for k, v in checkpoint["state_dict"].items() if k.startswith("model.")}
