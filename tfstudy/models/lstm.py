"""An LSTM encoder-decoder with attention (Bahdanau et al. 2015, arXiv 1409.0473; Luong et al. 2015, 1508.04025).

Its cell can also be that of a GRU or a tanh RNN.
"""

from collections.abc import Sequence
from typing import ClassVar, NamedTuple

import torch
from jaxtyping import Float
from pydantic import Field, model_validator
from torch import Tensor, nn

from tfstudy.models.base import RaggedModel
from tfstudy.models.config import CopyConfig
from tfstudy.models.parts.layers import Dropout, run_layer
from tfstudy.models.parts.observing import Site, observed
from tfstudy.models.parts.recurrent import Cell, EncoderLayer, RecurrentState, advance, recurrent, state_parts
from tfstudy.models.parts.source_attention import SCORES, Attention, CopyOutput, Score, Source, copied_ids
from tfstudy.models.parts.tokens import flatten_groups, shapes_by_source, shapes_of, split_groups


class LSTMState(NamedTuple):
    """The encoded source, and the state of each recurrent layer of the decoder."""

    source: Source
    recurrent: tuple[RecurrentState, ...]
    attended: Float[Tensor, "batch attended"]  # the last attended vector, for input feeding


class LSTM(RaggedModel):
    """An LSTM with attention: a bidirectional encoder, and a decoder that attends to it after the recurrence.

    Without input feeding the recurrence does not depend on the attention, so teacher forcing is one call of the fused
    LSTM per group. The initial state of the decoder is a learned map of the encoder's last outputs (Bahdanau et al.
    2015, appendix A.2.2). With `attention: none` nothing else of the source reaches the decoder.
    """

    version = 1
    parallel = True
    widths = ("dim", "hidden")
    small: ClassVar = {"dim": 16, "hidden": 20}
    variants: ClassVar = {
        "deep-forwards": {"layers": 2, "bidirectional": False},
        "deep-both-ways": {"layers": 2},
        "general": {"attention": "general"},
        "additive": {"attention": "additive"},
        "none": {"attention": "none"},
        "input_feeding": {"input_feeding": True, "layers": 2},
        "gru": {"cell": "gru", "layers": 2, "attention": "dot", "bidirectional": False, "copy_output": True},
        "tanh": {"cell": "tanh", "input_feeding": True, "copy_output": True},
        "tie_output": {"tie_output": True, "input_feeding": True},
        "share_embeddings": {"share_embeddings": True, "tie_output": True},
    }

    class Config(CopyConfig):
        hidden: int = Field(256, ge=1, le=16384, description="width of the recurrent state")
        layers: int = Field(1, ge=1, le=64, description="recurrent layers of the encoder, and of the decoder")
        cell: Cell = Field("lstm", description="cell of the recurrent layers: LSTM, GRU, or tanh(W x + U h + b)")
        bidirectional: bool = Field(True, description="the encoder reads in both directions")
        attention: Score = Field("multiplicative", description=SCORES)
        input_feeding: bool = Field(
            False, description="feed the attended vector into the next step (slow: a loop over steps)"
        )

        @model_validator(mode="after")
        def _attention_fits(self) -> "LSTM.Config":
            if self.attention == "none" and self.copy_output:
                raise ValueError("copy_output needs attention, but attention is 'none'")
            if self.attention == "dot" and self.bidirectional:
                raise ValueError(
                    "attention 'dot' needs an encoder as wide as the decoder: bidirectional must be false "
                    "(or choose 'general')"
                )
            return self

    def __init__(self, config: Config, source_vocab: int, target_vocab: int) -> None:
        super().__init__(config, source_vocab, target_vocab)
        self.config = config
        hidden, directions = config.hidden, 1 + config.bidirectional
        config.check_vocabularies(source_vocab, target_vocab)
        self.source_embedding = nn.Embedding(source_vocab, config.dim)
        self.target_embedding = (
            self.source_embedding if config.share_embeddings else nn.Embedding(target_vocab, config.dim)
        )
        for embedding in (self.source_embedding, self.target_embedding):
            nn.init.normal_(embedding.weight, std=0.1)
        self.encoder = nn.ModuleList(
            EncoderLayer(config.cell, hidden * directions if depth else config.dim, hidden, directions)
            for depth in range(config.layers)
        )
        self.attended_width = config.dim if config.tie_output else hidden
        feeding = self.attended_width if config.input_feeding else 0
        self.decoder = nn.ModuleList(
            recurrent(config.cell, hidden if depth else config.dim + feeding, hidden) for depth in range(config.layers)
        )
        self.parts = state_parts(config.cell)
        self.bridge = nn.ModuleList(nn.Linear(hidden * directions, self.parts * hidden) for _ in range(config.layers))
        self.attention = Attention(config.attention, hidden, hidden * directions)
        self.combine = nn.Linear(hidden + self.attention.width, self.attended_width)
        self.output = nn.Linear(self.attended_width, target_vocab, bias=not config.tie_output)
        for layer in (*self.bridge, self.combine, self.output):
            nn.init.xavier_uniform_(layer.weight)
            if layer.bias is not None:
                nn.init.zeros_(layer.bias)
        if config.tie_output:
            self.output.weight = self.target_embedding.weight
        self.copy = CopyOutput(self.attended_width, source_vocab, target_vocab) if config.copy_output else None
        self.dropout = Dropout(config.dropout)

    def encode_groups(self, sources: Sequence[Tensor], masks: Sequence[Tensor]) -> list[LSTMState]:
        shapes, lengths = shapes_of(sources), [mask.sum(1) for mask in masks]
        rows = [len(mask) for mask in masks]
        x = observed(Site("encoder", 0), self.source_embedding(flatten_groups(sources)))
        starts = []
        for number, (layer, bridge) in enumerate(zip(self.encoder, self.bridge, strict=True), 1):
            inputs = split_groups(self.dropout(x), shapes)
            encoded = [run_layer(layer, *group) for group in zip(inputs, lengths, strict=True)]
            x = observed(Site("encoder", number), flatten_groups([outputs for outputs, _ in encoded]))
            hidden, *cell = bridge(torch.cat([last for _, last in encoded])).chunk(self.parts, -1)
            start = [hidden.tanh(), *(part.contiguous() for part in cell)]
            starts.append(zip(*(part.split(rows) for part in start), strict=True))
        x = self.dropout(x)
        keys, values = split_groups(self.attention.project(x), shapes), split_groups(x, shapes)
        encoded_sources = map(Source, keys, values, masks, copied_ids(self.copy, sources))
        attended = [x.new_zeros(n, self.attended_width) for n in rows]
        return list(map(LSTMState, encoded_sources, zip(*starts, strict=True), attended))

    def decode_groups(self, tokens: Sequence[Tensor], states: Sequence[LSTMState]) -> tuple[Tensor, list[LSTMState]]:
        embedded = observed(Site("decoder", 0), self.target_embedding(flatten_groups(tokens)))
        inputs = split_groups(self.dropout(embedded), shapes_of(tokens))
        if self.config.input_feeding:
            groups = [self._advance_by_step(x, state) for x, state in zip(inputs, states, strict=True)]
            outputs = [flatten_groups(parts) for parts in zip(*(parts for parts, _ in groups), strict=True)]
            after = [state for _, state in groups]
        else:
            outputs, after = self._advance(inputs, states)
        attended = self.dropout(outputs[0])
        logits = self.output(attended)
        return logits if self.copy is None else self.copy(attended, logits, outputs[1]), after

    def _advance_by_step(self, inputs: Tensor, state: LSTMState) -> tuple[list[Tensor], LSTMState]:
        """Return `_advance` for one group (batch, length, ...), each attended vector fed into the next step."""
        steps = []
        for step in inputs.unbind(1):
            out, [state] = self._advance([torch.cat([step, state.attended], -1)[:, None]], [state], inputs.shape[1])
            state = state._replace(attended=out[0])
            steps.append(out)
        return [torch.stack(parts, 1) for parts in zip(*steps, strict=True)], state

    def _advance(
        self, inputs: Sequence[Tensor], states: Sequence[LSTMState], steps: int = 1
    ) -> tuple[list[Tensor], list[LSTMState]]:
        """Return the attended vectors tanh(W [h; c]) at all positions (Luong et al. 2015, eq. 5) and the new states.

        With `copy_output`, the vectors are followed by the copied distributions. `steps` is the number of such calls
        for one target.
        """
        shapes, outputs, layers = shapes_of(inputs), inputs, []
        flat: Tensor  # the outputs of the last layer so far
        for depth, layer in enumerate(self.decoder):
            if depth:
                outputs = split_groups(self.dropout(flat), shapes)
            before = [state.recurrent[depth] for state in states]
            advanced = [run_layer(advance, layer, *group) for group in zip(outputs, before, strict=True)]
            flat = observed(Site("decoder", depth + 1), flatten_groups([x for x, _ in advanced]))
            layers.append([after for _, after in advanced])
        sources = [state.source for state in states]
        queries = split_groups(flat, shapes_by_source(inputs, [source.mask for source in sources]))
        found = [self.attention(query, source, steps) for query, source in zip(queries, sources, strict=True)]
        contexts = flatten_groups([group.contexts for group in found])
        out = [torch.tanh(self.combine(torch.cat([flat, contexts], -1)))]
        if self.copy is not None:
            out.append(self.copy.copied([group.weights for group in found], [source.copied for source in sources]))
        after = zip(states, zip(*layers, strict=True), strict=True)
        return out, [state._replace(recurrent=recurrent) for state, recurrent in after]
