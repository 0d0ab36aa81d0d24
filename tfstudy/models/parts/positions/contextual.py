"""Contextual positions: CoPE (Golovneva et al. 2024, arXiv 2405.18719)."""

import math

import torch
from jaxtyping import Float
from torch import Tensor, nn

from tfstudy.models.parts.positions.base import Places, PositionScheme, Setup, by_index

FARTHEST = 63  # the largest position; section 4 of the paper has 64 positions


class Contextual(PositionScheme):
    """Positions that count tokens selected by the query: q_i e[p_ij], with p_ij = g_ij + ... + g_ii (eq. 3 to 7).

    The gate g_ij is the logistic function of the scaled product of query i and key j. Fractional positions interpolate
    between the embeddings e, which all heads share; larger ones than 63 are 63. As in the code of the paper, the bias
    is added to the scaled scores. The paper has keys before the query only; here those after it are at
    p_ij = g_ii + ... + g_ij, with embeddings of their own.
    """

    acts_on = "attention"
    scaled = False

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        directions, self.causal = 1 if setup.causal else 2, setup.causal
        self.embeddings = nn.Parameter(torch.zeros(directions * (FARTHEST + 1), setup.dim // setup.heads))

    def bias(
        self,
        queries: Float[Tensor, "batch heads queries head_dim"],
        keys: Float[Tensor, "batch heads keys head_dim"],
        places: Places,
    ) -> Float[Tensor, "batch heads queries keys"]:
        gates = (queries @ keys.transpose(-1, -2) / math.sqrt(queries.shape[-1])).sigmoid()
        gates = gates.to(torch.promote_types(gates.dtype, torch.float32))  # 16 bits are not enough for a sum
        positions = counted(gates, places).clamp(max=FARTHEST)
        below = positions.detach().long()
        weight, above = positions - below, (below + 1).clamp(max=FARTHEST)
        values = queries @ self.embeddings.T
        first = 0 if self.causal else (places.distances < 0).long()[:, None] * (FARTHEST + 1)
        return torch.lerp(by_index(values, below + first), by_index(values, above + first), weight.to(values.dtype))


def counted(
    gates: Float[Tensor, "batch heads queries keys"], places: Places
) -> Float[Tensor, "batch heads queries keys"]:
    """Return the sum of each query's gates from the key to the query's own token, both included."""
    distances, sums = places.distances[:, None], gates.cumsum(-1)
    own = distances == 0

    def at_own_token(values: Tensor) -> Tensor:
        return (values * own).sum(-1, keepdim=True)

    ends = torch.where(distances > 0, gates, at_own_token(gates))
    return (sums - at_own_token(sums)).abs() + ends
