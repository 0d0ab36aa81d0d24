"""Decode a split, score it whole and by slice, keep every prediction."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from tasks.base import Example, Task, Tokens, stable_hash
from tasks.scoring import mean, wilson
from tfstudy.config.schema import DecodeConfig, EvalConfig
from tfstudy.data.encoding import Encoded
from tfstudy.data.module import TaskData
from tfstudy.data.vocabulary import PAD
from tfstudy.evaluation.decoding import beam, greedy
from tfstudy.evaluation.lengths import over_lengths
from tfstudy.models.base import Model

MARGIN = 16  # tokens generated beyond the longest gold target, so that running on can be seen


class Evaluation(NamedTuple):
    """One split's numbers, and a row for each example in the split's order."""

    summary: dict[str, Any]  # n, metrics, interval (of exact match), slices
    rows: list[dict[str, Any]]


def generation_limit(task: Task, decode: DecodeConfig, examples: Sequence[Example] = ()) -> int:
    """The most tokens that are generated: by default a number that no gold target of any split or of these reaches."""
    return decode.max_length or MARGIN + max(longest_target(task), *(len(e.target) for e in examples), 0)


def longest_target(task: Task) -> int:
    """The number of tokens in the longest gold target of any split."""
    return max(len(e.target) for split in task.splits().all for e in task.examples(split))


def some(examples: Sequence[Example], limit: int) -> Sequence[Example]:
    """`limit` of the examples, drawn by hash and in their old order; all of them if it is 0."""
    if not limit or len(examples) <= limit:
        return examples
    chosen = sorted(range(len(examples)), key=lambda i: stable_hash("limit", 0, examples[i].source))[:limit]
    return [examples[i] for i in sorted(chosen)]


def evaluate(
    model: Model, data: TaskData, split: str, decode: DecodeConfig, config: EvalConfig, device: torch.device
) -> Evaluation:
    """Free-running and oracle-length decoding and teacher forcing of a split; leaves the model in eval mode."""
    return evaluate_examples(model, data, some(data.task.examples(split), config.max_examples), decode, config, device)


def evaluate_examples(
    model: Model,
    data: TaskData,
    examples: Sequence[Example],
    decode: DecodeConfig,
    config: EvalConfig,
    device: torch.device,
) -> Evaluation:
    """The same of any examples of the task."""
    model.eval().to(device)
    if not examples:
        return Evaluation({"n": 0}, [])
    encoded = data.encode(examples).to(device)
    order = encoded.source_lengths.sort(stable=True).indices  # by source, since the target's length is to be found
    limit = generation_limit(data.task, decode, examples)
    free: list[Tokens] = [()] * len(examples)
    oracle: list[Tokens] = [()] * len(examples)
    forced = [0.0] * len(examples)
    for rows in torch.split(order, config.batch_size):
        part = encoded.rows(rows)
        mask = part.source != PAD
        gold = (encoded.target_lengths[rows] - 2).to(device)
        for out, ids in (
            (free, generate(model, part.source, mask, limit, decode)),
            (oracle, greedy(model, part.source, mask, 0, lengths=gold)),
        ):
            for row, tokens in zip(rows.tolist(), ids, strict=True):
                out[row] = data.target_vocab.decode(tokens)
        for row, share in zip(rows.tolist(), teacher_forced(model, encoded, rows), strict=True):
            forced[row] = share
    text = data.task.text
    return Evaluation(
        summarise(data.task, examples, free, oracle, forced),
        [
            {
                "source": text(e.source),
                "target": text(e.target),
                "prediction": text(f),
                "oracle_length": text(o),
                "teacher_forced_accuracy": round(t, 6),
                "tags": dict(e.tags),
            }
            for e, f, o, t in zip(examples, free, oracle, forced, strict=True)
        ],
    )


def generate(model: Model, source: Tensor, mask: Tensor, limit: int, decode: DecodeConfig) -> list[list[int]]:
    """Token ids of each row's target, without EOS, by the chosen method."""
    if decode.method == "beam":
        return beam(model, source, mask, limit, decode.beam_size, decode.length_penalty)
    return greedy(model, source, mask, limit)


@torch.no_grad()
def teacher_forced(model: Model, encoded: Encoded, rows: Tensor) -> list[float]:
    """For each row, the share of its labels (EOS too) that are the most probable after the gold tokens before them."""
    part = encoded.rows(rows)
    right = model(part.source, part.source != PAD, part.target[:, :-1]).argmax(-1) == part.target[:, 1:]
    label = part.target[:, 1:] != PAD
    shares: list[float] = ((right & label).sum(1) / label.sum(1)).tolist()
    return shares


def summarise(
    task: Task, examples: Sequence[Example], free: Sequence[Tokens], oracle: Sequence[Tokens], forced: Sequence[float]
) -> dict[str, Any]:
    """Metrics of all examples, and of each value of each tag."""
    exact = [float(task.text(o) == task.text(e.target)) for o, e in zip(oracle, examples, strict=True)]

    def part(index: Sequence[int]) -> dict[str, Any]:
        chosen = [examples[i] for i in index]
        metrics = task.score([free[i] for i in index], chosen)
        metrics["oracle_length_exact_match"] = mean(exact[i] for i in index)
        metrics["teacher_forced_accuracy"] = mean(forced[i] for i in index)
        right = round(metrics["exact_match"] * len(index))
        return {"n": len(index), "metrics": metrics, "exact_match_interval": wilson(right, len(index))}

    slices: dict[str, dict[str, Any]] = {}
    for tag in examples[0].tags:
        groups: dict[Any, list[int]] = {}
        for i, example in enumerate(examples):
            groups.setdefault(example.tags[tag], []).append(i)
        slices[tag] = {str(value): part(groups[value]) for value in sorted(groups, key=lambda v: (str(type(v)), v))}
    return part(range(len(examples))) | {"slices": slices, **over_lengths(slices)}
