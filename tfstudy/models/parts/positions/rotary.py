"""Rotary positions (Su et al. 2021, arXiv 2104.09864)."""

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor

from tfstudy.models.parts.positions.base import PositionScheme


class Rotary(PositionScheme):
    """Queries and keys whose pairs of features are rotated by angles proportional to their positions.

    Features 2i and 2i+1 of a head are rotated by pos / 10000^(2i / head_dim) (Su et al. 2021, eq. 15 and 34), so that
    the product of a query and a key depends on the distance only.
    """

    acts_on = "attention"

    def rotate_queries(self, queries: Float[Tensor, "batch heads queries head_dim"], positions: Tensor) -> Tensor:
        return rotated(queries, positions)

    def rotate_keys(self, keys: Float[Tensor, "batch heads keys head_dim"], positions: Tensor) -> Tensor:
        return rotated(keys, positions)


def rotated(
    x: Float[Tensor, "batch heads length head_dim"], positions: Int[Tensor, "rows length"]
) -> Float[Tensor, "batch heads length head_dim"]:
    """Return `x` with each pair of features rotated. `head_dim` must be even, and rows 1 or batch."""
    dim = x.shape[-1]
    rates = torch.exp(torch.arange(0, dim, 2, device=x.device) * (-math.log(10000.0) / dim))
    angles = positions[:, None, :, None] * rates
    sin, cos = angles.sin().to(x.dtype), angles.cos().to(x.dtype)
    even, odd = x[..., ::2], x[..., 1::2]
    return torch.stack([even * cos - odd * sin, even * sin + odd * cos], dim=-1).flatten(-2)
