"""The layouts of the Transformer: what each keeps of the source and of the target tokens so far.

Decoder-only is a prefix language model over source and target (Liu et al. 2018; Raffel et al. 2020, 3.2.1). One stack
of layers reads both. Source tokens see each other, and target tokens see the source and the target so far. The
positions of the target follow those of the source; the BOS token of the target separates the two.

Encoder-only is one stack that reads the source, and each of its positions predicts one target token. It fits targets
that have a token for each source token (Delétang et al. 2023, arXiv 2207.02098, read outputs off in this way), and
recognition, where the first position predicts the label. A target token depends on the whole source and on its own
place, not on the target tokens before it. The position of the source's `<eos>` predicts that of a target as long as the
source. After it there is nothing to read an output off, and the last token of the source is predicted, so that a target
ends there at the latest.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from tfstudy.models.parts.attention import Cache, KeyValue, visible, windowed
from tfstudy.models.parts.layers import run_layer
from tfstudy.models.parts.observing import Site, observed
from tfstudy.models.parts.positions.base import Places
from tfstudy.models.parts.tokens import Shapes, flatten_groups, split_groups
from tfstudy.models.parts.transformer_layers import Stack

END = 20.0  # logit of the last token after the source; others have 0, so that a longer target has a finite loss


class TransformerSource(NamedTuple):
    """Keys and values of the source for each decoder layer, and what else attention and copying read of it."""

    memory: tuple[KeyValue, ...]
    mask: Bool[Tensor, "sources source"]
    positions: tuple[Int[Tensor, "sources source"], ...] = ()  # one tensor or none
    copied: tuple[Int[Tensor, "sources source"], ...] = ()  # target ids of the source tokens, if the model copies
    drawn: tuple[Int[Tensor, "sources longest"], ...] = ()  # random positions of training, for the target too


class TransformerState(NamedTuple):
    """The source, and keys and values of the target tokens decoded so far for each decoder layer."""

    source: TransformerSource
    past: tuple[Cache, ...]
    digits: tuple[Tensor, ...] = ()  # a `DigitState`, if there are positions of digits


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


class EncodedSource(NamedTuple):
    """The outputs of the encoder, with one more position that has none, and the last tokens of the sources."""

    features: Float[Tensor, "sources places dim"]  # places = source + 1
    inside: Bool[Tensor, "sources places"]  # whether a place belongs to a token
    last: Int[Tensor, "sources 1"]  # `<eos>`, which has the same number in both vocabularies


class EncodedState(NamedTuple):
    """The encoded source, and the number of target tokens so far."""

    source: EncodedSource
    written: Int[Tensor, " batch"]


class Outputs(NamedTuple):
    """What the next target tokens are read off, flat over all groups. After the source there is nothing to read."""

    features: Float[Tensor, "positions dim"]
    inside: Bool[Tensor, " positions"]
    last: Int[Tensor, " positions"]

    def ended(self, logits: Float[Tensor, "positions vocab"]) -> Float[Tensor, "positions vocab"]:
        """Return the logits, with those of the source's last token after the source."""
        last = self.last.clamp(max=logits.shape[1] - 1)[:, None]
        return torch.where(self.inside[:, None], logits, torch.zeros_like(logits).scatter(1, last, END))


def encoded_states(
    x: Float[Tensor, "positions dim"],
    shapes: Shapes,
    sources: Sequence[Int[Tensor, "_ _"]],
    masks: Sequence[Bool[Tensor, "_ _"]],
) -> list[EncodedState]:
    """Return the state of each group of encoded sources."""
    groups = zip(split_groups(x, shapes), sources, masks, strict=True)
    return [
        EncodedState(
            EncodedSource(
                nn.functional.pad(group, (0, 0, 0, 1)),
                nn.functional.pad(mask, (0, 1)),
                source.gather(1, (mask.sum(1, keepdim=True) - 1).clamp(min=0)),
            ),
            mask.new_zeros(len(mask), dtype=torch.long),
        )
        for group, source, mask in groups
    ]


def read_outputs(
    tokens: Sequence[Int[Tensor, "_ _"]], states: Sequence[EncodedState]
) -> tuple[Outputs, list[EncodedState]]:
    """Return what is at the places that follow those in the states, and the states after them."""
    features, inside, last, after = [], [], [], []
    for group, state in zip(tokens, states, strict=True):
        batch, new = group.shape
        hypotheses = batch // max(1, len(state.source.inside))
        known, own, end = (part.repeat_interleave(hypotheses, 0) for part in state.source)
        places = state.written[:, None] + torch.arange(new, device=group.device)
        places = places.clamp(max=known.shape[1] - 1)
        features.append(known.gather(1, places[..., None].expand(-1, -1, known.shape[2])))
        inside.append(own.gather(1, places).flatten())
        last.append(end.expand(-1, new).flatten())
        after.append(state._replace(written=state.written + new))
    return Outputs(flatten_groups(features), torch.cat(inside), torch.cat(last)), after
