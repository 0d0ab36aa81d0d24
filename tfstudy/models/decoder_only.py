"""The decoder-only layout of the Transformer: one stack that reads source and target."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from tfstudy.models.attention import Cache, Sight, causal_mask
from tfstudy.models.config import TransformerConfig
from tfstudy.models.positions import Places
from tfstudy.models.positions.numbering import DigitState
from tfstudy.models.tokens import Tokens

if TYPE_CHECKING:
    from tfstudy.models.transformer import Transformer


class State(NamedTuple):
    """The source, and the keys and values of the source and the target tokens so far."""

    source: Tokens
    caches: Sequence[Sequence[Cache]]  # of each layer and rectangle
    length: int = 0  # target tokens so far
    digits: DigitState | None = None  # if there are positions of digits


class DecoderOnly:
    """A prefix language model over source and target (Liu et al. 2018; Raffel et al. 2020, 3.2.1) in one stack.

    Source tokens see each other, and target tokens see the source and the target so far. The positions of the target
    follow those of the source; the BOS token of the target separates the two.
    """

    @staticmethod
    def stacks(config: TransformerConfig) -> dict[str, tuple[int, bool]]:
        """Return the number of layers of the only stack."""
        return {"decoder": (config.encoder_layers + config.decoder_layers, False)}

    @staticmethod
    def encode(model: "Transformer", source: Tokens) -> State:
        """Return the keys and values of the source in each layer, as the beginning of what the target sees."""
        embedded, digits = model.embed_source(source)
        near = Sight.within(source, model.config.positions)
        _, caches = model.decoder(embedded, near, model.source_states)
        return State(source, caches, digits=digits)

    @staticmethod
    def decode(model: "Transformer", target: Tokens, state: State) -> tuple[Float[Tensor, "tokens vocab"], State]:
        """Return the logits after the target tokens, and the new state."""
        target, sight = after_source(target.following(state.length), state.source)
        embedded, digits = model.embed_target(target, state.digits)
        x, caches = model.decoder(embedded, sight, model.target_states, state.caches)
        return model.output(model.decoder.norm(x)), State(state.source, caches, target.next_start, digits)


def after_source(target: Tokens, source: Tokens) -> tuple[Tokens, Sight]:
    """Return target tokens at positions that follow those of their sources, and what they see.

    The keys are those of the source with its padding, and behind them those of the target so far.
    """
    numbers, masks, places, limit = [], [], [], 0
    for (rows, new), (mask,) in zip(target.shapes, source.rectangles(source.mask), strict=True):
        mask = mask.repeat_interleave(rows // max(1, len(mask)), 0)  # of the source of each hypothesis
        length, so_far = mask.shape[1], target.start + new
        own = mask.sum(1)[:, None] + torch.arange(so_far, device=mask.device)
        keys = torch.cat([torch.arange(length, device=mask.device).expand(rows, -1), own], 1)
        causal = causal_mask(new, so_far, mask.device)[:, 0].expand(rows, -1, -1)
        places.append(Places(own[:, target.start :], keys, -length - new, length + so_far))
        masks.append(torch.cat([mask[:, None].expand(-1, new, -1), causal], 2)[:, None])
        numbers.append(own)
        limit = max(limit, length + so_far)
    return target._replace(numbers=tuple(numbers), limit=limit), Sight(target.shapes, masks, places, "prefix")
