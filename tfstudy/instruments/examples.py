"""The examples that an instrument measures a model on, in batches without padding."""

from collections.abc import Iterator
from itertools import groupby
from typing import NamedTuple

import torch
from pydantic import Field
from torch import Tensor

from tfstudy.errors import UserError, one_of
from tfstudy.instruments.base import Settings, Subject
from tfstudy.tasks.base import Example

BATCH = 64  # examples


class ExampleSettings(Settings):
    """The settings of an instrument that reads examples with teacher forcing."""

    split: str = Field("", description="split of the task (default: validation, or the first test set)")
    examples: int = Field(200, ge=1, le=10**6, description="number of examples, spread evenly over the split")


class TeacherForced(NamedTuple):
    """Examples of the same source length and target length as token ids. `gold[:, i]` is predicted from `tokens[:, i]`.

    As there is no padding, weights and states at each position belong to a token, whatever the architecture.
    """

    examples: list[Example]
    source: Tensor  # (batch, source), with EOS
    mask: Tensor  # (batch, source), all True
    tokens: Tensor  # (batch, target), with BOS and without EOS
    gold: Tensor  # (batch, target), with EOS and without BOS


def split_of(subject: Subject, settings: ExampleSettings) -> str:
    """Return the split that the settings name; `UserError` if the task has no such split."""
    splits = subject.task.splits()
    return one_of("split", settings.split, splits.all) if settings.split else splits.held_out[0]


def chosen_examples(subject: Subject, settings: ExampleSettings) -> list[Example]:
    """Return examples that are spread evenly over the split, without those that the model has no positions for.

    `UserError` if there are none.
    """
    name = split_of(subject, settings)
    every, most = subject.task.examples(name), subject.model.max_positions
    fitting = [e for e in every if most is None or max(len(e.source), len(e.target)) < most]
    if not fitting:
        raise UserError(f"split '{name}' has no example that the model can read")
    count = min(settings.examples, len(fitting))
    return [fitting[number * len(fitting) // count] for number in range(count)]


def in_batches(subject: Subject, settings: ExampleSettings) -> Iterator[TeacherForced]:
    """Yield the chosen examples, from short to long, on the device of the model. Their order is always the same."""
    device = next(subject.model.parameters()).device
    chosen = sorted(chosen_examples(subject, settings), key=_lengths)
    for _, group in groupby(chosen, key=_lengths):
        same = list(group)
        for start in range(0, len(same), BATCH):
            encoded = subject.data.encode(same[start : start + BATCH]).to(device)
            source, target = encoded.source, encoded.target
            mask = torch.ones_like(source, dtype=torch.bool)
            yield TeacherForced(same[start : start + BATCH], source, mask, target[:, :-1], target[:, 1:])


def _lengths(example: Example) -> tuple[int, int]:
    return len(example.source), len(example.target)
