"""The evaluation of one run on its held-out splits."""

import time
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import torch

from tfstudy.errors import UserError
from tfstudy.evaluation import evaluate
from tfstudy.evaluation.breakdown import accuracy_by_length, summarize_errors
from tfstudy.evaluation.decoding import generation_limit
from tfstudy.experiment.options import RunOptions
from tfstudy.experiment.prepare import Prepared
from tfstudy.runs.schema import GenerationLimit, Lengths, Scores, SplitScores
from tfstudy.runs.writer import RunFolder
from tfstudy.tasks.base import Task
from tfstudy.training.memory import peak_mib, reset_peak
from tfstudy.training.progress_display import ProgressDisplay


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


def score(
    prepared: Prepared,
    folder: RunFolder,
    device: torch.device,
    names: Sequence[str],
    reason: str = "run",
) -> Scored:
    """Evaluate held-out splits for the reason `run` or `evaluate`, and return what was measured.

    For `run`, predictions are written, and also what is measured on a split as soon as it is complete. Splits that an
    earlier process of this run has completed are not evaluated again.
    """
    scores = folder.scores() if reason == "run" else Scores(folder.run)
    for name in names:
        if name in scores.splits:
            continue
        start = time.monotonic()
        reset_peak(device)
        splits = {**scores.splits, name: score_split(prepared, folder, device, name, reason)}
        seconds, peak = scores.seconds + time.monotonic() - start, max(scores.peak_mib, peak_mib(device))
        scores = Scores(folder.run, splits, seconds, peak)
        if reason == "run":
            folder.write_scores(scores)
    tested = [scores.splits[name] for name in prepared.task.by_length() if name in names]
    limit = generation_limit(prepared.task, prepared.config.decode)
    in_order = {name: scores.splits[name] for name in names}
    return Scored(in_order, accuracy_by_length(tested), scores.seconds, scores.peak_mib, limit)


def score_split(
    prepared: Prepared,
    folder: RunFolder,
    device: torch.device,
    name: str,
    reason: str,
) -> SplitScores:
    """Return the scores of a held-out split; if it is a test set, this is counted with the reason `run` or `evaluate`.

    Predictions are only written for `run`. The progress is shown.
    """
    config = prepared.config
    role = "validation" if name == prepared.task.splits().validation else "test"
    if role == "test":
        folder.count_read(name, reason)
    examples = evaluate.sample(prepared.task.examples(name), config.eval.max_examples)
    with ProgressDisplay(f"evaluate {name}", len(examples), "examples") as display:
        evaluation = evaluate.evaluate(
            prepared.model, prepared.data, name, config.decode, config.eval, device, display.examples
        )
    if reason == "run":
        folder.write_predictions(name, evaluation.rows)
    return SplitScores.create(role, evaluation.summary | {"errors": summarize_errors(evaluation.rows)})
