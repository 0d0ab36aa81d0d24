"""The convolutional encoder-decoder ConvS2S (Gehring et al. 2017, arXiv 1705.03122)."""

import math
from collections.abc import Iterator, Sequence
from typing import ClassVar, Literal, NamedTuple

import torch
from jaxtyping import Float
from pydantic import Field, model_validator
from torch import Tensor, nn
from torch.nn.utils.parametrizations import weight_norm
from torch.nn.utils.parametrize import is_parametrized

from tfstudy.models.attention import Weights
from tfstudy.models.base import Model
from tfstudy.models.checkpointing import run_layer
from tfstudy.models.config import TiedConfig
from tfstudy.models.copying import CopyOutput
from tfstudy.models.dropout import Dropout
from tfstudy.models.layers import Embedding
from tfstudy.models.source_attention import Source, attend, dot_product, encoded
from tfstudy.models.tokens import Tokens, flat, per_source, rectangles, split_rows

SQRT_HALF = math.sqrt(0.5)  # keeps the variance of a sum of two terms (section 3.4)


class State(NamedTuple):
    """The encoded source of each rectangle, and of all rows the inputs that each decoder layer will read again."""

    source: tuple[Source, ...]
    past: tuple[Float[Tensor, "rows window channels"], ...]
    length: int = 0  # target tokens so far


class CNN(Model):
    """A convolutional network: gated convolutions with residuals; every decoder layer attends to the source.

    Layer i (from 0) has dilation d_i = 2^(i mod dilation_cycle), as in WaveNet (van den Oord et al. 2016, arXiv
    1609.03499, section 2.1) and ByteNet (Kalchbrenner et al. 2016, 1610.10099). The receptive field of an output, of
    the encoder as well as of the decoder, is 1 + (kernel - 1) (d_0 + ... + d_(layers - 1)) tokens.
    """

    version = 1
    parallel = True
    widths = ("dim", "channels")
    small: ClassVar = {"dim": 16, "channels": 20, "layers": 2, "max_positions": 64}
    variants: ClassVar = {
        "kernel4": {"kernel": 4},
        "kernel1": {"kernel": 1},
        "bag": {"kernel": 1, "positions": "none"},
        "sinusoidal": {"positions": "sinusoidal"},
        "dilated": {"layers": 3, "kernel": 4, "dilation_cycle": 2},
        "share_embeddings": {"share_embeddings": True, "tie_output": True, "copy_output": True},
    }
    bags = ("bag",)

    class Config(TiedConfig):
        channels: int = Field(128, ge=1, le=16384, description="width of the convolutions")
        layers: int = Field(4, ge=1, le=512, description="layers of the encoder, and of the decoder")
        kernel: int = Field(3, ge=1, le=63, description="kernel size of the convolutions")
        dilation_cycle: int = Field(
            1, ge=1, le=16, description="layers after which the dilation, 1 at first and doubled per layer, is 1 again"
        )
        positions: Literal["learned", "sinusoidal", "none"] = Field("learned", description="position encoding")
        max_positions: int = Field(512, ge=1, description="size of the table of learned positions")

        @model_validator(mode="after")
        def _switches_fit(self) -> "CNN.Config":
            if self.dilation_cycle > 1 and self.kernel == 1:
                raise ValueError("dilation_cycle must be 1 if kernel is 1: there is nothing to dilate")
            return self

        def dilation(self, depth: int) -> int:
            """Return the dilation of a layer, counted from 0."""
            return 1 << depth % self.dilation_cycle

        def span(self, depth: int) -> int:
            """Return the number of earlier inputs that an output of a layer of the decoder depends on."""
            return (self.kernel - 1) * self.dilation(depth)

    def __init__(self, config: Config, source_vocab: int, target_vocab: int) -> None:
        super().__init__(config, source_vocab, target_vocab)
        self.config = config
        dim, channels = config.dim, config.channels
        positions = config.positions, config.max_positions, (0.1, 1.0, False)
        self.source_embedding = Embedding(source_vocab, dim, *positions)
        self.target_embedding = (
            self.source_embedding if config.share_embeddings else Embedding(target_vocab, dim, *positions)
        )
        self.encoder_in = linear(dim, channels, config.dropout)
        self.encoder = nn.ModuleList(convolution(config, depth) for depth in range(config.layers))
        self.encoder_out = linear(channels, dim)
        self.decoder_in = linear(dim, channels, config.dropout)
        self.decoder = nn.ModuleList(convolution(config, depth) for depth in range(config.layers))
        self.weights = nn.ModuleList(Weights() for _ in range(config.layers))
        self.query = nn.ModuleList(linear(channels, dim) for _ in range(config.layers))
        self.attended = nn.ModuleList(linear(dim, channels) for _ in range(config.layers))
        self.decoder_out = linear(channels, dim)
        if config.tie_output:
            self.output: nn.Module = nn.Linear(dim, target_vocab, bias=False)
            self.output.weight = self.target_embedding.tokens.weight
        else:
            self.output = linear(dim, target_vocab, config.dropout)
        self.copy = CopyOutput(dim, dim, source_vocab, target_vocab) if config.copy_output else None
        self.dropout = Dropout(config.dropout)

    @property
    def max_positions(self) -> int | None:
        return self.config.max_positions if self.config.positions == "learned" else None

    def parameters_without_decay(self) -> Iterator[nn.Parameter]:
        yield from super().parameters_without_decay()
        for module in self.modules():
            if is_parametrized(module):  # original0 is the gain of weight normalisation
                yield module.parametrizations.weight.original0  # type: ignore[misc, union-attr]

    def encode(self, source: Tokens) -> State:
        config, mask = self.config, source.mask[:, None]
        embedded = self.source_states(self.dropout(self.source_embedding(source)), 0)
        x = self.encoder_in(embedded)
        for depth, layer in enumerate(self.encoder):
            left, span = (config.kernel - 1) // 2 * config.dilation(depth), config.span(depth)
            rows = source.rectangles(self.dropout(x * mask))
            padded = [nn.functional.pad(own, (0, 0, left, span - left)) for (own,) in rows]
            x = self.source_states((run_layer(layer, padded) + x) * SQRT_HALF, depth + 1)
        x = scale_gradient(self.encoder_out(x), 1 / (2 * config.layers))
        sources = encoded(source, x, (x + embedded) * SQRT_HALF, self.copy)
        count = sum(rows for rows, _ in source.shapes)
        past = tuple(x.new_zeros(count, config.span(depth), config.channels) for depth in range(config.layers))
        return State(sources, past)

    def decode(self, target: Tokens, state: State) -> tuple[Tensor, State]:
        target, shapes = target.following(state.length), target.shapes
        by_source = per_source(shapes, [len(source.mask) for source in state.source])
        embedded = self.target_states(self.dropout(self.target_embedding(target)), 0)
        x = self.decoder_in(embedded)
        after = []
        weights: Sequence[Weights] = list(self.weights)  # type: ignore[arg-type]
        for depth, (layer, attended) in enumerate(zip(self.decoder, self.attended, strict=True)):
            span, rows = self.config.span(depth), target.rectangles(self.dropout(x))
            past = split_rows(shapes, state.past[depth])
            inputs = [torch.cat([before, new], 1) for before, (new,) in zip(past, rows, strict=True)]
            after.append(inputs[0][:, inputs[0].shape[1] - span :])  # only generation goes on, with one rectangle
            inner = run_layer(layer, inputs)
            queries = rectangles(by_source, (self.query[depth](inner) + embedded) * SQRT_HALF)
            pairs = zip(queries, state.source, strict=True)
            contexts = flat([scaled_attention(query, source, weights[depth]) for (query,), source in pairs])
            x = ((attended(contexts) + inner) * SQRT_HALF + x) * SQRT_HALF
            x = self.target_states(x, depth + 1)
        features = self.dropout(self.decoder_out(x))
        logits = self.output(features)
        if self.copy is not None:
            logits = self.copy(features, logits, shapes, state.source)
        return logits, State(state.source, tuple(after), target.next_start)


