"""Position encodings: sinusoids, learned embeddings and relative positions."""

import math
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn


def sinusoids(positions: Int[Tensor, "*shape"], dim: int) -> Float[Tensor, "*shape {dim}"]:
    """Return sin(pos / 10000^(2i/dim)) at index 2i and the cosine at 2i+1 (Vaswani et al. 2017, section 3.5)."""
    rates = torch.exp(torch.arange(0, dim, 2, device=positions.device) * (-math.log(10000.0) / dim))
    angles = positions[..., None] * rates
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(-2)[..., :dim]


class EmbeddingInit(NamedTuple):
    """How token embeddings start, and what they and the sinusoids are multiplied by."""

    std: float = 1.0  # standard deviation of the initial token embeddings
    scale: float = 1.0  # factor of the token embeddings
    position_scale: float = 1.0  # factor of the sinusoids
    uniform: bool = False  # draw from a uniform distribution instead of a normal one


NORMAL = EmbeddingInit()


def embedding_init(name: str, vocab: int, dim: int) -> EmbeddingInit:
    """Return what a value of `model.embedding_init` stands for.

    Csordas et al. 2021 (arXiv 2108.12284, "The Devil is in the Detail", section on scaling of embeddings) compare
    `token_upscaling`, `no_scaling` and `position_downscaling`, and use `xavier` with relative positions.
    """
    xavier = math.sqrt(2 / (vocab + dim))
    return {
        "unit_variance": EmbeddingInit(std=dim**-0.5, scale=math.sqrt(dim)),
        "token_upscaling": EmbeddingInit(std=xavier, scale=math.sqrt(dim), uniform=True),
        "no_scaling": EmbeddingInit(),
        "position_downscaling": EmbeddingInit(std=math.sqrt(2 / dim), position_scale=dim**-0.5),
        "xavier": EmbeddingInit(std=xavier, uniform=True),
    }[name]


class Embedding(nn.Module):
    """Token embeddings, plus position embeddings of a `kind`: `sinusoidal`, `learned` or `none`.

    Learned positions start with the standard deviation of the scaled token embeddings.
    """

    def __init__(self, vocab: int, dim: int, kind: str, max_positions: int, init: EmbeddingInit = NORMAL) -> None:
        super().__init__()
        self.dim, self.kind, self.scale, self.position_scale = dim, kind, init.scale, init.position_scale
        self.tokens = nn.Embedding(vocab, dim)
        if init.uniform:
            nn.init.uniform_(self.tokens.weight, -math.sqrt(3) * init.std, math.sqrt(3) * init.std)
        else:
            nn.init.normal_(self.tokens.weight, std=init.std)
        if kind == "learned":
            self.positions = nn.Embedding(max_positions, dim)
            nn.init.normal_(self.positions.weight, std=init.std * init.scale)

    def forward(
        self, tokens: Int[Tensor, "*shape"], positions: Int[Tensor, "*shape"], end: int | None = None
    ) -> Float[Tensor, "*shape {self.dim}"]:
        """Embed tokens at their positions. With `end`, all positions must be below it; it makes sinusoids cheaper.

        Learned positions must be below `max_positions`; others raise an IndexError.
        """
        embedded: Tensor = self.tokens(tokens) * self.scale
        if self.kind == "learned":
            embedded = embedded + self.positions(positions)
        elif self.kind == "sinusoidal":
            if end is None:
                encoded = self.position_scale * sinusoids(positions, self.dim)
            else:  # sines are expensive, and positions repeat
                table = self.position_scale * sinusoids(torch.arange(end, device=positions.device), self.dim)
                encoded = table[positions]
            embedded = embedded + encoded.to(embedded.dtype)
        return embedded


class RelativePositions(nn.Module):
    """Relative positions: terms of attention scores that depend on the distance i - j (Dai et al. 2019, section 3.3).

    Scores are (q_i + u) k_j + (q_i + v) W r_{i-j}, with sinusoids r. `forward` returns q_i + u and the second term.
    """

    def __init__(self, dim: int, heads: int) -> None:
        super().__init__()
        self.dim, self.heads = dim, heads
        self.project = nn.Linear(dim, dim, bias=False)
        self.content_bias = nn.Parameter(torch.zeros(heads, 1, dim // heads))
        self.position_bias = nn.Parameter(torch.zeros(heads, 1, dim // heads))

    def forward(
        self, query: Float[Tensor, "batch heads query head_dim"], keys: int, start: int
    ) -> tuple[Float[Tensor, "batch heads query head_dim"], Float[Tensor, "batch heads query keys"]]:
        """Return both terms for queries at positions start, start + 1, ... and keys at positions 0 to `keys` - 1."""
        batch, heads, length, head_dim = query.shape
        lowest = start - (keys - 1)  # the smallest distance; the largest is start + length - 1
        distances = torch.arange(lowest, start + length, device=query.device)
        encoded = (
            self.project(sinusoids(distances, self.dim).to(query.dtype)).view(-1, heads, head_dim).permute(1, 2, 0)
        )
        by_distance = (query + self.position_bias) @ encoded  # batch heads query distances
        index = (
            torch.arange(start, start + length, device=query.device)[:, None]
            - torch.arange(keys, device=query.device)
            - lowest
        )
        return query + self.content_bias, by_distance.gather(-1, index.expand(batch, heads, length, keys))
