"""The convolutional encoder-decoder ConvS2S (Gehring et al. 2017, arXiv 1705.03122)."""

import math
from typing import Literal, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from pydantic import Field
from torch import Tensor, nn
from torch.nn.utils.parametrizations import weight_norm

from tfstudy.models.base import Dropout, Model, ModelConfig
from tfstudy.models.positions import Embedding

HALF = math.sqrt(0.5)  # keeps the variance of a sum of two (section 3.4)


class CNNState(NamedTuple):
    """The encoded source, and per decoder layer the last `kernel - 1` inputs."""

    keys: Float[Tensor, "batch source dim"]
    values: Float[Tensor, "batch source dim"]
    source_mask: Bool[Tensor, "batch source"]
    past: tuple[Float[Tensor, "batch window channels"], ...]
    position: Int[Tensor, " batch"]


class CNN(Model):
    """Gated convolutions with residuals; every decoder layer attends to the source."""

    version = 1
    parallel = True

    class Config(ModelConfig):
        channels: int = Field(128, ge=1, le=16384, description="width of the convolutions")
        layers: int = Field(4, ge=1, le=512, description="convolutions of the encoder and of the decoder")
        kernel: int = Field(3, ge=1, le=63, description="tokens that a convolution sees")
        positions: Literal["learned", "sinusoidal", "none"] = Field("learned", description="how positions enter")
        longest: int = Field(512, ge=1, description="positions that a learned table holds")
        weight_norm: bool = Field(True, description="weights as length and direction (Salimans & Kingma 2016)")

    def __init__(self, config: Config, source_vocab: int, target_vocab: int) -> None:
        super().__init__(config, source_vocab, target_vocab)
        self.config = config
        dim, channels = config.dim, config.channels
        self.source_embedding = Embedding(source_vocab, dim, config.positions, config.longest, std=0.1)
        self.target_embedding = Embedding(target_vocab, dim, config.positions, config.longest, std=0.1)
        self.encoder_in = linear(config, dim, channels, config.dropout)
        self.encoder = nn.ModuleList(convolution(config) for _ in range(config.layers))
        self.encoder_out = linear(config, channels, dim)
        self.decoder_in = linear(config, dim, channels, config.dropout)
        self.decoder = nn.ModuleList(convolution(config) for _ in range(config.layers))
        self.query = nn.ModuleList(linear(config, channels, dim) for _ in range(config.layers))
        self.attended = nn.ModuleList(linear(config, dim, channels) for _ in range(config.layers))
        self.decoder_out = linear(config, channels, dim)
        self.output = linear(config, dim, target_vocab, config.dropout)
        self.dropout = Dropout(config.dropout)

    @property
    def longest(self) -> int | None:
        return self.config.longest if self.config.positions == "learned" else None

    def encode(self, source: Int[Tensor, "batch source"], source_mask: Bool[Tensor, "batch source"]) -> CNNState:
        positions = torch.arange(source.shape[1], device=source.device)[None]
        embedded = self.dropout(self.source_embedding(source, positions))
        present = source_mask[..., None]
        x = self.encoder_in(embedded)
        left = (self.config.kernel - 1) // 2
        for layer in self.encoder:
            inner = self.dropout(x * present)
            padded = nn.functional.pad(inner, (0, 0, left, self.config.kernel - 1 - left))
            x = (gated(layer, padded) + x) * HALF
        x = scale_gradient(self.encoder_out(x), 1 / (2 * self.config.layers))
        window = x.new_zeros(len(x), self.config.kernel - 1, self.config.channels)
        position = source_mask.new_zeros(len(x), dtype=torch.long)
        return CNNState(x, (x + embedded) * HALF, source_mask, (window,) * self.config.layers, position)

    def decode(
        self, tokens: Int[Tensor, "batch length"], state: CNNState
    ) -> tuple[Float[Tensor, "batch length target_vocab"], CNNState]:
        positions = state.position[:, None] + torch.arange(tokens.shape[1], device=tokens.device)
        embedded = self.dropout(self.target_embedding(tokens, positions))
        x = self.decoder_in(embedded)
        past = []
        for layer, query, attended, before in zip(self.decoder, self.query, self.attended, state.past, strict=True):
            window = torch.cat([before, self.dropout(x)], 1)
            past.append(window[:, window.shape[1] - before.shape[1] :])
            inner = gated(layer, window)
            context = attend((query(inner) + embedded) * HALF, state)
            x = ((attended(context) + inner) * HALF + x) * HALF
        logits = self.output(self.dropout(self.decoder_out(x)))
        return logits, state._replace(past=tuple(past), position=state.position + tokens.shape[1])


def attend(query: Float[Tensor, "batch length dim"], state: CNNState) -> Float[Tensor, "batch length dim"]:
    """Dot-product attention (eqs. 1 and 2), times m sqrt(1/m) for m source tokens (section 3.4)."""
    scores = query @ state.keys.transpose(1, 2)
    weights = scores.masked_fill(~state.source_mask[:, None], float("-inf")).softmax(-1)
    return weights @ state.values * state.source_mask.sum(1).sqrt()[:, None, None]


def gated(layer: nn.Module, x: Float[Tensor, "batch padded channels"]) -> Float[Tensor, "batch length channels"]:
    """A convolution without padding, then gated linear units (Dauphin et al. 2017)."""
    return nn.functional.glu(layer(x.transpose(1, 2)), dim=1).transpose(1, 2)


def scale_gradient(x: Tensor, scale: float) -> Tensor:
    """`x`, with its gradient times `scale`: the encoder is reached by one gradient per decoder layer (section 3.4)."""
    return x.detach() + (x - x.detach()) * scale


def linear(config: CNN.Config, inputs: int, outputs: int, dropout: float = 0.0) -> nn.Module:
    """Variance (1 - dropout) / inputs, for inputs that were dropped out (section 3.5)."""
    layer = nn.Linear(inputs, outputs)
    nn.init.normal_(layer.weight, std=math.sqrt((1 - dropout) / inputs))
    nn.init.zeros_(layer.bias)
    return weight_norm(layer) if config.weight_norm else layer


def convolution(config: CNN.Config) -> nn.Module:
    """Variance 4 (1 - dropout) / (kernel * channels), since gates halve it twice (section 3.5)."""
    layer = nn.Conv1d(config.channels, 2 * config.channels, config.kernel)
    nn.init.normal_(layer.weight, std=math.sqrt(4 * (1 - config.dropout) / (config.kernel * config.channels)))
    if layer.bias is not None:
        nn.init.zeros_(layer.bias)
    return weight_norm(layer) if config.weight_norm else layer
