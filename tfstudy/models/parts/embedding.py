"""Token embeddings with positions, and how they start."""

import math
from typing import NamedTuple

from jaxtyping import Float, Int
from torch import Tensor, nn

from tfstudy.models.parts import positions
from tfstudy.models.parts.layers import Dropout


class EmbeddingInit(NamedTuple):
    """How token embeddings start, and what they are multiplied by."""

    std: float = 1.0  # standard deviation of the initial token embeddings
    scale: float = 1.0  # factor of the token embeddings
    uniform: bool = False  # draw from a uniform distribution instead of a normal one


NORMAL = EmbeddingInit()


def embedding_init(name: str, vocab: int, dim: int) -> EmbeddingInit:
    """Return what a value of `model.embedding_init` stands for.

    Csordas et al. 2021 (arXiv 2108.12284, "The Devil is in the Detail", section on scaling of embeddings) have
    `token_upscaling` with sinusoids, and `xavier` with relative positions.
    """
    xavier = math.sqrt(2 / (vocab + dim))
    return {
        "unit_variance": EmbeddingInit(std=dim**-0.5, scale=math.sqrt(dim)),
        "token_upscaling": EmbeddingInit(std=xavier, scale=math.sqrt(dim), uniform=True),
        "xavier": EmbeddingInit(std=xavier, uniform=True),
    }[name]


class Embedding(nn.Module):
    """Token embeddings, plus those of a position scheme that acts on embeddings (see `models.parts.positions`).

    Learned positions start with the standard deviation of the scaled token embeddings. `word_dropout` is the
    probability of dropping a token's whole embedding in training (Gal & Ghahramani 2016, arXiv 1512.05287, section 4.2,
    here for each position); its position remains.
    """

    def __init__(
        self,
        vocab: int,
        dim: int,
        scheme: str,
        max_positions: int,
        init: EmbeddingInit = NORMAL,
        word_dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.dim, self.scale, self.word_dropout = dim, init.scale, Dropout(word_dropout)
        self.tokens = nn.Embedding(vocab, dim)
        if init.uniform:
            nn.init.uniform_(self.tokens.weight, -math.sqrt(3) * init.std, math.sqrt(3) * init.std)
        else:
            nn.init.normal_(self.tokens.weight, std=init.std)
        setup = positions.Setup(dim, positions=max_positions, std=init.std * init.scale)
        self.positions = positions.embedded(scheme, setup)

    def forward(
        self, tokens: Int[Tensor, "*shape"], positions: Int[Tensor, "*shape"], end: int | None = None
    ) -> Float[Tensor, "*shape {self.dim}"]:
        """Embed tokens at their positions. With `end`, all positions must be below it; it makes sinusoids cheaper.

        Learned positions must be below `max_positions`; others raise an IndexError.
        """
        words = self.tokens(tokens) * self.scale
        if self.training and self.word_dropout.probability:
            words = words * self.word_dropout(words.new_ones(*tokens.shape, 1))
        embedded: Tensor = self.positions.embed(words, positions, end)
        return embedded
