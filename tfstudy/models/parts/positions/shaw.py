"""Relative positions of Shaw et al. 2018 (arXiv 1803.02155)."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from tfstudy.models.parts.positions.base import Places, PositionScheme, Setup, by_index

CLIPPED = 16  # distance from which on all distances are the same; section 4.3 of the paper finds no gain beyond 2


class Shaw(PositionScheme):
    """A learned vector for each distance clipped to [-16, 16], added to the keys: q_i (k_j + a_{i-j}) (eq. 4 and 5).

    Heads share the vectors, layers do not. The vectors for values are left out: they changed nothing (table 3).
    """

    acts_on = "attention"

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self.first = 0 if setup.causal else -CLIPPED
        self.vectors = nn.Parameter(torch.empty(CLIPPED - self.first + 1, setup.dim // setup.heads))
        nn.init.xavier_uniform_(self.vectors)

    def bias(
        self,
        queries: Float[Tensor, "batch heads queries head_dim"],
        keys: Float[Tensor, "batch heads keys head_dim"],
        places: Places,
    ) -> Float[Tensor, "batch heads queries keys"]:
        index = places.distances.clamp(self.first, CLIPPED) - self.first
        return by_index(queries @ self.vectors.T, index[:, None])
