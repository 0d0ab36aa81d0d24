"""An LSTM encoder-decoder with attention (Bahdanau et al. 2015, arXiv 1409.0473; Luong et al. 2015, 1508.04025).

Its cell can also be that of a GRU or a tanh RNN.
"""

from typing import ClassVar, NamedTuple

import torch
from pydantic import Field
from torch import Tensor, nn

from tfstudy.models.base import Model
from tfstudy.models.checkpointing import run_layer
from tfstudy.models.config import TiedConfig
from tfstudy.models.copying import CopyOutput
from tfstudy.models.dropout import Dropout
from tfstudy.models.recurrent import Cell, EncoderLayer, RecurrentState, advance, recurrent, state_parts
from tfstudy.models.source_attention import SCORES, Score, Source, SourceAttention, encoded
from tfstudy.models.tokens import Tokens, flat, joined, per_source, rectangles, split_rows


class State(NamedTuple):
    """The encoded source of each rectangle, and of all rows the state of each recurrent layer of the decoder."""

    source: tuple[Source, ...]
    recurrent: tuple[RecurrentState, ...]


class LSTM(Model):
    """An LSTM with attention: a bidirectional encoder, and a decoder that attends to it after the recurrence.

    The recurrence does not depend on the attention, so teacher forcing is one call of the fused LSTM per rectangle. The
    initial state of the decoder is a learned map of the encoder's last outputs (Bahdanau et al. 2015, appendix A.2.2).
    With `attention: none` nothing else of the source reaches the decoder.
    """

    version = 1
    parallel = True
    widths = ("dim", "hidden")
    small: ClassVar = {"dim": 16, "hidden": 20}
    variants: ClassVar = {
        "deep-forwards": {"layers": 2, "bidirectional": False},
        "deep-both-ways": {"layers": 2},
        "additive": {"attention": "additive"},
        "none": {"attention": "none"},
        "gru": {"cell": "gru", "layers": 2, "bidirectional": False},
        "tanh": {"cell": "tanh"},
        "tie_output": {"tie_output": True},
        "copy": {"copy_output": True, "attention": "none"},
        "share_embeddings": {"share_embeddings": True, "tie_output": True},
    }

    class Config(TiedConfig):
        hidden: int = Field(256, ge=1, le=16384, description="width of the recurrent state")
        layers: int = Field(1, ge=1, le=64, description="recurrent layers of the encoder, and of the decoder")
        cell: Cell = Field("lstm", description="cell of the recurrent layers: LSTM, GRU, or tanh(W x + U h + b)")
        bidirectional: bool = Field(True, description="the encoder reads in both directions")
        attention: Score = Field("multiplicative", description=SCORES)

    def __init__(self, config: Config, source_vocab: int, target_vocab: int) -> None:
        super().__init__(config, source_vocab, target_vocab)
        self.config = config
        hidden, directions = config.hidden, 1 + config.bidirectional
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
        self.decoder = nn.ModuleList(
            recurrent(config.cell, hidden if depth else config.dim, hidden) for depth in range(config.layers)
        )
        self.parts = state_parts(config.cell)
        self.bridge = nn.ModuleList(nn.Linear(hidden * directions, self.parts * hidden) for _ in range(config.layers))
        self.attention = SourceAttention(config.attention, hidden, hidden * directions)
        attended_width = config.dim if config.tie_output else hidden
        self.combine = nn.Linear(hidden + self.attention.width, attended_width)
        self.output = nn.Linear(attended_width, target_vocab, bias=not config.tie_output)
        for layer in (*self.bridge, self.combine, self.output):
            nn.init.xavier_uniform_(layer.weight)
            if layer.bias is not None:
                nn.init.zeros_(layer.bias)
        if config.tie_output:
            self.output.weight = self.target_embedding.weight
        widths = attended_width, hidden * directions
        self.copy = CopyOutput(*widths, source_vocab, target_vocab) if config.copy_output else None
        self.dropout = Dropout(config.dropout)

    def encode(self, source: Tokens) -> State:
        lengths = [mask.sum(1) for (mask,) in source.rectangles(source.mask)]
        x = self.source_states(self.source_embedding(source.ids), 0)
        starts = []
        for number, (layer, bridge) in enumerate(zip(self.encoder, self.bridge, strict=True), 1):
            inputs = zip(source.rectangles(self.dropout(x)), lengths, strict=True)
            found = [run_layer(layer, rows, count) for (rows,), count in inputs]
            x = self.source_states(flat([outputs for outputs, _ in found]), number)
            hidden, *cell = bridge(joined([last for _, last in found])).chunk(self.parts, -1)
            starts.append((hidden.tanh(), *(part.contiguous() for part in cell)))
        x = self.dropout(x)
        return State(encoded(source, self.attention.project(x), x, self.copy), tuple(starts))

    def decode(self, target: Tokens, state: State) -> tuple[Tensor, State]:
        shapes, layers = target.shapes, []
        x = self.target_states(self.target_embedding(target.ids), 0)
        for depth, layer in enumerate(self.decoder):
            before = zip(*(split_rows(shapes, part) for part in state.recurrent[depth]), strict=True)
            rows = zip(rectangles(shapes, self.dropout(x)), before, strict=True)
            found = [run_layer(advance, layer, own, start) for (own,), start in rows]
            x = self.target_states(flat([outputs for outputs, _ in found]), depth + 1)
            layers.append(found[0][1])  # only generation continues a state, and has one rectangle
        queries = rectangles(per_source(shapes, [len(source.mask) for source in state.source]), x)
        contexts = flat([self.attention(query, source) for (query,), source in zip(queries, state.source, strict=True)])
        attended = self.dropout(torch.tanh(self.combine(torch.cat([x, contexts], -1))))  # Luong et al. 2015, eq. 5
        logits = self.output(attended)
        if self.copy is not None:
            logits = self.copy(attended, logits, shapes, state.source)
        return logits, state._replace(recurrent=tuple(layers))
