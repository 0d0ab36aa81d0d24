"""The Transformer of Vaswani et al. 2017 (arXiv 1706.03762), pre-norm by default (Xiong et al. 2020)."""

from collections.abc import Iterator, Sequence
from typing import ClassVar, Literal, NamedTuple

from jaxtyping import Bool, Float
from pydantic import Field, model_validator
from torch import Tensor, nn

from tfstudy.models.attention import MultiHeadAttention
from tfstudy.models.base import RaggedModel
from tfstudy.models.cache import Cache, KeyValue
from tfstudy.models.config import TiedConfig
from tfstudy.models.layers import Dropout
from tfstudy.models.listening import Site
from tfstudy.models.positions import Embedding, RelativePositions, embedding_init
from tfstudy.models.ragged import Shapes, flatten_groups, shapes_by_source, shapes_of, token_positions


class TransformerSource(NamedTuple):
    """Keys and values of the source for each decoder layer."""

    memory: tuple[KeyValue, ...]
    mask: Bool[Tensor, "sources source"]


class TransformerState(NamedTuple):
    """The source, and keys and values of the target tokens decoded so far for each decoder layer."""

    source: TransformerSource
    past: tuple[Cache, ...]


class Transformer(RaggedModel):
    """The Transformer: self-attention in the encoder, causal self-attention and cross-attention in the decoder."""

    version = 1
    parallel = True
    widths = ("dim", "feedforward")
    small: ClassVar = {"dim": 16, "heads": 2, "feedforward": 24, "max_positions": 64}
    variants: ClassVar = {
        "postnorm": {"norm": "post"},
        "relative": {"positions": "relative"},
        "learned": {"positions": "learned"},
        "none": {"positions": "none"},
        "share_layers": {"share_layers": True, "decoder_layers": 3},
        "tie_output": {"tie_output": True},
        "token_upscaling": {"embedding_init": "token_upscaling"},
        "no_scaling": {"embedding_init": "no_scaling"},
        "position_downscaling": {"embedding_init": "position_downscaling"},
        "xavier": {"embedding_init": "xavier", "positions": "relative", "tie_output": True},
        "share_embeddings": {"share_embeddings": True, "tie_output": True},
    }
    bags = ("none",)

    class Config(TiedConfig):
        encoder_layers: int = Field(2, ge=1, le=512, description="layers of the encoder")
        decoder_layers: int = Field(2, ge=1, le=512, description="layers of the decoder")
        heads: int = Field(4, ge=1, description="attention heads; must divide dim")
        feedforward: int = Field(256, ge=1, le=65536, description="hidden width of the feed-forward layers")
        attention_dropout: float = Field(0.0, ge=0, lt=1, description="dropout on attention weights (slower on CPU)")
        norm: Literal["pre", "post"] = Field("pre", description="layer normalisation before or after each sublayer")
        positions: Literal["sinusoidal", "learned", "relative", "none"] = Field(
            "sinusoidal", description="position encoding; relative: Dai et al. 2019"
        )
        max_positions: int = Field(512, ge=1, description="size of the table of learned positions")
        embedding_init: Literal["unit_variance", "token_upscaling", "no_scaling", "position_downscaling", "xavier"] = (
            Field(
                "unit_variance",
                description=(
                    "initial token embeddings: normal with variance 1/dim, times sqrt(dim); Xavier uniform, times "
                    "sqrt(dim); normal with variance 1; normal with variance 2/dim, sinusoids divided by sqrt(dim); or "
                    "Xavier uniform, as Csordas et al. 2021 have it with relative positions"
                ),
            )
        )
        share_layers: bool = Field(False, description="use the same layer at every depth")

        @model_validator(mode="after")
        def _heads_divide_dim(self) -> "Transformer.Config":
            if self.dim % self.heads:
                raise ValueError(f"heads must divide dim ({self.dim}), but is {self.heads}")
            return self

    def __init__(self, config: Config, source_vocab: int, target_vocab: int) -> None:
        super().__init__(config, source_vocab, target_vocab)
        self.config = config
        kind = "none" if config.positions == "relative" else config.positions

        def embedding(vocab: int) -> Embedding:
            init = embedding_init(config.embedding_init, vocab, config.dim)
            return Embedding(vocab, config.dim, kind, config.max_positions, init)

        config.check_vocabularies(source_vocab, target_vocab)
        self.target_embedding = embedding(target_vocab)
        self.source_embedding = self.target_embedding if config.share_embeddings else embedding(source_vocab)
        self.encoder = Stack(config, config.encoder_layers, decoder=False)
        self.decoder = Stack(config, config.decoder_layers, decoder=True)
        self.output = nn.Linear(config.dim, target_vocab, bias=not config.tie_output)
        if config.tie_output:
            self.output.weight = self.target_embedding.tokens.weight
        else:
            nn.init.xavier_uniform_(self.output.weight)
            nn.init.zeros_(self.output.bias)
        self.dropout = Dropout(config.dropout)

    @property
    def max_positions(self) -> int | None:
        return self.config.max_positions if self.config.positions == "learned" else None

    def parameters_without_decay(self) -> Iterator[nn.Parameter]:
        yield from super().parameters_without_decay()
        for module in self.modules():
            if isinstance(module, RelativePositions):
                yield from (module.content_bias, module.position_bias)

    def encode_groups(self, sources: Sequence[Tensor], masks: Sequence[Tensor]) -> list[TransformerState]:
        shapes, seen = shapes_of(sources), [mask[:, None, None] for mask in masks]
        x = self._embed(self.source_embedding, sources)
        for number, layer in enumerate(self.encoder, 1):
            x = layer.encode(x, shapes, seen, number)
        x = self.encoder.norm(x)
        memories = zip(*(layer.cross.project(x, shapes) for layer in self.decoder), strict=True)
        return [
            TransformerState(TransformerSource(memory, mask), (self._empty(x, len(mask)),) * len(memory))
            for memory, mask in zip(memories, masks, strict=True)
        ]

    def decode_groups(
        self, tokens: Sequence[Tensor], states: Sequence[TransformerState]
    ) -> tuple[Tensor, list[TransformerState]]:
        sources, shapes = [state.source for state in states], shapes_of(tokens)
        masks = [source.mask for source in sources]
        by_source, seen = shapes_by_source(tokens, masks), [mask[:, None, None] for mask in masks]
        x = self._embed(self.target_embedding, tokens, [state.past[0].length for state in states])
        pasts = []
        for depth, layer in enumerate(self.decoder):
            x, past = layer.decode_self(x, shapes, [state.past[depth] for state in states], depth + 1)
            x = layer.decode_cross(x, by_source, [source.memory[depth] for source in sources], seen, depth + 1)
            pasts.append(past)
        after = [state._replace(past=past) for state, past in zip(states, zip(*pasts, strict=True), strict=True)]
        return self.output(self.decoder.norm(x)), after

    def _embed(self, embedding: Embedding, tokens: Sequence[Tensor], starts: Sequence[int] | None = None) -> Tensor:
        """Embed the tokens of all groups, each group from its own start position on (0 by default)."""
        starts = starts or [0] * len(tokens)
        rows = [group.new_full((len(group),), start) for group, start in zip(tokens, starts, strict=True)]
        end = max(start + group.shape[1] for group, start in zip(tokens, starts, strict=True))
        embedded: Tensor = self.dropout(embedding(flatten_groups(tokens), token_positions(tokens, rows), end))
        return embedded

    def _empty(self, x: Tensor, batch: int) -> Cache:
        empty = x.new_zeros(batch, self.config.heads, 0, self.config.dim // self.config.heads)
        return Cache(KeyValue(empty, empty))


class Stack(nn.Module):
    """A stack of `layers` layers, or one layer applied `layers` times. With pre-norm, a final norm follows."""

    def __init__(self, config: Transformer.Config, layers: int, decoder: bool) -> None:
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

    def __init__(self, config: Transformer.Config, decoder: bool) -> None:
        super().__init__()
        self.pre = config.norm == "pre"
        relative = config.positions == "relative"
        self.attention = MultiHeadAttention(config.dim, config.heads, config.attention_dropout, relative)
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

    def _before(self, norm: nn.Module, x: Tensor) -> Tensor:
        return norm(x) if self.pre else x

    def _add(self, norm: nn.Module, x: Tensor, update: Tensor) -> Tensor:
        x = x + self.dropout(update)
        return x if self.pre else norm(x)

    def encode(
        self, x: Float[Tensor, "positions dim"], shapes: Shapes, masks: Sequence[Tensor], number: int
    ) -> Float[Tensor, "positions dim"]:
        normed = self._before(self.attention_norm, x)
        own = self.attention.project(normed, shapes)
        update = self.attention(normed, shapes, own, masks, site=Site("encoder", number))
        return self._feed(self._add(self.attention_norm, x, update))

    def decode_self(
        self, x: Float[Tensor, "positions dim"], shapes: Shapes, past: Sequence[Cache], number: int
    ) -> tuple[Float[Tensor, "positions dim"], list[Cache]]:
        """Attend to the target so far."""
        normed = self._before(self.attention_norm, x)
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
        normed = self._before(self.cross_norm, x)
        update = self.cross(normed, shapes, memory, masks, site=Site("cross", number))
        return self._feed(self._add(self.cross_norm, x, update))

    def _feed(self, x: Tensor) -> Tensor:
        return self._add(self.feedforward_norm, x, self.feedforward(self._before(self.feedforward_norm, x)))
