"""The maximum number of tokens that decoding generates, and the number of positions that a task needs."""

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from tfstudy.config.schema import DecodeConfig
from tfstudy.runs.schema import GenerationLimit
from tfstudy.tasks.base import Example, Task

EXTRA_TOKENS = 16  # beyond the longest target, or beyond what the source suggests: predictions can be too long
QUANTILE = 0.99  # of target length / source length in train, so that a few odd pairs do not decide


def generation_limit(task: Task, decode: DecodeConfig, examples: Sequence[Example] = ()) -> GenerationLimit:
    """Return the limit that `decode` describes; with 'longest', no target of the task or the examples exceeds it."""
    if decode.max_length:
        return GenerationLimit(constant=decode.max_length)
    if decode.limit == "source":
        return GenerationLimit(length_ratio(task), EXTRA_TOKENS)
    return GenerationLimit(constant=EXTRA_TOKENS + max(longest_target(task), *(len(e.target) for e in examples), 0))


def length_ratio(task: Task) -> float:
    """Return the 99 % quantile of target length / source length over the train split, at least 1."""
    train = task.examples(task.splits().train)
    ratios = sorted(len(e.target) / max(1, len(e.source)) for e in train)
    quantile = ratios[math.ceil(QUANTILE * len(ratios)) - 1] if ratios else 1.0
    return max(1.0, round(quantile, 3))


def limits_of(limit: GenerationLimit, source_lengths: Tensor) -> Tensor:
    """Return the maximum number of tokens for sources of these lengths (rows,), EOS not counted."""
    return torch.tensor([_limit(limit, length) for length in source_lengths.tolist()], dtype=torch.long)


def _limit(limit: GenerationLimit, source_length: int) -> int:
    return math.ceil(limit.per_source_token * source_length - 1e-9) + limit.constant


def longest_target(task: Task) -> int:
    """Return the number of tokens in the longest target of any split."""
    return max(len(e.target) for split in task.splits().all for e in task.examples(split))


def needed_positions(task: Task) -> int:
    """Return the number of positions that any source and any output of a task can have, whatever `decode` is.

    Sources end with EOS and decoder inputs start with BOS. An output may be as long as either limit of `decode.limit`
    allows.
    """
    longest_source = max(len(e.source) for split in task.splits().all for e in task.examples(split))
    relative = _limit(GenerationLimit(length_ratio(task), EXTRA_TOKENS), longest_source)
    return 1 + max(longest_source, longest_target(task) + EXTRA_TOKENS, relative)
