"""Relative positions of Transformer-XL (Dai et al. 2019, arXiv 1901.02860)."""

from collections.abc import Iterator

import torch
from jaxtyping import Float
from torch import Tensor, nn

from tfstudy.models.parts.positions.absolute import sinusoids
from tfstudy.models.parts.positions.base import Places, PositionScheme, Setup, by_index


class TransformerXL(PositionScheme):
    """Terms of attention scores that depend on the distance i - j (Dai et al. 2019, section 3.3).

    Scores are (q_i + u) k_j + (q_i + v) W r_{i-j}, with sinusoids r.
    """

    acts_on = "attention"

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        dim, heads = setup.dim, setup.heads
        self.dim = dim
        self.project = nn.Linear(dim, dim, bias=False)
        self.content_bias = nn.Parameter(torch.zeros(heads, 1, dim // heads))
        self.position_bias = nn.Parameter(torch.zeros(heads, 1, dim // heads))

    def rotate_queries(self, queries: Float[Tensor, "batch heads queries head_dim"], positions: Tensor) -> Tensor:
        return queries + self.content_bias

    def bias(
        self,
        queries: Float[Tensor, "batch heads queries head_dim"],
        keys: Float[Tensor, "batch heads keys head_dim"],
        places: Places,
    ) -> Float[Tensor, "batch heads queries keys"]:
        heads, head_dim = queries.shape[1], queries.shape[3]
        distances = torch.arange(places.lowest, places.highest + 1, device=queries.device)
        encoded = sinusoids(distances, self.dim).to(queries.dtype)
        encoded = self.project(encoded).view(len(distances), heads, head_dim).permute(1, 2, 0)
        by_distance = (queries + self.position_bias) @ encoded  # batch heads queries distances
        return by_index(by_distance, (places.distances - places.lowest)[:, None])

    def keep_heads(self, heads: list[int]) -> None:
        rows = torch.arange(self.project.out_features).view(len(self.content_bias), -1)[heads].flatten()
        self.project.weight, self.project.out_features = nn.Parameter(self.project.weight[rows]), len(rows)
        self.content_bias = nn.Parameter(self.content_bias[heads])
        self.position_bias = nn.Parameter(self.position_bias[heads])

    def parameters_without_decay(self) -> Iterator[nn.Parameter]:
        yield from (self.content_bias, self.position_bias)
