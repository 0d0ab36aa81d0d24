"""The Transformer of Vaswani et al. 2017 (arXiv 1706.03762), pre-norm by default (Xiong et al. 2020)."""

import math
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

from jaxtyping import Bool, Float
from pydantic import Field, model_validator
from torch import Tensor, nn

from tfstudy.models.attention import KeyValue, MultiHeadAttention
from tfstudy.models.base import Dropout, Model
from tfstudy.models.config import ModelConfig
from tfstudy.models.positions import Embedding
from tfstudy.models.ragged import Blockwise, Shapes, joined, positions, shapes


class TransformerState(NamedTuple):
    """Keys and values per layer: of the source, and of the target tokens decoded so far."""

    memory: tuple[KeyValue, ...]
    past: tuple[KeyValue, ...]
    source_mask: Bool[Tensor, "batch source"]


class Transformer(Blockwise, Model):
    """Self-attention in the encoder, causal self-attention and attention to the source in the decoder."""

    version = 1
    parallel = True

    class Config(ModelConfig):
        encoder_layers: int = Field(2, ge=1, le=512, description="blocks of the encoder")
        decoder_layers: int = Field(2, ge=1, le=512, description="blocks of the decoder")
        heads: int = Field(4, ge=1, description="attention heads; divides dim")
        feedforward: int = Field(256, ge=1, le=65536, description="width inside the feed-forward blocks")
        attention_dropout: float = Field(0.0, ge=0, lt=1, description="dropout on attention weights (slower on CPU)")
        norm: Literal["pre", "post"] = Field("pre", description="layer normalisation before or after each block")
        positions: Literal["sinusoidal", "learned", "relative", "none"] = Field(
            "sinusoidal", description="how positions enter; relative is that of Dai et al. 2019"
        )
        max_positions: int = Field(512, ge=1, description="positions that a learned table holds")
        share_layers: bool = Field(False, description="one block applied at every depth, without a signal of the depth")
        tie_output: bool = Field(False, description="output layer = target embedding, without a bias")
        share_embeddings: bool = Field(False, description="source embedding = target embedding; one vocabulary")

        @model_validator(mode="after")
        def _heads_divide_dim(self) -> "Transformer.Config":
            if self.dim % self.heads:
                raise ValueError(f"heads must divide dim ({self.dim}), but is {self.heads}")
            return self

    def __init__(self, config: Config, source_vocab: int, target_vocab: int) -> None:
        super().__init__(config, source_vocab, target_vocab)
        self.config = config
        kind = "none" if config.positions == "relative" else config.positions
        self.target_embedding = Embedding(
            target_vocab, config.dim, kind, config.max_positions, math.sqrt(config.dim), config.dim**-0.5
        )
        if config.share_embeddings and source_vocab != target_vocab:
            raise ValueError(f"share_embeddings needs one vocabulary, but there are {source_vocab} and {target_vocab}")
        self.source_embedding = (
            self.target_embedding
            if config.share_embeddings
            else Embedding(
                source_vocab, config.dim, kind, config.max_positions, math.sqrt(config.dim), config.dim**-0.5
            )
        )
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

    def encode_blocks(self, sources: Sequence[Tensor], masks: Sequence[Tensor]) -> list[TransformerState]:
        places, seen = shapes(sources), [mask[:, None, None] for mask in masks]
        x = self._embed(self.source_embedding, sources, 0)
        for layer in self.encoder:
            x = layer.encode(x, places, seen)
        x = self.encoder.norm(x)
        memories = zip(*(layer.cross.project(x, places) for layer in self.decoder), strict=True)
        return [
            TransformerState(memory, (self._nothing(x, len(mask)),) * len(memory), mask)
            for memory, mask in zip(memories, masks, strict=True)
        ]

    def decode_blocks(
        self, tokens: Sequence[Tensor], states: Sequence[TransformerState]
    ) -> tuple[Tensor, list[TransformerState]]:
        places, seen = shapes(tokens), [state.source_mask[:, None, None] for state in states]
        x = self._embed(self.target_embedding, tokens, states[0].past[0].keys.shape[2])
        pasts = []
        for depth, layer in enumerate(self.decoder):
            past, memory = [state.past[depth] for state in states], [state.memory[depth] for state in states]
            x, past = layer.decode(x, places, past, memory, seen)
            pasts.append(past)
        after = [state._replace(past=past) for state, past in zip(states, zip(*pasts, strict=True), strict=True)]
        return self.output(self.decoder.norm(x)), after

    def _embed(self, embedding: Embedding, tokens: Sequence[Tensor], start: int) -> Tensor:
        end = start + max(length for _, length in shapes(tokens))
        embedded: Tensor = self.dropout(embedding(joined(tokens), positions(tokens, start), end))
        return embedded

    def _nothing(self, x: Tensor, rows: int) -> KeyValue:
        empty = x.new_zeros(rows, self.config.heads, 0, self.config.dim // self.config.heads)
        return KeyValue(empty, empty)


class Stack(nn.Module):
    """`layers` layers, or one applied `layers` times; with pre-norm a last norm ends the residual stream."""

    def __init__(self, config: Transformer.Config, layers: int, decoder: bool) -> None:
        super().__init__()
        self.layers = layers
        self.blocks = nn.ModuleList(Layer(config, decoder) for _ in range(1 if config.share_layers else layers))
        self.norm = nn.LayerNorm(config.dim) if config.norm == "pre" else nn.Identity()

    def __iter__(self) -> Iterator["Layer"]:
        for depth in range(self.layers):
            yield self.blocks[depth % len(self.blocks)]  # type: ignore[misc]


class Layer(nn.Module):
    """Self-attention, attention to the source (decoder only) and a feed-forward network, each with a residual."""

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
        self, x: Float[Tensor, "positions dim"], places: Shapes, masks: Sequence[Tensor]
    ) -> Float[Tensor, "positions dim"]:
        normed = self._before(self.attention_norm, x)
        update = self.attention(normed, places, self.attention.project(normed, places), masks)
        return self._feed(self._add(self.attention_norm, x, update))

    def decode(
        self,
        x: Float[Tensor, "positions dim"],
        places: Shapes,
        past: Sequence[KeyValue],
        memory: Sequence[KeyValue],
        masks: Sequence[Tensor],
    ) -> tuple[Float[Tensor, "positions dim"], list[KeyValue]]:
        normed = self._before(self.attention_norm, x)
        new = self.attention.project(normed, places)
        past = [before.append(now) for before, now in zip(past, new, strict=True)]
        x = self._add(self.attention_norm, x, self.attention(normed, places, past, causal=True))
        update = self.cross(self._before(self.cross_norm, x), places, memory, masks)
        return self._feed(self._add(self.cross_norm, x, update)), past

    def _feed(self, x: Tensor) -> Tensor:
        return self._add(self.feedforward_norm, x, self.feedforward(self._before(self.feedforward_norm, x)))
