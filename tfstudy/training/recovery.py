"""The checkpoint from which an interrupted run continues: the last one, or the one before if that is damaged."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tfstudy.runs.files import link_or_copy
from tfstudy.training.saved_weights import STATE_KEY, DamagedError, load_checkpoint

LAST, PREVIOUS, BEST = "last.ckpt", "previous.ckpt", "best.ckpt"


def resumable_checkpoint(
    folder: Path, run: str, best_needed: bool, report: Callable[[str], None]
) -> dict[str, Any] | None:
    """Load the newest sound checkpoint of a run, which is `last.ckpt` afterwards; None if training has to start again.

    A damaged checkpoint is reported and kept as `NAME.damaged`. With `best_needed` the best checkpoint up to that step
    must be sound too. `UserError` for a checkpoint of another run.
    """
    found = False
    best = _load(folder / BEST, run, report) is not None
    for name in (LAST, PREVIOUS):
        checkpoint = _load(folder / name, run, report)
        found = found or checkpoint is not None
        if checkpoint and (best or _restore_best(folder / name, checkpoint) or not best_needed):
            if name == PREVIOUS:
                os.replace(folder / PREVIOUS, folder / LAST)
            return checkpoint
    if found:
        report(f"{folder / BEST} is needed and missing, so training starts again")
    return None


def _load(path: Path, run: str, report: Callable[[str], None]) -> dict[str, Any] | None:
    if not path.exists():
        return None
    try:
        return load_checkpoint(path, run)
    except DamagedError:
        kept = path.with_name(f"{path.name}.damaged")
        os.replace(path, kept)
        report(f"{path} is damaged and is not used (kept as {kept.name})")
        return None


def _restore_best(path: Path, checkpoint: dict[str, Any]) -> bool:
    """Whether no best checkpoint is needed beside this one: it is the best itself, or there was none so far."""
    state = checkpoint["callbacks"][STATE_KEY]
    if state.get("best_step") == checkpoint["global_step"]:
        link_or_copy(path, path.with_name(BEST))
        return True
    return bool(state["best"] == float("inf"))
