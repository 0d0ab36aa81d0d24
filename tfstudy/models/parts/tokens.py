"""Ragged batches: groups of rows of similar length, with all their positions in one flat list.

A layer that acts on each token separately is called once, on the flat positions of all groups. Only layers that look at
other tokens (attention, recurrence, convolution) are called per group. This way little is padded.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

Shapes = Sequence[tuple[int, int]]  # (batch, length) of each group


class RaggedGroup(NamedTuple):
    """Rows of similar length, as a model takes them for teacher forcing."""

    source: Tensor  # (batch, source)
    source_mask: Tensor  # (batch, source), True where there is a token
    tokens: Tensor  # (batch, length), which start with BOS


def shapes_of(groups: Sequence[Tensor]) -> Shapes:
    """Return (batch, length) of each group."""
    return [(group.shape[0], group.shape[1]) for group in groups]


def shapes_by_source(groups: Sequence[Tensor], masks: Sequence[Tensor]) -> Shapes:
    """Return (sources, k * length) of each group (k * sources, length), for what attends to sources (sources, source).

    The k hypotheses of a source are next to each other, so their positions are like one longer target of it.
    """
    pairs = zip(groups, masks, strict=True)
    return [(len(mask), len(group) // max(1, len(mask)) * group.shape[1]) for group, mask in pairs]


def flatten_groups(groups: Sequence[Tensor]) -> Tensor:
    """Concatenate groups (batch, length, ...) to (positions, ...); a single group is not copied."""
    flat = [group.flatten(0, 1) for group in groups]
    return flat[0] if len(flat) == 1 else torch.cat(flat)


def split_groups(x: Tensor, shapes: Shapes) -> list[Tensor]:
    """Split (positions, ...) into groups (batch, length, ...), which are views. The inverse of `flatten_groups`."""
    pieces = torch.split(x, [batch * length for batch, length in shapes])
    return [piece.view(*shape, *x.shape[1:]) for piece, shape in zip(pieces, shapes, strict=True)]


def token_positions(groups: Sequence[Tensor], starts: Sequence[Tensor] | None = None) -> Tensor:
    """Return the position of every token in its sequence, (positions,).

    `starts` has, for each group, the position (batch,) of each row's first token; without it all rows start at 0.
    """
    steps = [torch.arange(group.shape[1], device=group.device).expand(group.shape) for group in groups]
    if starts is not None:
        steps = [step + start[:, None] for step, start in zip(steps, starts, strict=True)]
    return flatten_groups(steps)
