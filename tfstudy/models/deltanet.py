"""Gated DeltaNet (Yang, Kautz and Hatamizadeh 2024, arXiv 2412.06464), with attention to the source.

The state of a head is a matrix M from keys to values. A token first lets it decay by a, then corrects by the part b
what M returns for its key k (of length 1) towards its value v, and reads it with its query q:

    M_t = a_t (I - b_t k_t k_t') M_(t-1) + b_t k_t v_t'        (eq. 10, transposed)
    o_t = M_t' q_t

The eigenvalue of the transition in the direction of k is a (1 - b). With b in [0, 1] it is never negative, and no
number of layers computes the parity of sequences of any length; with b in [0, 2] a token can turn the sign of what is
stored (Grazzi et al. 2024, arXiv 2411.12537).
"""

from collections.abc import Sequence
from contextlib import nullcontext
from typing import ClassVar, NamedTuple

import torch
from jaxtyping import Bool, Float
from pydantic import Field
from torch import Tensor, nn
from torch.amp.autocast_mode import is_autocast_available
from torch.nn.functional import silu, softplus

from tfstudy.models.checkpointing import run_layer
from tfstudy.models.recurrent_model import RecurrentConfig, RecurrentModel
from tfstudy.models.residual import RMSNorm

CHUNK = 64  # tokens that `delta_rule` computes at once
KERNEL = 4  # tokens that the convolution before the recurrence reads (section 3.4 of the paper)


class Memory(NamedTuple):
    """The state of one layer of the decoder."""

    matrix: Float[Tensor, "rows heads width width"]
    recent: Float[Tensor, "rows before channels"]  # the last inputs of the convolution


class DeltaNet(RecurrentModel):
    """A linear recurrence that corrects a matrix of keys and values (Gated DeltaNet), with attention to the source.

    The layers of the decoder go on from the matrices of the encoder's layers (of the direction forwards). They first
    read one vector, a learned map of what the encoder returns at the ends of the source.
    """

    version = 1
    parallel = True
    widths = ("dim", "head_width", "feedforward")
    small: ClassVar = {"dim": 16, "heads": 2, "head_width": 8, "feedforward": 24}
    variants: ClassVar = {
        "negative": {"negative_eigenvalues": True},
        "deep-forwards": {"layers": 3, "bidirectional": False},
        "none": {"attention": "none", "layers": 1},
    }

    class Config(RecurrentConfig):
        heads: int = Field(4, ge=1, le=256, description="heads of each recurrent layer")
        head_width: int = Field(32, ge=1, le=1024, description="width of the keys and the values of a head")
        negative_eigenvalues: bool = Field(
            False, description="eigenvalues of the transition in [-1, 1] instead of [0, 1] (Grazzi et al. 2024)"
        )

    def mixer(self, directions: int) -> nn.Module:
        return GatedDelta(self.config, directions)

    def new_bridge(self, width: int) -> nn.Module:
        return nn.Linear(width, self.config.dim)

    def start(self, ends: Float[Tensor, "rows ends"], states: Sequence[Memory]) -> tuple[Memory, ...]:
        x, after = self.bridge(ends)[:, None], []
        for layer, state in zip(self.decoder, states, strict=True):
            x, state = run_layer(layer, x, state._replace(recent=torch.zeros_like(state.recent)))
            after.append(state)
        return tuple(after)


class GatedDelta(nn.Module):
    """The gated delta rule in one direction or both; the outputs of the directions are added."""

    def __init__(self, config: DeltaNet.Config, directions: int) -> None:
        super().__init__()
        self.directions = nn.ModuleList(Direction(config) for _ in range(directions))

    def forward(
        self, x: Float[Tensor, "rows length dim"], start: Memory | None, mask: Bool[Tensor, "rows length"] | None
    ) -> tuple[Float[Tensor, "rows length dim"], Memory]:
        """Return the outputs, and the state of the direction forwards after them."""
        outputs, state = self.directions[0](x, start, mask)
        if mask is not None and len(self.directions) == 2:
            outputs = outputs + self.directions[1](x.flip(1), None, mask.flip(1))[0].flip(1)
        return outputs, state


