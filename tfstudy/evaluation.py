"""Decode a split, score it whole and by slice, keep every prediction."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import takewhile
from typing import Any, NamedTuple

import torch
from torch import Tensor

from tasks.base import Example, Task, Tokens, hashed
from tasks.scoring import mean, wilson
from tfstudy.config import DecodeConfig, EvalConfig
from tfstudy.data import Encoded, TaskData
from tfstudy.decoding import beam, greedy
from tfstudy.models.base import Model
from tfstudy.vocab import PAD

VERSION = 1  # raise it when the same weights give other numbers
MARGIN = 16  # tokens generated beyond the longest gold target, so that running on can be seen
ENOUGH = 10  # examples that a length must have to count for L90 and L50


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
    chosen = sorted(range(len(examples)), key=lambda i: hashed("limit", 0, examples[i].source))[:limit]
    return [examples[i] for i in sorted(chosen)]


def evaluate(
    model: Model, data: TaskData, split: str, decode: DecodeConfig, config: EvalConfig, device: torch.device
) -> Evaluation:
    """Free-running and oracle-length decoding and teacher forcing of a split; leaves the model in eval mode."""
    return evaluate_examples(model, data, some(data.task.examples(split), config.limit), decode, config, device)


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
        return beam(model, source, mask, limit, decode.width, decode.length_penalty)
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


def over_lengths(slices: Mapping[str, Any]) -> dict[str, Any]:
    """`mean_over_lengths`: each metric's mean over the values of the tag `length`, which all weigh alike."""
    parts = [part["metrics"] for part in slices.get("length", {}).values()]
    means = {name: mean(part[name] for part in parts) for name in (parts[0] if parts else ())}
    return {"mean_over_lengths": means} if means else {}


def lengths(summaries: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """How far accuracy reaches: exact match at every length, with L90 and L50, and the longest length seen.

    L90 is the longest length up to which exact match is at least 90 % at every length; None if it is not even at the
    shortest. Lengths with fewer than `ENOUGH` examples don't count, unless no length has as many.
    """
    right: Counter[int] = Counter()
    seen: Counter[int] = Counter()
    for summary in summaries:
        for value, part in summary.get("slices", {}).get("length", {}).items():
            seen[int(value)] += part["n"]
            right[int(value)] += round(part["metrics"]["exact_match"] * part["n"])
    counted = [length for length in sorted(seen) if seen[length] >= min(ENOUGH, max(seen.values()))]
    if not counted:
        return {}

    def reach(share: float) -> int | None:
        held = list(takewhile(lambda length: right[length] >= share * seen[length], counted))
        return held[-1] if held else None

    curve = {str(length): {"n": seen[length], "exact_match": right[length] / seen[length]} for length in sorted(seen)}
    return {"L90": reach(0.9), "L50": reach(0.5), "longest": counted[-1], "exact_match": curve}