class GatedConvolution(nn.Conv1d):
    """A convolution without padding, followed by a gated linear unit (Dauphin et al. 2017)."""

    def forward(self, rows: Sequence[Tensor]) -> Float[Tensor, "tokens channels"]:  # type: ignore[override]
        """Map rectangles (rows, length + span, channels) to the outputs at their rows x length positions.

        It is one matrix product. On a CPU this is 1.45 times as fast as torch's convolution (forward and backward,
        shapes of SCAN). On a GPU it needs a small part of the memory, and is rounded as on a CPU.
        """
        span = (self.kernel_size[0] - 1) * self.dilation[0]
        starts = range(0, span + 1, self.dilation[0])
        windows = [torch.cat([x[:, j : x.shape[1] - span + j] for j in starts], -1) for x in rows]
        weight = self.weight.transpose(1, 2).flatten(1)
        return nn.functional.glu(nn.functional.linear(flat(windows), weight, self.bias), dim=1)


def scaled_attention(
    query: Float[Tensor, "sources length dim"], source: Source, weights: Weights
) -> Float[Tensor, "sources length dim"]:
    """Dot-product attention (eqs. 1 and 2), scaled by m sqrt(1/m) for m source tokens (section 3.4)."""
    return attend(query, source, dot_product, weights) * source.mask.sum(1).sqrt()[:, None, None]


def scale_gradient(x: Tensor, scale: float) -> Tensor:
    """Return `x` and scale its gradient: the encoder receives a gradient from each decoder layer (section 3.4)."""
    return x.detach() + (x - x.detach()) * scale


def linear(inputs: int, outputs: int, dropout: float = 0.0) -> nn.Module:
    """A linear layer with weights of variance (1 - dropout) / inputs, for inputs after dropout (section 3.5)."""
    layer = nn.Linear(inputs, outputs)
    nn.init.normal_(layer.weight, std=math.sqrt((1 - dropout) / inputs))
    nn.init.zeros_(layer.bias)
    weight_norm(layer)
    return layer


def convolution(config: CNN.Config, depth: int) -> nn.Module:
    """A convolution with weights of variance 4 (1 - dropout) / (kernel * channels) (section 3.5)."""
    layer = GatedConvolution(config.channels, 2 * config.channels, config.kernel, dilation=config.dilation(depth))
    nn.init.normal_(layer.weight, std=math.sqrt(4 * (1 - config.dropout) / (config.kernel * config.channels)))
    if layer.bias is not None:
        nn.init.zeros_(layer.bias)
    weight_norm(layer)
    return layer
