"""An encoder and a decoder whose layers have a recurrence and a feedforward layer: the frame of minGRU and DeltaNet.

The decoder attends to the encoded source once, after its last layer. An architecture defines the `mixer` of a layer,
which returns a tensor and the state after it, and how the states of the decoder's layers start.
"""

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from pydantic import Field
from torch import Tensor, nn

from tfstudy.models.base import PaddedModel
from tfstudy.models.checkpointing import run_layer
from tfstudy.models.config import TiedConfig
from tfstudy.models.copying import CopyOutput
from tfstudy.models.dropout import Dropout
from tfstudy.models.source_attention import SCORES, Score, Source, SourceAttention


class State(NamedTuple):
    """The encoded source, and the state of each layer of the decoder."""

    source: Source
    layers: tuple[Any, ...]


class RecurrentConfig(TiedConfig):
    """The settings of minGRU and DeltaNet (section `model`)."""

    feedforward: int = Field(256, ge=1, le=65536, description="inner width of the feedforward layers")
    layers: int = Field(2, ge=1, le=64, description="recurrent layers of the encoder, and of the decoder")
    bidirectional: bool = Field(True, description="the encoder reads in both directions")
    attention: Score = Field("multiplicative", description=SCORES)


class RecurrentModel(PaddedModel):
    """The encoder reads in both directions or forwards; the decoder starts from what it returns at the ends.

    With `attention: none` nothing else of the source reaches the decoder than where its states start.
    """

    def __init__(self, config: Any, source_vocab: int, target_vocab: int) -> None:
        super().__init__(config, source_vocab, target_vocab)
        self.config = config
        dim, directions = config.dim, 1 + config.bidirectional
        self.source_embedding = nn.Embedding(source_vocab, dim)
        self.target_embedding = self.source_embedding if config.share_embeddings else nn.Embedding(target_vocab, dim)
        self.encoder = nn.ModuleList(Layer(config, self.mixer(directions)) for _ in range(config.layers))
        self.decoder = nn.ModuleList(Layer(config, self.mixer(1)) for _ in range(config.layers))
        self.bridge = self.new_bridge(dim * directions)
        self.encoded, self.decoded = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.attention = SourceAttention(config.attention, dim, dim)
        self.combine = nn.Linear(dim + self.attention.width, dim)
        self.output = nn.Linear(dim, target_vocab, bias=not config.tie_output)
        self.copy = CopyOutput(dim, dim, source_vocab, target_vocab) if config.copy_output else None
        self.dropout = Dropout(config.dropout)
        for module in self.modules():
            initialise(module)
        if config.tie_output:
            self.output.weight = self.target_embedding.weight

    @abstractmethod
    def mixer(self, directions: int) -> nn.Module:
        """Return what mixes the tokens in a layer that reads in one direction or both: see `Layer`."""

    @abstractmethod
    def new_bridge(self, width: int) -> nn.Module:
        """Return the parameters that `start` needs, for ends of this width."""

    @abstractmethod
    def start(self, ends: Float[Tensor, "rows ends"], states: Sequence[Any]) -> tuple[Any, ...]:
        """Return the state of each layer of the decoder before the first token.

        `ends` is what the encoder returns for the last token and, if it reads in both directions, the first one;
        `states` are those of its layers after the last token that they read.
        """

    def encode_padded(self, source: Int[Tensor, "rows source"], mask: Bool[Tensor, "rows source"]) -> State:
        x, states = self.dropout(self.source_states(self.source_embedding(source), 0)), []
        for number, layer in enumerate(self.encoder, 1):
            x, last = run_layer(layer, x, None, mask)
            x = self.source_states(x, number)
            states.append(last)
        x = self.dropout(self.encoded(x))
        last = x[torch.arange(len(x), device=x.device), mask.sum(1) - 1]
        ends = torch.cat([last, x[:, 0]], -1) if self.config.bidirectional else last
        keys = self.attention.project(x.flatten(0, 1))
        ids = None if self.copy is None else self.copy.target_ids[source]
        return State(Source(keys.view(*source.shape, keys.shape[1]), x, mask, ids), self.start(ends, states))

    def decode_padded(
        self, tokens: Int[Tensor, "rows length"], state: State
    ) -> tuple[Float[Tensor, "rows length target_vocab"], State]:
        x = self.dropout(self.target_states(self.target_embedding(tokens), 0))
        states = []
        for number, (layer, start) in enumerate(zip(self.decoder, state.layers, strict=True), 1):
            x, last = run_layer(layer, x, start)
            x = self.target_states(x, number)
            states.append(last)
        x = self.decoded(x)
        sources = len(state.source.mask)
        # The hypotheses of a source are next to each other, like one longer target.
        query = x.reshape(sources, len(x) // max(1, sources) * x.shape[1], x.shape[2])
        context = self.attention(query, state.source).reshape(*tokens.shape, self.attention.width)
        features = self.dropout(self.combine(torch.cat([x, context], -1)).tanh())
        logits = self.output(features)
        if self.copy is not None:
            mixed = self.copy(features.flatten(0, 1), logits.flatten(0, 1), [tokens.shape], [state.source])
            logits = mixed.view(logits.shape)
        return logits, state._replace(layers=tuple(states))


class Layer(nn.Module):
    """x + mixer(norm(x)), and behind it a feedforward layer of the same form."""

    def __init__(self, config: RecurrentConfig, mixer: nn.Module) -> None:
        super().__init__()
        self.norm, self.feedforward_norm = nn.LayerNorm(config.dim), nn.LayerNorm(config.dim)
        self.mixer = mixer
        self.inner, self.outer = nn.Linear(config.dim, config.feedforward), nn.Linear(config.feedforward, config.dim)
        self.dropout = Dropout(config.dropout)

    def forward(
        self, x: Float[Tensor, "rows length dim"], start: Any = None, mask: Bool[Tensor, "rows length"] | None = None
    ) -> tuple[Float[Tensor, "rows length dim"], Any]:
        """Return the outputs, and the state after them. Where the mask is False the state stays as it is."""
        update, state = self.mixer(self.norm(x), start, mask)
        x = x + self.dropout(update)
        x = x + self.dropout(self.outer(self.dropout(self.inner(self.feedforward_norm(x)).relu())))
        return x, state


def initialise(module: nn.Module) -> None:
    """Initialise the embeddings with a standard deviation of 0.1, the linear layers by Xavier, without biases."""
    if isinstance(module, nn.Embedding):
        nn.init.normal_(module.weight, std=0.1)
    if isinstance(module, nn.Linear):
        nn.init.xavier_uniform_(module.weight)
        if module.bias is not None:
            nn.init.zeros_(module.bias)
