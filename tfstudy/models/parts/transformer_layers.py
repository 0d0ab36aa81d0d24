"""The layers of the Transformer: attention and a feed-forward network, each in a residual connection."""

from collections.abc import Callable, Iterator, Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from tfstudy.models.parts.attention import Cache, KeyValue, MultiHeadAttention, Scores
from tfstudy.models.parts.layers import Dropout, Residual
from tfstudy.models.parts.observing import Site
from tfstudy.models.parts.positions.base import Places
from tfstudy.models.parts.positions.schemes import sinusoids
from tfstudy.models.parts.tokens import Shapes
from tfstudy.models.parts.transformer_config import TransformerConfig

GATES: dict[str, Callable[[Tensor], Tensor]] = {"swiglu": functional.silu, "geglu": functional.gelu}


class Gate(nn.Module):
    """The product g(x) * y of the two halves of a vector (Shazeer 2020, arXiv 2002.05202, eq. 6)."""

    def __init__(self, activation: str) -> None:
        super().__init__()
        self.function = GATES[activation]

    def forward(self, x: Float[Tensor, "*shape twice"]) -> Tensor:
        gate, value = x.chunk(2, -1)
        return self.function(gate) * value


def feedforward(config: TransformerConfig) -> nn.Sequential:
    """Return W2 g(W1 x + b1) + b2, with dropout behind the activation g. Gated ones have a second matrix beside W1."""
    gated = config.activation in GATES
    inner = nn.Linear(config.dim, config.feedforward * (2 if gated else 1))
    outer = nn.Linear(config.feedforward, config.dim)
    activation = Gate(config.activation) if gated else nn.GELU() if config.activation == "gelu" else nn.ReLU()
    dropout = config.dropout if config.activation_dropout is None else config.activation_dropout
    for weight in (*inner.weight.chunk(2 if gated else 1), outer.weight):
        nn.init.xavier_uniform_(weight)
    for layer in (inner, outer):
        nn.init.zeros_(layer.bias)
    return nn.Sequential(inner, activation, Dropout(dropout), outer)


def residual(config: TransformerConfig, layers: int) -> Residual:
    """Return the residual connection of the sublayers of a stack of this many layers."""
    return Residual(config.norm, config.norm_type, config.residual, (2 * layers) ** -0.5)


class Stack(nn.Module):
    """A stack of `layers` layers, or one layer applied `layers` times. A final norm may follow."""

    def __init__(self, config: TransformerConfig, layers: int, decoder: bool) -> None:
        super().__init__()
        self.depth, self.test_depth = layers, config.test_layers or layers
        self.depth_signal, self.input_injection = config.depth_signal, config.input_injection
        self.layers = nn.ModuleList(Layer(config, decoder, layers) for _ in range(1 if config.share_layers else layers))
        self.norm = residual(config, layers).final_norm(config.dim)

    def __iter__(self) -> Iterator["Layer"]:
        for depth in range(self.depth if self.training else self.test_depth):
            yield self.layers[depth % len(self.layers)]  # type: ignore[misc]

    def enter(
        self, x: Float[Tensor, "positions dim"], embedded: Float[Tensor, "positions dim"], number: int
    ) -> Float[Tensor, "positions dim"]:
        """Return what layer `number` (from 1) reads: the output of the layer before it, and what is added to it."""
        if self.input_injection and number > 1:
            x = x + embedded
        if self.depth_signal:
            x = x + sinusoids(torch.full((), number, device=x.device), x.shape[-1]).to(x.dtype)
        return x


