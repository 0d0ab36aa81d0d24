"""A linear recurrence computed in parallel over the sequence, by recursive doubling (Hillis & Steele 1986)."""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor


class _Scan(torch.autograd.Function):
    """h_t = a_t h_(t-1) + b_t by recursive doubling; its gradient is the same recurrence from the end."""

    @staticmethod
    def forward(ctx: Any, keep: Tensor, new: Tensor) -> Tensor:
        states = doubling(keep, new)
        ctx.save_for_backward(keep, states)
        return states

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor]:
        keep, states = ctx.saved_tensors
        later = torch.cat([torch.zeros_like(keep[:, :1]), keep[:, 1:].flip(1)], 1)  # a_(t+1), from the end
        to_new = doubling(later, gradients[0].flip(1)).flip(1)
        before = torch.cat([torch.zeros_like(states[:, :1]), states[:, :-1]], 1)
        return to_new * before, to_new


def scan(
    keep: Float[Tensor, "batch length hidden"], new: Float[Tensor, "batch length hidden"]
) -> Float[Tensor, "batch length hidden"]:
    """Return h_t = keep_t h_(t-1) + new_t for all t, with h_(-1) = 0, in about log2(length) passes."""
    states: Tensor = _Scan.apply(keep, new) if keep.shape[1] > 1 else new  # type: ignore[no-untyped-call]
    return states


def doubling(keep: Tensor, new: Tensor) -> Tensor:
    """Compute the recurrence: after a pass with distance d, each state covers the 2 d tokens up to its own."""
    distance = 1
    while distance < keep.shape[1]:
        reached = torch.addcmul(new[:, distance:], keep[:, distance:], new[:, :-distance])
        new = torch.cat([new[:, :distance], reached], 1)
        keep = torch.cat([keep[:, :distance], keep[:, distance:] * keep[:, :-distance]], 1)
        distance *= 2
    return new
