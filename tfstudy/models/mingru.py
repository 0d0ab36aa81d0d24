"""A gated linear recurrence with attention (minGRU: Feng et al. 2024, arXiv 2410.01201).

The gates do not depend on the state, so a whole sequence is computed by a parallel scan; decoding keeps one vector.
A hybrid has self-attention in some of its layers (as Jamba, Lieber et al. 2024, 2403.19887).
"""

from collections.abc import Sequence
from typing import Any, ClassVar

import torch
from jaxtyping import Bool, Float
from pydantic import Field, model_validator
from torch import Tensor, nn

from tfstudy.models.attention import Cache, MultiHeadAttention, Sight, append, causal_mask
from tfstudy.models.recurrent import scan
from tfstudy.models.recurrent_model import RecurrentConfig, RecurrentModel


class MinGRU(RecurrentModel):
    """A gated linear recurrence: a bidirectional encoder, and a decoder that attends to it after the recurrence.

    Each layer is x + W h(norm(x)), followed by a feedforward layer of the same form. The initial state of a layer of
    the decoder is a learned map of what the encoder returns for the first and the last token, where its two directions
    have read everything. With `attention: none` nothing else of the source reaches the decoder. In a hybrid, every
    `self_attention_every`-th layer has self-attention in place of the recurrence; the recurrence before it says where
    each token is, so there is no position encoding.
    """

    version = 1
    parallel = True
    widths = ("dim", "hidden", "feedforward")
    small: ClassVar = {"dim": 16, "hidden": 20, "feedforward": 24}
    variants: ClassVar = {
        "deep-forwards": {"layers": 3, "bidirectional": False},
        "additive": {"attention": "additive"},
        "none": {"attention": "none"},
        "hybrid": {"self_attention_every": 2, "heads": 2, "layers": 3, "copy_output": True},
        "hybrid-forwards": {"self_attention_every": 2, "bidirectional": False, "attention": "dot"},
        "share_embeddings": {"share_embeddings": True, "tie_output": True},
    }

    class Config(RecurrentConfig):
        hidden: int = Field(256, ge=1, le=16384, description="width of the recurrent state")
        self_attention_every: int = Field(
            0, ge=0, le=64, description="every such layer has self-attention in place of the recurrence; 0: none has"
        )
        heads: int = Field(1, ge=1, description="heads of the self-attention; must divide dim")

        @model_validator(mode="after")
        def _heads_fit(self) -> "MinGRU.Config":
            if self.self_attention_every == 1 or self.self_attention_every > self.layers:
                raise ValueError(
                    f"self_attention_every must be 0 (none) or from 2 to layers ({self.layers}), "
                    f"but is {self.self_attention_every}"
                )
            if self.dim % self.heads:
                raise ValueError(f"heads must divide dim ({self.dim}), but is {self.heads}")
            if self.heads > 1 and not self.self_attention_every:
                raise ValueError(f"heads is {self.heads}, but no layer has self-attention (self_attention_every is 0)")
            return self

    def mixer(self, number: int, directions: int) -> nn.Module:
        every = self.config.self_attention_every
        if every and number % every == 0:
            return SelfAttention(self.config.dim, self.config.heads, causal=directions == 1)
        return Recurrence(self.config.dim, self.config.hidden, directions)

    def new_bridge(self, width: int) -> nn.Module:
        recurrent = sum(isinstance(layer.mixer, Recurrence) for layer in self.decoder)
        return nn.ModuleList(nn.Linear(width, self.config.hidden) for _ in range(recurrent))

    def start(self, ends: Float[Tensor, "rows ends"], states: Sequence[Any]) -> tuple[Any, ...]:
        starts = iter([bridge(ends).tanh() for bridge in self.bridge.children()])
        return tuple(next(starts) if isinstance(layer.mixer, Recurrence) else None for layer in self.decoder)


class Recurrence(nn.Module):
    """A gated linear recurrence in one direction or both."""

    def __init__(self, dim: int, hidden: int, directions: int) -> None:
        super().__init__()
        self.gates = nn.ModuleList(nn.Linear(dim, 2 * hidden) for _ in range(directions))
        self.out = nn.Linear(directions * hidden, dim)

    def forward(
        self,
        x: Float[Tensor, "rows length dim"],
        start: Float[Tensor, "rows hidden"] | None,
        mask: Bool[Tensor, "rows length"] | None,
    ) -> tuple[Float[Tensor, "rows length dim"], Float[Tensor, "rows states"]]:
        """Return the outputs, and the last state of each direction."""
        states = [recurrence(gate(x), start, mask, bool(i)) for i, gate in enumerate(self.gates)]
        last = [state[:, 0 if i else -1] for i, state in enumerate(states)]
        return self.out(torch.cat(states, -1)), torch.cat(last, -1)


class SelfAttention(nn.Module):
    """Self-attention in place of a recurrence. Its state is a cache of all tokens so far."""

    def __init__(self, dim: int, heads: int, causal: bool) -> None:
        super().__init__()
        self.attention, self.causal = MultiHeadAttention(dim, heads), causal

    def forward(
        self, x: Float[Tensor, "rows length dim"], start: Cache | None, mask: Bool[Tensor, "rows length"] | None
    ) -> tuple[Float[Tensor, "rows length dim"], Cache]:
        """Return the outputs and the new cache. Tokens that the mask hides are not attended to."""
        shapes, visible = [(x.shape[0], x.shape[1])], None if mask is None else mask[:, None, None]
        if visible is not None and self.causal:
            visible = visible & causal_mask(x.shape[1], x.shape[1], x.device)
        sight = Sight(shapes, [visible], [None], "decoder" if mask is None else "encoder", causal=mask is None)
        seen = append([] if start is None else [start], self.attention.key_values(x.flatten(0, 1), sight))
        return self.attention(x.flatten(0, 1), sight, seen)[0].view(x.shape), seen[0]


# torch 2.13 compiles the backward pass of the scan with the strides of another batch, and fails
@torch.compiler.disable  # type: ignore[untyped-decorator]
def recurrence(
    gates: Float[Tensor, "batch length gates"],
    start: Float[Tensor, "batch hidden"] | None,
    mask: Bool[Tensor, "batch length"] | None,
    backwards: bool,
) -> Float[Tensor, "batch length hidden"]:
    """Return the states h_t = (1 - z_t) h_(t-1) + z_t c_t (Feng et al. 2024, section 3.1).

    `gates` holds the logits of z and the candidates c. The state before the first token is `start`, or 0.
    """
    update, candidate = gates.chunk(2, -1)
    update = update.sigmoid()
    if mask is not None:
        update = update * mask[..., None]
    keep, new = 1 - update, update * candidate
    if start is not None:
        new = torch.cat([new[:, :1] + keep[:, :1] * start[:, None], new[:, 1:]], 1)
    if backwards:
        return scan(keep.flip(1), new.flip(1)).flip(1)
    return scan(keep, new)