class Layer(nn.Module):
    """Self-attention, cross-attention (decoder only) and a feed-forward network, each with a residual connection.

    Its number counts from 1. A shared layer is applied with several numbers.
    """

    def __init__(self, config: TransformerConfig, decoder: bool, depth: int = 1) -> None:
        super().__init__()
        self.residual = residual(config, depth)
        scores = Scores(
            config.score_scale == "sqrt_dim", config.temperature, config.norm_type if config.qk_norm else "none"
        )
        scheme = config.target_positions if decoder else config.positions
        shape = (config.dim, config.heads, config.attention_dropout)
        self.attention = MultiHeadAttention(*shape, scheme, decoder, scores, config.attention_window)
        self.attention_norm = self.residual.norm(config.dim)
        if decoder:
            self.cross = MultiHeadAttention(*shape, config.cross_positions, scores=scores)
            self.cross_norm = self.residual.norm(config.dim)
        self.feedforward = feedforward(config)
        self.feedforward_norm = self.residual.norm(config.dim)
        self.dropout = Dropout(config.dropout)

    def encode(
        self,
        x: Float[Tensor, "positions dim"],
        shapes: Shapes,
        masks: Sequence[Tensor],
        number: int,
        places: Sequence[Places] | None = None,
    ) -> Float[Tensor, "positions dim"]:
        return self.encode_with_keys(x, shapes, masks, number, places)[0]

    def encode_with_keys(
        self,
        x: Float[Tensor, "positions dim"],
        shapes: Shapes,
        masks: Sequence[Tensor],
        number: int,
        places: Sequence[Places] | None = None,
    ) -> tuple[Float[Tensor, "positions dim"], list[KeyValue]]:
        """Return the output, and the keys and values of the self-attention."""
        normed = self.residual.before(self.attention_norm, x)
        own = self.attention.project(normed, shapes, places)
        update = self.attention(normed, shapes, own, masks, site=Site("encoder", number), places=places)
        return self._feed(self._add(self.attention_norm, x, update)), own

    def decode_self(
        self,
        x: Float[Tensor, "positions dim"],
        shapes: Shapes,
        past: Sequence[Cache],
        number: int,
        places: Sequence[Places] | None = None,
        masks: Sequence[Tensor] | None = None,
    ) -> tuple[Float[Tensor, "positions dim"], list[Cache]]:
        """Attend to the target so far."""
        normed = self.residual.before(self.attention_norm, x)
        site = Site("decoder" if masks is None else "prefix", number)
        update, after = self.attention.attend_causally(normed, shapes, past, site, places, masks)
        return self._add(self.attention_norm, x, update), after

    def decode_after_prefix(
        self,
        x: Float[Tensor, "positions dim"],
        shapes: Shapes,
        past: Sequence[Cache],
        masks: Sequence[Tensor],
        number: int,
        places: Sequence[Places],
    ) -> tuple[Float[Tensor, "positions dim"], list[Cache]]:
        """Attend to the source and the target so far, which are both in `past`, and apply the feed-forward network."""
        x, after = self.decode_self(x, shapes, past, number, places, masks)
        return self._feed(x), after

    def decode_cross(
        self,
        x: Float[Tensor, "positions dim"],
        shapes: Shapes,
        memory: Sequence[KeyValue],
        masks: Sequence[Tensor],
        number: int,
        places: Sequence[Places] | None = None,
        weighted: bool = False,
    ) -> tuple[Float[Tensor, "positions dim"], list[Float[Tensor, "sources queries source"]]]:
        """Attend to the source, and apply the feed-forward network; also return the weights if `weighted`."""
        normed, site = self.residual.before(self.cross_norm, x), Site("cross", number)
        weights: list[Tensor] = []
        if weighted:
            update, weights = self.cross.with_weights(normed, shapes, memory, masks, site=site, places=places)
        else:
            update = self.cross(normed, shapes, memory, masks, site=site, places=places)
        return self._feed(self._add(self.cross_norm, x, update)), weights

    def _feed(self, x: Tensor) -> Tensor:
        return self._add(self.feedforward_norm, x, self.feedforward(self.residual.before(self.feedforward_norm, x)))

    def _add(self, norm: nn.Module, x: Tensor, update: Tensor) -> Tensor:
        return self.residual.after(norm, x, self.dropout(update))
