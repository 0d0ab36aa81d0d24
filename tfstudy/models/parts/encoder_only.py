"""The encoder-only layout: one stack reads the source, and each of its positions predicts one target token.

It fits targets that have a token for each source token (Vaswani et al. 2017 call such a stack an encoder; Delétang et
al. 2023, arXiv 2207.02098, read outputs off it in this way), and recognition, where the first position predicts the
label. A target token depends on the whole source and on its own place, not on the target tokens before it.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from tfstudy.models.parts.ragged import Shapes, flatten_groups, split_groups


class EncodedSource(NamedTuple):
    """The outputs of the encoder; those of padding, and of one more position, are those of the end."""

    features: Float[Tensor, "sources places dim"]  # places = source + 1


class EncodedState(NamedTuple):
    """The encoded source, and the number of target tokens so far."""

    source: EncodedSource
    written: Int[Tensor, " batch"]


class SourceEnd(nn.Module):
    """The learned output of all positions after the end of a source, which is where the target should end."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.end = nn.Parameter(torch.zeros(dim))

    def states(
        self, x: Float[Tensor, "positions dim"], shapes: Shapes, masks: Sequence[Bool[Tensor, "_ _"]]
    ) -> list[EncodedState]:
        """Return the state of each group of encoded sources."""
        states = []
        for group, mask in zip(split_groups(x, shapes), masks, strict=True):
            inside = nn.functional.pad(mask, (0, 1))[..., None]
            features = torch.where(inside, nn.functional.pad(group, (0, 0, 0, 1)), self.end.to(group.dtype))
            states.append(EncodedState(EncodedSource(features), mask.new_zeros(len(mask), dtype=torch.long)))
        return states


def read_outputs(
    tokens: Sequence[Int[Tensor, "_ _"]], states: Sequence[EncodedState]
) -> tuple[Float[Tensor, "positions dim"], list[EncodedState]]:
    """Return the features at the places that follow those in the states, and the states after them."""
    features, after = [], []
    for group, state in zip(tokens, states, strict=True):
        batch, new = group.shape
        known = state.source.features.repeat_interleave(batch // max(1, len(state.source.features)), 0)
        places = state.written[:, None] + torch.arange(new, device=group.device)
        places = places.clamp(max=known.shape[1] - 1)[..., None].expand(-1, -1, known.shape[2])
        features.append(known.gather(1, places))
        after.append(state._replace(written=state.written + new))
    return flatten_groups(features), after