class Direction(nn.Module):
    """Queries, keys and values by a short convolution, the gated delta rule, and a gated output (figure 1)."""

    def __init__(self, config: DeltaNet.Config) -> None:
        super().__init__()
        self.heads, self.largest = config.heads, 2.0 if config.negative_eigenvalues else 1.0
        hidden = config.heads * config.head_width
        self.project = nn.Linear(config.dim, 3 * hidden, bias=False)
        self.convolution = nn.Parameter(torch.empty(KERNEL, 3 * hidden).uniform_(-0.1, 0.1))
        nn.init.ones_(self.convolution[-1])  # at first, each token is nearly as it was: parity is learned faster
        self.correct = nn.Linear(config.dim, config.heads, bias=False)
        self.decay = nn.Linear(config.dim, config.heads, bias=False)
        # as in Mamba-2: at first a token lets a head decay by exp(-rate * step), with steps from 0.001 to 0.1
        self.log_rate = nn.Parameter(torch.empty(config.heads).uniform_(1, 16).log())
        step = torch.empty(config.heads).uniform_(-3, -1)
        self.step_bias = nn.Parameter((10**step).expm1().log())  # the inverse of softplus
        self.gate = nn.Linear(config.dim, hidden, bias=False)
        self.norm = RMSNorm(config.head_width, eps=1e-5)
        self.out = nn.Linear(hidden, config.dim, bias=False)

    def forward(
        self, x: Float[Tensor, "rows length dim"], start: Memory | None, mask: Bool[Tensor, "rows length"] | None
    ) -> tuple[Float[Tensor, "rows length dim"], Memory]:
        """Return the outputs and the state after them. Tokens that the mask hides change neither."""
        correct = self.largest * self.correct(x).sigmoid()  # (rows, length, heads)
        log_decay = -self.log_rate.exp() * softplus(self.decay(x) + self.step_bias)
        channels = self.project(x)
        if mask is not None:
            correct, log_decay, channels = (part * mask[..., None] for part in (correct, log_decay, channels))
        rows, width = len(x), self.norm.normalized_shape[0]
        if start is None:
            recent = x.new_zeros(rows, KERNEL - 1, channels.shape[2])
            start = Memory(x.new_zeros(rows, self.heads, width, width), recent)
        channels = torch.cat([start.recent, channels], 1)
        mixed = sum(w * channels[:, i : i + x.shape[1]] for i, w in enumerate(self.convolution))
        by_head = (part.view(*x.shape[:2], self.heads, width).transpose(1, 2) for part in silu(mixed).chunk(3, -1))
        query, key, value = by_head  # (rows, heads, length, width)
        outputs, matrix = delta_rule(unit(query), unit(key), value, correct.mT, log_decay.mT, start.matrix)
        gated = self.norm(outputs).transpose(1, 2).flatten(2) * silu(self.gate(x))
        return self.out(gated), Memory(matrix, channels[:, 1 - KERNEL :])


def unit(x: Float[Tensor, "*shape width"]) -> Float[Tensor, "*shape width"]:
    """Return vectors of length 1; those of padding stay 0."""
    return x * (x.square().sum(-1, keepdim=True) + 1e-6).rsqrt()


def delta_rule(
    query: Float[Tensor, "rows heads length width"],
    key: Float[Tensor, "rows heads length width"],
    value: Float[Tensor, "rows heads length width"],
    correct: Float[Tensor, "rows heads length"],
    log_decay: Float[Tensor, "rows heads length"],
    matrix: Float[Tensor, "rows heads width width"],
) -> tuple[Float[Tensor, "rows heads length width"], Float[Tensor, "rows heads width width"]]:
    """Return the outputs o_t and the last matrix of the recurrence at the top of this file, from the one at the start.

    In a chunk, M_t is the decayed matrix at its start plus the sum of k_j w_j' over its tokens j up to t, each decayed
    from j to t. What is written, w_t = b_t (v_t - a_t M_(t-1)' k_t), depends on the w_j before it only through
    products of keys: this is a triangular system of equations for all tokens of the chunk (section 3.3 of the paper).
    For a single token, as in generation, it is the recurrence itself. Computed in single precision at least.
    """
    device = query.device.type
    with torch.autocast(device, enabled=False) if is_autocast_available(device) else nullcontext():
        precision = torch.promote_types(matrix.dtype, torch.float32)
        inputs = (query, key, value, correct[..., None], log_decay[..., None])
        parts = (torch.split(x.to(precision), CHUNK, 2) for x in inputs)
        outputs, matrix = [], matrix.to(precision)
        for q, k, v, b, log_a in zip(*parts, strict=True):
            since = log_a.cumsum(2)  # the logarithm of the decay since the start of the chunk: (rows, heads, chunk, 1)
            between = (since - since.mT).tril().exp().tril()  # the decay from token j to token t: [..., t, j]
            system = b * between * (k @ k.mT)  # the diagonal, and what is above it, is not read
            written = torch.linalg.solve_triangular(
                system, b * (v - since.exp() * (k @ matrix)), upper=False, unitriangular=True
            )
            outputs.append(since.exp() * (q @ matrix) + (between * (q @ k.mT)) @ written)
            last = since[:, :, -1:]
            matrix = last.exp() * matrix + ((last - since).exp() * k).mT @ written
        return torch.cat(outputs, 2), matrix
