"""The decoder-only layout: a prefix language model over source and target (Liu et al. 2018; Raffel et al. 2020, 3.2.1).

One stack of layers reads both. Source tokens see each other, and target tokens see the source and the target so far.
The positions of the target follow those of the source; the BOS token of the target separates the two.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from tfstudy.models.parts.attention import visible, windowed
from tfstudy.models.parts.cache import Cache
from tfstudy.models.parts.checkpointing import run_layer
from tfstudy.models.parts.hidden_states import observed
from tfstudy.models.parts.listening import Site
from tfstudy.models.parts.positions.base import Places
from tfstudy.models.parts.ragged import Shapes
from tfstudy.models.parts.transformer_layers import Stack


class PrefixSource(NamedTuple):
    """Where there is a source token."""

    mask: Bool[Tensor, "sources source"]


class PrefixState(NamedTuple):
    """What each layer keeps of the source, padding included, and of the target tokens that follow it."""

    source: PrefixSource
    past: tuple[Cache, ...]
    digits: tuple[Tensor, ...] = ()  # a `DigitState`, if there are positions of digits

    @property
    def source_length(self) -> int:
        """The number of source positions, padding included."""
        return self.source.mask.shape[1]

    @property
    def target_length(self) -> int:
        """The number of target tokens so far."""
        return self.past[0].length - self.source_length

    def of_hypotheses(self, hypotheses: int) -> Bool[Tensor, "hypotheses source"]:
        """Return the mask of the source of each hypothesis."""
        mask = self.source.mask
        return mask.repeat_interleave(hypotheses // max(1, len(mask)), 0)

    def places(self, rows: int, new: int) -> Places:
        """Return the positions of `new` target tokens in each of `rows` rows, and of all tokens."""
        lengths, before = self.of_hypotheses(rows).sum(1), self.target_length
        target = lengths[:, None] + torch.arange(before + new, device=lengths.device)
        source = torch.arange(self.source_length, device=lengths.device).expand(rows, -1)
        end = self.source_length + before + new
        return Places(target[:, before:], torch.cat([source, target], 1), -self.source_length - new, end)

    def visible(self, places: Places, window: int) -> Bool[Tensor, "batch 1 new keys"]:
        """Return what the new target tokens at `places` see: the source and the target so far, within the window."""
        rows, new = places.queries.shape
        before = self.target_length
        source = self.of_hypotheses(rows)[:, None].expand(-1, new, -1)
        target = visible(range(before, before + new), before + new, source.device).expand(rows, -1, -1)
        seen = torch.cat([source, target], 2)
        return (seen & (places.distances <= window) if window else seen)[:, None]


def read_source(
    stack: Stack,
    embedded: Float[Tensor, "positions dim"],
    shapes: Shapes,
    masks: Sequence[Bool[Tensor, "_ _"]],
    window: int,
    places: Sequence[Places] | None,
    digits: Sequence[tuple[Tensor, ...]],
) -> list[PrefixState]:
    """Return the state of each group of embedded sources; `digits` is what it keeps for positions of digits."""
    x, seen, pasts = embedded, [windowed(mask, window) for mask in masks], []
    for number, layer in enumerate(stack, 1):
        x = stack.enter(x, embedded, number)
        x, own = run_layer(layer.encode_with_keys, x, shapes, seen, number, places)
        x = observed(Site("encoder", number), x)
        pasts.append([Cache(seen) for seen in own])
    groups = zip(masks, zip(*pasts, strict=True), digits, strict=True)
    return [PrefixState(PrefixSource(mask), past, start) for mask, past, start in groups]


def read_target(
    stack: Stack,
    embedded: Float[Tensor, "positions dim"],
    shapes: Shapes,
    states: Sequence[PrefixState],
    window: int,
    places: Sequence[Places],
) -> tuple[Float[Tensor, "positions dim"], list[PrefixState]]:
    """Return the outputs for embedded target tokens that follow those in the states, and the states after them."""
    seen = [state.visible(place, window) for state, place in zip(states, places, strict=True)]
    x, pasts = embedded, []
    for depth, layer in enumerate(stack):
        x = stack.enter(x, embedded, depth + 1)
        before = [state.past[depth] for state in states]
        x, past = run_layer(layer.decode_after_prefix, x, shapes, before, seen, depth + 1, places)
        x = observed(Site("decoder", depth + 1), x)
        pasts.append(past)
    return x, [state._replace(past=past) for state, past in zip(states, zip(*pasts, strict=True), strict=True)]


def target_positions(places: Sequence[Places]) -> tuple[Int[Tensor, " positions"], int]:
    """Return the positions of the new target tokens of all groups, and a number that they are below."""
    return torch.cat([place.queries.flatten() for place in places]), max(place.highest for place in places)
