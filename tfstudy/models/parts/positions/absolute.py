"""Positions that are added to the embeddings: sinusoids, and learned embeddings."""

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from tfstudy.models.parts.positions.base import PositionScheme, Setup


def sinusoids(positions: Int[Tensor, "*shape"], dim: int) -> Float[Tensor, "*shape {dim}"]:
    """Return sin(pos / 10000^(2i/dim)) at index 2i and the cosine at 2i+1 (Vaswani et al. 2017, section 3.5)."""
    rates = torch.exp(torch.arange(0, dim, 2, device=positions.device) * (-math.log(10000.0) / dim))
    angles = positions[..., None] * rates
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(-2)[..., :dim]


class Sinusoidal(PositionScheme):
    """Sinusoids (Vaswani et al. 2017, section 3.5)."""

    acts_on = "embeddings"

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self.dim = setup.dim

    def embed(self, x: Float[Tensor, "*shape dim"], positions: Int[Tensor, "*shape"], end: int | None = None) -> Tensor:
        if end is None:
            encoded = sinusoids(positions, self.dim)
        else:  # sines are expensive, and positions repeat
            table = sinusoids(torch.arange(end, device=positions.device), self.dim)
            encoded = table[positions]
        return x + encoded.to(x.dtype)


class Learned(PositionScheme):
    """A learned embedding for each position below `setup.positions`; others raise an IndexError."""

    acts_on = "embeddings"

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self.weight = nn.Embedding(setup.positions, setup.dim).weight
        nn.init.normal_(self.weight, std=setup.std)

    def embed(self, x: Float[Tensor, "*shape dim"], positions: Int[Tensor, "*shape"], end: int | None = None) -> Tensor:
        return x + nn.functional.embedding(positions, self.weight)
