"""FIRE: functional interpolation of relative positions (Li et al. 2023, arXiv 2310.04418)."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from tfstudy.models.parts.positions.base import Places, PositionScheme, Setup

WIDTH = 32  # hidden units of the network
THRESHOLD = 512.0  # initial value of L


class FIRE(PositionScheme):
    """A learned function of the distance relative to the position of the query, for each head (Li et al. 2023, eq. 4).

    f(psi(i - j) / psi(max(L, i))) with psi(x) = log(c x + 1), a network f with one hidden layer, and learned c and L.
    It is added to the scaled scores. The paper has keys before the query only; here those after it have negative
    values, and the later of both positions takes the place of i, which is the same for keys before the query.

    L starts at 512. As long as it is above all positions, the input of f depends on the distance alone.
    """

    acts_on = "attention"
    scaled = False

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self.network = nn.Sequential(nn.Linear(1, WIDTH), nn.ReLU(), nn.Linear(WIDTH, setup.heads))
        self.c = nn.Parameter(torch.tensor(0.1))
        self.threshold = nn.Parameter(torch.tensor(1.0))  # L as a multiple of its initial value

    def bias(
        self,
        queries: Float[Tensor, "batch heads queries head_dim"],
        keys: Float[Tensor, "batch heads keys head_dim"],
        places: Places,
    ) -> Float[Tensor, "rows heads queries keys"]:
        interpolated: Tensor = self.network(self.interpolated(places)[..., None])
        return interpolated.permute(0, 3, 1, 2).to(queries.dtype)

    def interpolated(self, places: Places) -> Float[Tensor, "rows queries keys"]:
        """Return the input of the network, in [-1, 1]."""
        distances = places.distances.to(self.c.dtype)
        later = torch.maximum(places.queries[:, :, None], places.keys[:, None])
        end = torch.maximum(later, (THRESHOLD * self.threshold).abs())
        return distances.sign() * self._psi(distances) / self._psi(end)

    def keep_heads(self, heads: list[int]) -> None:
        last = self.network[-1]
        assert isinstance(last, nn.Linear)  # noqa: S101 - always true; for the type checker
        last.weight, last.bias = nn.Parameter(last.weight[heads]), nn.Parameter(last.bias[heads])
        last.out_features = len(heads)

    def _psi(self, x: Tensor) -> Tensor:
        return torch.log1p((self.c * x).abs())
