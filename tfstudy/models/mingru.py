"""A gated linear recurrence with attention (minGRU: Feng et al. 2024, arXiv 2410.01201).

The gates do not depend on the state, so a whole sequence is computed by a parallel scan; decoding keeps one vector.
"""

from collections.abc import Sequence
from typing import Any, ClassVar

import torch
from jaxtyping import Bool, Float
from pydantic import Field
from torch import Tensor, nn

from tfstudy.models.recurrent import scan
from tfstudy.models.recurrent_model import RecurrentConfig, RecurrentModel


class MinGRU(RecurrentModel):
    """A gated linear recurrence: a bidirectional encoder, and a decoder that attends to it after the recurrence.

    Each layer is x + W h(norm(x)), followed by a feedforward layer of the same form. The initial state of a layer of
    the decoder is a learned map of what the encoder returns for the first and the last token, where its two directions
    have read everything. With `attention: none` nothing else of the source reaches the decoder.
    """

    version = 1
    parallel = True
    widths = ("dim", "hidden", "feedforward")
    small: ClassVar = {"dim": 16, "hidden": 20, "feedforward": 24}
    variants: ClassVar = {
        "deep-forwards": {"layers": 3, "bidirectional": False},
        "additive": {"attention": "additive"},
        "none": {"attention": "none"},
        "share_embeddings": {"share_embeddings": True, "tie_output": True},
    }

    class Config(RecurrentConfig):
        hidden: int = Field(256, ge=1, le=16384, description="width of the recurrent state")

    def mixer(self, directions: int) -> nn.Module:
        return Recurrence(self.config.dim, self.config.hidden, directions)

    def new_bridge(self, width: int) -> nn.Module:
        return nn.ModuleList(nn.Linear(width, self.config.hidden) for _ in self.decoder)

    def start(self, ends: Float[Tensor, "rows ends"], states: Sequence[Any]) -> tuple[Any, ...]:
        return tuple(bridge(ends).tanh() for bridge in self.bridge.children())


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
