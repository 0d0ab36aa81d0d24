"""The layers of the Transformer: attention and a feed-forward network, each in a residual connection; embeddings."""

import math
from collections.abc import Callable, Iterator, Sequence

from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from tfstudy.models import positions
from tfstudy.models.attention import Cache, KeyValue, MultiHeadAttention, Sight, append
from tfstudy.models.base import HiddenStates
from tfstudy.models.checkpointing import run_layer
from tfstudy.models.config import TransformerConfig
from tfstudy.models.dropout import Dropout
from tfstudy.models.residual import Residual
from tfstudy.models.tokens import Tokens

GATED: dict[str, Callable[[Tensor], Tensor]] = {"swiglu": functional.silu, "geglu": functional.gelu}


class Layer(nn.Module):
    """Self-attention, cross-attention (if it `crosses`) and a feed-forward network, each with a residual connection."""

    def __init__(self, config: TransformerConfig, crosses: bool, residual: Residual) -> None:
        super().__init__()
        self.residual = residual
        shape = config.dim, config.heads, config.attention_dropout
        self.attention = MultiHeadAttention(*shape, config.positions, crosses)  # with cross-attention, it is causal
        self.attention_norm = residual.norm(config.dim)
        if crosses:
            self.cross = MultiHeadAttention(*shape)
            self.cross_norm = residual.norm(config.dim)
        self.feedforward = feedforward(config)
        self.feedforward_norm = residual.norm(config.dim)
        self.dropout = Dropout(config.dropout)

    def forward(
        self,
        x: Float[Tensor, "tokens dim"],
        near: Sight,
        past: Sequence[Cache] = (),
        memory: Sequence[KeyValue] = (),
        far: Sight | None = None,
    ) -> tuple[Float[Tensor, "tokens dim"], Sequence[Cache]]:
        """Return the outputs, and the keys and values of self-attention so far.

        `past` is what earlier calls returned of them, `memory` the keys and values of the source, and `near` and `far`
        say what self-attention and cross-attention see.
        """
        normed = self.residual.before(self.attention_norm, x)
        seen = append(past, self.attention.key_values(normed, near))
        x = self._add(self.attention_norm, x, self.attention(normed, near, seen))
        if far is not None:
            x = self._add(self.cross_norm, x, self.cross(self.residual.before(self.cross_norm, x), far, memory))
        update = self.feedforward(self.residual.before(self.feedforward_norm, x))
        return self._add(self.feedforward_norm, x, update), seen

    def _add(self, norm: nn.Module, x: Tensor, update: Tensor) -> Tensor:
        return self.residual.after(norm, x, self.dropout(update))


class Stack(nn.Module):
    """A stack of `depth` layers, or one layer applied `depth` times. Its final norm is called apart."""

    def __init__(self, config: TransformerConfig, depth: int, crosses: bool) -> None:
        super().__init__()
        self.depth = depth
        residual = Residual(config.norm, config.norm_type, config.residual, (2 * depth) ** -0.5)
        self.layers = nn.ModuleList(
            Layer(config, crosses, residual) for _ in range(1 if config.share_layers else depth)
        )
        self.norm = residual.final_norm(config.dim)

    def __iter__(self) -> Iterator[Layer]:
        """Iterate over the layer at each depth."""
        return (self.layers[depth % len(self.layers)] for depth in range(self.depth))  # type: ignore[misc]

    def forward(
        self,
        x: Float[Tensor, "tokens dim"],
        near: Sight,
        states: HiddenStates,
        caches: Sequence[Sequence[Cache]] = (),
        memory: Sequence[Sequence[KeyValue]] = (),
        far: Sight | None = None,
    ) -> tuple[Float[Tensor, "tokens dim"], Sequence[Sequence[Cache]]]:
        """Return the outputs of the last layer, and the caches of all layers; arguments as in `Layer`, for each depth.

        The hidden states pass through `states`.
        """
        x, after = states(x, 0), []
        for depth, layer in enumerate(self):
            past, source = caches[depth] if caches else (), memory[depth] if memory else ()
            x, cache = run_layer(layer, x, near, past, source, far)
            x = states(x, depth + 1)
            after.append(cache)
        return x, tuple(after)


class GatedActivation(nn.Module):
    """The product g(x) * y of the two halves of a vector (Shazeer 2020, arXiv 2002.05202, eq. 6)."""

    def __init__(self, activation: str) -> None:
        super().__init__()
        self.function = GATED[activation]

    def forward(self, x: Float[Tensor, "*shape twice"]) -> Tensor:
        gate, value = x.chunk(2, -1)
        return self.function(gate) * value


def feedforward(config: TransformerConfig) -> nn.Sequential:
    """Return W2 g(W1 x + b1) + b2, with dropout behind the activation g. Gated ones have a second matrix beside W1."""
    gated = config.activation in GATED
    inner = nn.Linear(config.dim, config.feedforward * (2 if gated else 1))
    outer = nn.Linear(config.feedforward, config.dim)
    activation = (
        GatedActivation(config.activation) if gated else nn.GELU() if config.activation == "gelu" else nn.ReLU()
    )
    for weight in (*inner.weight.chunk(2 if gated else 1), outer.weight):
        nn.init.xavier_uniform_(weight)
    for layer in (inner, outer):
        nn.init.zeros_(layer.bias)
    dropout = config.dropout if config.activation_dropout is None else config.activation_dropout
    return nn.Sequential(inner, activation, Dropout(dropout), outer)


def embedding_init(name: str, vocab: int, dim: int) -> tuple[float, float, bool]:
    """Return what a value of `model.embedding_init` stands for: the argument `init` of an `Embedding`.

    Csordas et al. 2021 (arXiv 2108.12284, "The Devil is in the Detail", section on scaling of embeddings) have
    `token_upscaling` with sinusoids, and `xavier` with relative positions.
    """
    std = dim**-0.5 if name == "unit_variance" else math.sqrt(2 / (vocab + dim))
    return std, 1.0 if name == "xavier" else math.sqrt(dim), name != "unit_variance"


class Embedding(nn.Module):
    """Token embeddings, plus those of a position scheme that acts on embeddings (see `models.positions`).

    `init` is the standard deviation of the token embeddings at the start, what they are multiplied by, and whether they
    are drawn from a uniform distribution, not a normal one, as in Xavier's initialisation. Learned positions start with
    the standard deviation of the product or, with Xavier's initialisation, that of a matrix of their own size.
    """

    def __init__(self, vocab: int, dim: int, scheme: str, max_positions: int, init: tuple[float, float, bool]) -> None:
        super().__init__()
        std, self.scale, uniform = init
        self.std, self.tokens = std * self.scale, nn.Embedding(vocab, dim)
        if uniform:
            nn.init.uniform_(self.tokens.weight, -math.sqrt(3) * std, math.sqrt(3) * std)
        else:
            nn.init.normal_(self.tokens.weight, std=std)
        of_positions = math.sqrt(2 / (max_positions + dim)) if uniform else self.std
        self.positions = positions.embedded(scheme, positions.Setup(dim, positions=max_positions, std=of_positions))

    def forward(self, tokens: Tokens) -> Float[Tensor, "tokens dim"]:
        """Embed tokens at their positions. Learned ones must be below `max_positions`; others raise an IndexError."""
        words = self.tokens(tokens.ids) * self.scale
        embedded: Tensor = self.positions.embed(words, tokens.positions, tokens.bound)
        return embedded
