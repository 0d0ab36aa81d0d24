"""The evaluation of one run on its held-out splits."""

import time
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

import torch

from tasks.base import Task
from tasks.errors import UserError
from tfstudy.evaluation import evaluate
from tfstudy.evaluation.lengths import accuracy_by_length
from tfstudy.experiment.options import RunOptions
from tfstudy.experiment.prepare import Prepared
from tfstudy.runs.schema import Lengths, SplitScores
from tfstudy.runs.writer import RunFolder


class Scored(NamedTuple):
    """What was measured on the held-out splits."""

    splits: Mapping[str, SplitScores] = MappingProxyType({})
    lengths: Lengths = Lengths()
    seconds: float = 0.0


def scored_splits(task: Task, options: RunOptions) -> tuple[str, ...]:
    """The splits that a run is evaluated on: all held-out ones; in tuning only validation, or `UserError`."""
    if options.tuning and not task.splits().validation:
        raise UserError("tuning needs a validation split, but this split scheme has none")
    return task.splits().held_out[: 1 if options.tuning else None]


def score(prepared: Prepared, folder: RunFolder, device: torch.device, names: Sequence[str]) -> Scored:
    """Evaluate held-out splits, write their predictions, and return what was measured."""
    start = time.monotonic()
    splits = score_splits(prepared, folder, device, names, "run")
    tested = [splits[name] for name in prepared.task.by_length() if name in splits]
    return Scored(splits, accuracy_by_length(tested), time.monotonic() - start)


def score_splits(
    prepared: Prepared, folder: RunFolder, device: torch.device, names: Sequence[str], reason: str
) -> dict[str, SplitScores]:
    """Return the scores of held-out splits; each test set that is read is counted, with the reason `run` or `evaluate`.

    Predictions are only written for `run`.
    """
    config, scores = prepared.config, {}
    for name in names:
        role = "validation" if name == prepared.task.splits().validation else "test"
        if role == "test":
            folder.count_read(name, reason)
        evaluation = evaluate.evaluate(prepared.model, prepared.data, name, config.decode, config.eval, device)
        if reason == "run":
            folder.write_predictions(name, evaluation.rows)
        scores[name] = SplitScores.create(role, evaluation.summary)
    return scores
