"""The evaluation of a run on its held-out splits."""

import time
from collections.abc import Sequence
from typing import Any

import torch

from tfstudy.errors import UserError
from tfstudy.evaluation import evaluate
from tfstudy.evaluation.breakdown import accuracy_by_length, summarize_errors
from tfstudy.evaluation.decoding import generation_limit
from tfstudy.experiment.api import RunOptions
from tfstudy.experiment.prepare import Prepared
from tfstudy.runs.schema import SplitScores
from tfstudy.runs.store import RunFolder
from tfstudy.tasks.base import Task
from tfstudy.training.memory import peak_mib, reset_peak
from tfstudy.training.progress import ProgressLines


def scored_splits(task: Task, options: RunOptions) -> tuple[str, ...]:
    """The splits that a run is evaluated on: all held-out ones; in tuning only validation, or `UserError`."""
    if options.tuning and not task.splits().validation:
        raise UserError("tuning needs a validation split, but this split scheme has none")
    return task.splits().held_out[: 1 if options.tuning else None]


def score(
    prepared: Prepared, device: torch.device, names: Sequence[str], folder: RunFolder | None = None
) -> dict[str, Any]:
    """Evaluate held-out splits and return the fields of a `Result` with what was measured.

    The predictions are written to `folder`, if given. Who asks for it has to record that test sets were read.
    """
    start = time.monotonic()
    reset_peak(device)
    scores = {name: _score_split(prepared, device, name, folder) for name in names}
    tested = [scores[name] for name in prepared.task.by_length() if name in names]
    return {
        "splits": scores,
        "lengths": accuracy_by_length(tested),
        "evaluate_seconds": round(time.monotonic() - start, 2),
        "evaluate_peak_mib": peak_mib(device),
        "generation_limit": generation_limit(prepared.task, prepared.config.decode),
    }


def _score_split(prepared: Prepared, device: torch.device, name: str, folder: RunFolder | None) -> SplitScores:
    config = prepared.config
    examples = evaluate.sample(prepared.task.examples(name), config.eval.max_examples)
    shown = ProgressLines(f"evaluate {name}", len(examples), "examples").examples
    evaluation = evaluate.evaluate(prepared.model, prepared.data, name, config.decode, config.eval, device, shown)
    digest = folder.write_predictions(name, evaluation.rows) if folder else ""
    characters = getattr(config.data, "tokens", "words") == "characters"  # of `pairs`
    more = {"errors": summarize_errors(evaluation.rows, characters), "predictions": digest}
    role = "validation" if name == prepared.task.splits().validation else "test"
    return SplitScores.create(role, evaluation.summary | more)
