"""Evaluate a model on a split: decode every example, compute metrics overall and per slice, keep the predictions."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from tasks.base import Example, Task, Tokens, stable_hash
from tasks.scoring import mean, wilson
from tfstudy.config.schema import DecodeConfig, EvalConfig
from tfstudy.data.encoding import PaddedRows, TaskEncoder
from tfstudy.data.vocabulary import PAD
from tfstudy.evaluation.decoding import beam, greedy
from tfstudy.evaluation.lengths import mean_over_lengths
from tfstudy.models.base import Model
from tfstudy.runs.schema import Prediction

EXTRA_TOKENS = 16  # generated at most beyond the longest gold target, so that predictions can be too long


class Evaluation(NamedTuple):
    """The metrics of a split, and the prediction for each example in the order of the split."""

    summary: dict[str, Any]  # n, metrics, exact_match_interval, slices, mean_over_lengths
    rows: list[Prediction]


class Output(NamedTuple):
    """What a model generates for one example, and its accuracy with teacher forcing."""

    free: Tokens  # until EOS
    oracle: Tokens  # of the target's length
    teacher_forced: float  # in [0, 1], over the target tokens and EOS


def generation_limit(task: Task, decode: DecodeConfig, examples: Sequence[Example] = ()) -> int:
    """Return the maximum number of generated tokens; by default more than in any target of the task or the examples."""
    return decode.max_length or EXTRA_TOKENS + max(longest_target_length(task), *(len(e.target) for e in examples), 0)


def longest_target_length(task: Task) -> int:
    """Return the number of tokens in the longest target of any split."""
    return max(len(e.target) for split in task.splits().all for e in task.examples(split))


def sample_examples(examples: Sequence[Example], limit: int) -> Sequence[Example]:
    """Return `limit` examples in their order, chosen by a hash of their source; all examples if `limit` is 0."""
    if not limit or len(examples) <= limit:
        return examples
    chosen = sorted(range(len(examples)), key=lambda i: stable_hash("limit", 0, examples[i].source))[:limit]
    return [examples[i] for i in sorted(chosen)]


def evaluate(
    model: Model, data: TaskEncoder, split: str, decode: DecodeConfig, config: EvalConfig, device: torch.device
) -> Evaluation:
    """Evaluate a split with free-running decoding, oracle length and teacher forcing. The model stays in eval mode."""
    examples = sample_examples(data.task.examples(split), config.max_examples)
    return evaluate_examples(model, data, examples, decode, config, device)


def evaluate_examples(
    model: Model,
    data: TaskEncoder,
    examples: Sequence[Example],
    decode: DecodeConfig,
    config: EvalConfig,
    device: torch.device,
) -> Evaluation:
    """Evaluate any examples of the task, as `evaluate` does those of a split."""
    model.eval().to(device)
    if not examples:
        return Evaluation({"n": 0}, [])
    outputs = _outputs(model, data, examples, decode, config.batch_size, device)
    text = data.task.text
    rows = [
        Prediction(text(e.source), text(e.target), text(o.free), text(o.oracle), round(o.teacher_forced, 6), {**e.tags})
        for e, o in zip(examples, outputs, strict=True)
    ]
    return Evaluation(summarise_outputs(data.task, examples, outputs), rows)


def _outputs(
    model: Model,
    data: TaskEncoder,
    examples: Sequence[Example],
    decode: DecodeConfig,
    batch_size: int,
    device: torch.device,
) -> list[Output]:
    """Return the outputs of a model for all examples, computed in batches of similar source length."""
    encoded = data.encode(examples).to(device)
    limit, tokens = generation_limit(data.task, decode, examples), data.target_vocab.decode
    out: dict[int, Output] = {}
    for index in torch.split(encoded.source_lengths.sort(stable=True).indices, batch_size):
        rows = encoded.rows(index)
        mask = rows.source != PAD
        free = generate(model, rows.source, mask, limit, decode)
        oracle = greedy(model, rows.source, mask, 0, lengths=(encoded.target_lengths[index] - 2).to(device))
        forced = teacher_forced_accuracy(model, rows)
        outputs = map(Output, map(tokens, free), map(tokens, oracle), forced)
        out |= zip(index.tolist(), outputs, strict=True)
    return [out[row] for row in range(len(examples))]


def generate(model: Model, source: Tensor, mask: Tensor, limit: int, decode: DecodeConfig) -> list[list[int]]:
    """Generate the token ids of each row's target, without EOS, by greedy or beam search."""
    if decode.method == "beam":
        return beam(model, source, mask, limit, decode.beam_size, decode.length_penalty)
    return greedy(model, source, mask, limit)


@torch.no_grad()
def teacher_forced_accuracy(model: Model, rows: PaddedRows) -> list[float]:
    """Return, for each row, the fraction of target tokens (with EOS) that are most probable after the gold prefix."""
    correct = model(rows.source, rows.source != PAD, rows.target[:, :-1]).argmax(-1) == rows.target[:, 1:]
    mask = rows.target[:, 1:] != PAD
    fractions: list[float] = ((correct & mask).sum(1) / mask.sum(1)).tolist()
    return fractions


def summarise_outputs(task: Task, examples: Sequence[Example], outputs: Sequence[Output]) -> dict[str, Any]:
    """Return the metrics of all examples, and those of each slice (the examples with the same value of a tag)."""
    oracle = [float(task.text(o.oracle) == task.text(e.target)) for o, e in zip(outputs, examples, strict=True)]

    def summarise(index: Sequence[int]) -> dict[str, Any]:
        metrics = task.score([outputs[i].free for i in index], [examples[i] for i in index])
        metrics["oracle_length_exact_match"] = mean(oracle[i] for i in index)
        metrics["teacher_forced_accuracy"] = mean(outputs[i].teacher_forced for i in index)
        correct = round(metrics["exact_match"] * len(index))
        return {"n": len(index), "metrics": metrics, "exact_match_interval": wilson(correct, len(index))}

    slices: dict[str, dict[str, Any]] = {}
    for tag in examples[0].tags:
        groups: dict[Any, list[int]] = {}
        for i, example in enumerate(examples):
            groups.setdefault(example.tags[tag], []).append(i)
        slices[tag] = {str(v): summarise(groups[v]) for v in sorted(groups, key=lambda v: (str(type(v)), v))}
    return summarise(range(len(examples))) | {"slices": slices, **mean_over_lengths(slices)}
