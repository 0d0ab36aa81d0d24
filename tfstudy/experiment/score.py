"""The evaluation of a run on its held-out splits, and on new examples of increasing length."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import torch

from tfstudy.errors import UserError
from tfstudy.evaluation import evaluate
from tfstudy.evaluation.breakdown import accuracy_by_length, summarize_errors
from tfstudy.evaluation.decoding import generation_limit, limits_of
from tfstudy.experiment.api import DEFAULTS, RunOptions, device_of
from tfstudy.experiment.prepare import Prepared
from tfstudy.runs.schema import GenerationLimit, Lengths, SplitScores
from tfstudy.runs.writer import RunFolder
from tfstudy.tasks.base import Example, Task
from tfstudy.training.memory import peak_mib, reset_peak
from tfstudy.training.progress_display import ProgressDisplay

MAX_FAILURES = 3  # consecutive lengths without a correct prediction, after which longer ones are not tried
MAX_GAP = 5  # consecutive lengths of which a task may have no examples


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
    with ProgressDisplay(f"evaluate {name}", len(examples), "examples") as display:
        evaluation = evaluate.evaluate(
            prepared.model, prepared.data, name, config.decode, config.eval, device, display.examples
        )
    digest = folder.write_predictions(name, evaluation.rows) if folder else ""
    more = {"errors": summarize_errors(evaluation.rows), "predictions": digest}
    role = "validation" if name == prepared.task.splits().validation else "test"
    return SplitScores.create(role, evaluation.summary | more)


def scores_by_length(prepared: Prepared, longest: int, report: Callable[[str], None]) -> Iterator[SplitScores]:
    """Yield the scores on new examples of each length, from the first one that is longer than those in training.

    It ends at `longest`, at the limit of the model or of decoding, or after `MAX_FAILURES` lengths without a correct
    prediction; which of them is reported. `UserError` if the task can't generate such examples.
    """
    task, data, config = prepared.task, prepared.data, prepared.config
    length = 1 + max(int(e.tags.get("length", 0)) for e in task.examples(task.splits().train))
    if not any(task.at_length(length + more) for more in range(MAX_GAP)):
        raise UserError(f"task {config.task} can't generate examples of a given length, such as {length}")
    failures = 0
    while length <= longest:
        examples = task.at_length(length)
        if not examples:  # some split schemes skip lengths, such as even ones
            length += 1
            continue
        if obstacle := _obstacle(prepared, examples):
            report(f"stopped: length {length} {obstacle}")
            return
        device = device_of(DEFAULTS)
        with ProgressDisplay(f"evaluate length {length}", len(examples), "examples") as display:
            evaluation = evaluate.evaluate_examples(
                prepared.model, data, examples, config.decode, config.eval, device, display.examples
            )
        scores = SplitScores.create("test", evaluation.summary)
        report(f"length {length:4}: {100 * scores.metrics['exact_match']:5.1f} % of {scores.n}")
        yield scores
        failures = 0 if scores.metrics["exact_match"] else failures + 1
        if failures == MAX_FAILURES:
            report(f"stopped: no correct prediction at {MAX_FAILURES} lengths in a row")
            return
        length += max(1, length // 20)
    report(f"stopped: length {length} is above the maximum, {longest}")


def _obstacle(prepared: Prepared, examples: Sequence[Example]) -> str:
    """Why these examples can't be evaluated; empty if they can."""
    limit, available = prepared.config.decode.max_length, prepared.model.max_positions
    if 0 < limit < max(len(e.target) for e in examples):
        return f"has targets of more than decode.max_length={limit} tokens"
    task, decode = prepared.task, prepared.config.decode
    lengths = torch.tensor([len(e.source) for e in examples])
    longest_output = int(limits_of(generation_limit(task, decode, examples), lengths).max())
    needed = 1 + max(int(lengths.max()), longest_output, *(len(e.target) for e in examples))
    if available is not None and needed > available:
        return f"needs {needed} positions, but the model has {available}"
    return ""
