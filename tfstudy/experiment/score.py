"""The evaluation of a run on its held-out splits."""

import time
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import torch

from tfstudy.errors import UserError
from tfstudy.evaluation import evaluate
from tfstudy.evaluation.breakdown import accuracy_by_length, summarize_errors
from tfstudy.evaluation.decoding import generation_limit
from tfstudy.experiment.api import RunOptions
from tfstudy.experiment.prepare import Prepared
from tfstudy.runs.schema import GenerationLimit, Lengths, SplitScores
from tfstudy.runs.store import RunFolder
from tfstudy.tasks.base import Task
from tfstudy.training.memory import peak_mib, reset_peak
from tfstudy.training.progress import ProgressLines


class Scored(NamedTuple):
    """What was measured on the held-out splits."""

    splits: Mapping[str, SplitScores] = MappingProxyType({})
    lengths: Lengths = Lengths()
    seconds: float = 0.0
    peak_mib: float = 0.0
    limit: GenerationLimit = GenerationLimit()

    def fields(self) -> dict[str, Any]:
        """Return the fields of a `Result` that an evaluation fills."""
        return {
            "splits": dict(self.splits),
            "lengths": self.lengths,
            "evaluate_seconds": round(self.seconds, 2),
            "evaluate_peak_mib": self.peak_mib,
            "generation_limit": self.limit,
        }


def scored_splits(task: Task, options: RunOptions) -> tuple[str, ...]:
    """The splits that a run is evaluated on: all held-out ones; in tuning only validation, or `UserError`."""
    if options.tuning and not task.splits().validation:
        raise UserError("tuning needs a validation split, but this split scheme has none")
    return task.splits().held_out[: 1 if options.tuning else None]


def score(prepared: Prepared, device: torch.device, names: Sequence[str], folder: RunFolder | None = None) -> Scored:
    """Evaluate held-out splits and return what was measured; the predictions are written to `folder`, if given.

    Who asks for it has to record that test sets were read.
    """
    start = time.monotonic()
    reset_peak(device)
    scores = {name: _score_split(prepared, device, name, folder) for name in names}
    tested = [scores[name] for name in prepared.task.by_length() if name in names]
    limit = generation_limit(prepared.task, prepared.config.decode)
    return Scored(scores, accuracy_by_length(tested), time.monotonic() - start, peak_mib(device), limit)


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
