"""The encoder-only layout: one stack reads the source, and each of its positions predicts one target token.

It fits targets that have a token for each source token (Vaswani et al. 2017 call such a stack an encoder; Delétang et
al. 2023, arXiv 2207.02098, read outputs off it in this way), and recognition, where the first position predicts the
label. A target token depends on the whole source and on its own place, not on the target tokens before it.

The position of the source's `<eos>` predicts that of a target as long as the source. After it there is nothing to read
an output off, and the last token of the source is predicted, so that a target ends there at the latest.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from tfstudy.models.parts.ragged import Shapes, flatten_groups, split_groups

END = 20.0  # logit of the last token after the source; others have 0, so that a longer target has a finite loss


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
