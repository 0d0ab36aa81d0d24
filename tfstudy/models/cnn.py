"""The convolutional encoder-decoder ConvS2S (Gehring et al. 2017, arXiv 1705.03122)."""

import math
from collections.abc import Sequence
from typing import Literal, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from pydantic import Field
from torch import Tensor, nn
from torch.nn.utils.parametrizations import weight_norm

from tfstudy.models.base import Dropout, Model
from tfstudy.models.config import ModelConfig
from tfstudy.models.positions import Embedding
from tfstudy.models.ragged import Blockwise, joined, parted, positions, shapes

HALF = math.sqrt(0.5)  # keeps the variance of a sum of two (section 3.4)


class CNNState(NamedTuple):
    """The encoded source, and per decoder layer the last `kernel - 1` inputs."""

    keys: Float[Tensor, "batch source dim"]
    values: Float[Tensor, "batch source dim"]
    source_mask: Bool[Tensor, "batch source"]
    past: tuple[Float[Tensor, "batch window channels"], ...]
    position: Int[Tensor, " batch"]


class CNN(Blockwise, Model):
    """Gated convolutions with residuals; every decoder layer attends to the source."""

    version = 2
    parallel = True

    class Config(ModelConfig):
        channels: int = Field(128, ge=1, le=16384, description="width of the convolutions")
        layers: int = Field(4, ge=1, le=512, description="convolutions of the encoder and of the decoder")
        kernel: int = Field(3, ge=1, le=63, description="tokens that a convolution sees")
        positions: Literal["learned", "sinusoidal", "none"] = Field("learned", description="how positions enter")
        max_positions: int = Field(512, ge=1, description="positions that a learned table holds")
        weight_norm: bool = Field(True, description="weights as length and direction (Salimans & Kingma 2016)")

    def __init__(self, config: Config, source_vocab: int, target_vocab: int) -> None:
        super().__init__(config, source_vocab, target_vocab)
        self.config = config
        dim, channels = config.dim, config.channels
        self.source_embedding = Embedding(source_vocab, dim, config.positions, config.max_positions, std=0.1)
        self.target_embedding = Embedding(target_vocab, dim, config.positions, config.max_positions, std=0.1)
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
    def max_positions(self) -> int | None:
        return self.config.max_positions if self.config.positions == "learned" else None

    def encode_blocks(self, sources: Sequence[Tensor], masks: Sequence[Tensor]) -> list[CNNState]:
        places, present = shapes(sources), joined(masks)[:, None]
        embedded = self.dropout(self.source_embedding(joined(sources), positions(sources)))
        x = self.encoder_in(embedded)
        left = (self.config.kernel - 1) // 2
        for layer in self.encoder:
            inner = parted(self.dropout(x * present), places)
            padded = [nn.functional.pad(block, (0, 0, left, self.config.kernel - 1 - left)) for block in inner]
            x = (layer(padded) + x) * HALF
        x = scale_gradient(self.encoder_out(x), 1 / (2 * self.config.layers))
        keys, values = parted(x, places), parted((x + embedded) * HALF, places)
        return [self._start(*each) for each in zip(keys, values, masks, strict=True)]

    def _start(self, keys: Tensor, values: Tensor, mask: Tensor) -> CNNState:
        window = keys.new_zeros(len(keys), self.config.kernel - 1, self.config.channels)
        position = mask.new_zeros(len(keys), dtype=torch.long)
        return CNNState(keys, values, mask, (window,) * self.config.layers, position)

    def decode_blocks(self, tokens: Sequence[Tensor], states: Sequence[CNNState]) -> tuple[Tensor, list[CNNState]]:
        places, before = shapes(tokens), self.config.kernel - 1
        starts = joined([state.position[:, None].expand_as(block) for block, state in zip(tokens, states, strict=True)])
        embedded = self.dropout(self.target_embedding(joined(tokens), starts + positions(tokens)))
        x = self.decoder_in(embedded)
        pasts = []
        for depth, (layer, query, attended) in enumerate(zip(self.decoder, self.query, self.attended, strict=True)):
            new = parted(self.dropout(x), places)
            windows = [torch.cat([state.past[depth], block], 1) for block, state in zip(new, states, strict=True)]
            pasts.append([window[:, window.shape[1] - before :] for window in windows])
            inner = layer(windows)
            queries = parted((query(inner) + embedded) * HALF, places)
            contexts = joined([attend(block, state) for block, state in zip(queries, states, strict=True)])
            x = ((attended(contexts) + inner) * HALF + x) * HALF
        logits = self.output(self.dropout(self.decoder_out(x)))
        after = [
            state._replace(past=past, position=state.position + length)
            for state, past, (_, length) in zip(states, zip(*pasts, strict=True), places, strict=True)
        ]
        return logits, after


class GatedConvolution(nn.Conv1d):
    """A convolution without padding, then gated linear units (Dauphin et al. 2017)."""

    def forward(self, blocks: Sequence[Tensor]) -> Float[Tensor, "positions channels"]:  # type: ignore[override]
        """Of blocks (rows, length + kernel - 1, channels), the outputs at all rows x length positions of each."""
        computed = self.product if blocks[0].device.type == "cpu" else self.convolution
        return nn.functional.glu(computed(blocks), dim=1)

    def product(self, blocks: Sequence[Tensor]) -> Tensor:
        """As one product of matrices: on a CPU faster than torch's convolution (`benchmarks/models/convolution.py`)."""
        kernel = self.kernel_size[0]
        windows = [torch.cat([x[:, j : x.shape[1] - kernel + 1 + j] for j in range(kernel)], -1) for x in blocks]
        return nn.functional.linear(joined(windows), self.weight.transpose(1, 2).flatten(1), self.bias)

    def convolution(self, blocks: Sequence[Tensor]) -> Tensor:
        """The same by torch, in fewer kernels: for a GPU."""
        weight = self.weight  # once: with weight normalisation it is computed
        convolved = [nn.functional.conv1d(x.transpose(1, 2), weight, self.bias) for x in blocks]
        return joined([x.transpose(1, 2) for x in convolved])


def attend(query: Float[Tensor, "batch length dim"], state: CNNState) -> Float[Tensor, "batch length dim"]:
    """Dot-product attention (eqs. 1 and 2), times m sqrt(1/m) for m source tokens (section 3.4)."""
    scores = query @ state.keys.transpose(1, 2)
    weights = scores.masked_fill(~state.source_mask[:, None], float("-inf")).softmax(-1)
    return weights @ state.values * state.source_mask.sum(1).sqrt()[:, None, None]


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
    layer = GatedConvolution(config.channels, 2 * config.channels, config.kernel)
    nn.init.normal_(layer.weight, std=math.sqrt(4 * (1 - config.dropout) / (config.kernel * config.channels)))
    if layer.bias is not None:
        nn.init.zeros_(layer.bias)
    return weight_norm(layer) if config.weight_norm else layer
