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
    start, task, config, scores = time.monotonic(), prepared.task, prepared.config, dict[str, SplitScores]()
    characters = getattr(config.data, "tokens", "words") == "characters"  # of `pairs`
    for name in names:
        examples = evaluate.sample(task.examples(name), config.eval.max_examples)
        shown = ProgressLines(f"evaluate {name}", len(examples), "examples").examples
        found = evaluate.evaluate(prepared.model, prepared.data, name, config.decode, config.eval, device, shown)
        digest = folder.write_predictions(name, found.rows) if folder else ""
        more = {"errors": summarize_errors(found.rows, characters), "predictions": digest}
        role = "validation" if name == task.splits().validation else "test"
        scores[name] = SplitScores.create(role, found.summary | more)
    tested = [scores[name] for name in task.by_length() if name in names]
    return {
        "splits": scores,
        "lengths": accuracy_by_length(tested),
        "evaluate_seconds": round(time.monotonic() - start, 2),
        "generation_limit": generation_limit(task, config.decode),
    }
