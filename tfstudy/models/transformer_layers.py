"""The layers of the Transformer: attention and a feed-forward network, each in a residual connection."""

from collections.abc import Iterator, Sequence

from jaxtyping import Float
from torch import Tensor, nn

from tfstudy.models.attention import MultiHeadAttention
from tfstudy.models.cache import Cache, KeyValue
from tfstudy.models.layers import Dropout
from tfstudy.models.listening import Site
from tfstudy.models.ragged import Shapes
from tfstudy.models.residual import Residual
from tfstudy.models.transformer_config import TransformerConfig


class Stack(nn.Module):
    """A stack of `layers` layers, or one layer applied `layers` times. With pre-norm, a final norm follows."""

    def __init__(self, config: TransformerConfig, layers: int, decoder: bool) -> None:
        super().__init__()
        self.depth = layers
        self.layers = nn.ModuleList(Layer(config, decoder) for _ in range(1 if config.share_layers else layers))
        self.norm = nn.LayerNorm(config.dim) if config.norm == "pre" else nn.Identity()

    def __iter__(self) -> Iterator["Layer"]:
        for depth in range(self.depth):
            yield self.layers[depth % len(self.layers)]  # type: ignore[misc]


class Layer(nn.Module):
    """Self-attention, cross-attention (decoder only) and a feed-forward network, each with a residual connection.

    Its number counts from 1. A shared layer is applied with several numbers.
    """

    def __init__(self, config: TransformerConfig, decoder: bool) -> None:
        super().__init__()
        self.residual = Residual(config.norm)
        self.attention = MultiHeadAttention(config.dim, config.heads, config.attention_dropout, config.positions)
        self.attention_norm = nn.LayerNorm(config.dim)
        if decoder:
            self.cross = MultiHeadAttention(config.dim, config.heads, config.attention_dropout)
            self.cross_norm = nn.LayerNorm(config.dim)
        inner, outer = nn.Linear(config.dim, config.feedforward), nn.Linear(config.feedforward, config.dim)
        self.feedforward = nn.Sequential(inner, nn.ReLU(), Dropout(config.dropout), outer)
        self.feedforward_norm = nn.LayerNorm(config.dim)
        self.dropout = Dropout(config.dropout)
        for layer in (inner, outer):
            nn.init.xavier_uniform_(layer.weight)
            nn.init.zeros_(layer.bias)

    def encode(
        self, x: Float[Tensor, "positions dim"], shapes: Shapes, masks: Sequence[Tensor], number: int
    ) -> Float[Tensor, "positions dim"]:
        normed = self.residual.before(self.attention_norm, x)
        own = self.attention.project(normed, shapes)
        update = self.attention(normed, shapes, own, masks, site=Site("encoder", number))
        return self._feed(self._add(self.attention_norm, x, update))

    def decode_self(
        self, x: Float[Tensor, "positions dim"], shapes: Shapes, past: Sequence[Cache], number: int
    ) -> tuple[Float[Tensor, "positions dim"], list[Cache]]:
        """Attend to the target so far."""
        normed = self.residual.before(self.attention_norm, x)
        new = self.attention.project(normed, shapes)
        past = [before.append(now) for before, now in zip(past, new, strict=True)]
        seen = [cache.seen for cache in past]
        update = self.attention(normed, shapes, seen, causal=True, site=Site("decoder", number))
        return self._add(self.attention_norm, x, update), past

    def decode_cross(
        self,
        x: Float[Tensor, "positions dim"],
        shapes: Shapes,
        memory: Sequence[KeyValue],
        masks: Sequence[Tensor],
        number: int,
    ) -> Float[Tensor, "positions dim"]:
        """Attend to the source, and apply the feed-forward network."""
        normed = self.residual.before(self.cross_norm, x)
        update = self.cross(normed, shapes, memory, masks, site=Site("cross", number))
        return self._feed(self._add(self.cross_norm, x, update))

    def _feed(self, x: Tensor) -> Tensor:
        update = self.feedforward(self.residual.before(self.feedforward_norm, x))
        return self._add(self.feedforward_norm, x, update)

    def _add(self, norm: nn.Module, x: Tensor, update: Tensor) -> Tensor:
        return self.residual.after(norm, x, self.dropout(update))
