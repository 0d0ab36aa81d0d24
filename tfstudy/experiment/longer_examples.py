"""The evaluation of a trained model on new examples of increasing length."""

from collections.abc import Callable, Iterator, Sequence

import torch

from tfstudy.errors import UserError
from tfstudy.evaluation import evaluate
from tfstudy.evaluation.decoding import generation_limit, limits_of
from tfstudy.experiment.options import DEFAULTS, device_of
from tfstudy.experiment.prepare import Prepared
from tfstudy.runs.schema import SplitScores
from tfstudy.tasks.base import Example
from tfstudy.training.progress_display import ProgressDisplay

MAX_FAILURES = 3  # consecutive lengths without a correct prediction, after which longer ones are not tried
MAX_GAP = 5  # consecutive lengths of which a task may have no examples


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
