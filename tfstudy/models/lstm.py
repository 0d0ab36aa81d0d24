"""An LSTM encoder-decoder with attention (Bahdanau et al. 2015, arXiv 1409.0473; Luong et al. 2015, 1508.04025)."""

from collections.abc import Sequence
from typing import ClassVar, Literal, NamedTuple

import torch
from jaxtyping import Float, Int
from pydantic import Field
from torch import Tensor, nn

from tfstudy.models.base import RaggedModel
from tfstudy.models.config import TiedConfig
from tfstudy.models.layers import Dropout
from tfstudy.models.ragged import flatten_groups, shapes_by_source, shapes_of, split_groups
from tfstudy.models.source_attention import Attention, Source


class LSTMState(NamedTuple):
    """The encoded source, and the decoder's recurrent state (per layer)."""

    source: Source
    hidden: tuple[Float[Tensor, "batch hidden"], ...]
    cell: tuple[Float[Tensor, "batch hidden"], ...]
    attended: Float[Tensor, "batch attended"]  # the last attended vector, for input feeding


class LSTM(RaggedModel):
    """An LSTM with attention: a bidirectional encoder, and a decoder that attends to it after the recurrence.

    Without input feeding the recurrence does not depend on the attention, so teacher forcing is one call of the fused
    LSTM per group. The initial state of the decoder is a learned map of the encoder's last outputs (Bahdanau et al.
    2015, appendix A.2.2).
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
        "tie_output": {"tie_output": True, "input_feeding": True},
        "share_embeddings": {"share_embeddings": True, "tie_output": True},
    }

    class Config(TiedConfig):
        hidden: int = Field(256, ge=1, le=16384, description="width of the recurrent state")
        layers: int = Field(1, ge=1, le=64, description="recurrent layers of the encoder, and of the decoder")
        bidirectional: bool = Field(True, description="the encoder reads in both directions")
        attention: Literal["multiplicative", "general", "additive", "none"] = Field(
            "multiplicative",
            description="Luong's general score, divided by sqrt(hidden) or not; Bahdanau's additive score; or none",
        )
        input_feeding: bool = Field(
            False, description="feed the attended vector into the next step (slow: a loop over steps)"
        )

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
            EncoderLayer(hidden * directions if depth else config.dim, hidden, directions)
            for depth in range(config.layers)
        )
        self.attended_width = config.dim if config.tie_output else hidden
        feeding = self.attended_width if config.input_feeding else 0
        self.decoder = nn.ModuleList(
            recurrent(hidden if depth else config.dim + feeding, hidden) for depth in range(config.layers)
        )
        self.bridge = nn.ModuleList(nn.Linear(hidden * directions, 2 * hidden) for _ in range(config.layers))
        self.attention = Attention(config.attention, hidden, hidden * directions)
        self.combine = nn.Linear(hidden + self.attention.width, self.attended_width)
        self.output = nn.Linear(self.attended_width, target_vocab, bias=not config.tie_output)
        for layer in (*self.bridge, self.combine, self.output):
            nn.init.xavier_uniform_(layer.weight)
            if layer.bias is not None:
                nn.init.zeros_(layer.bias)
        if config.tie_output:
            self.output.weight = self.target_embedding.weight
        self.dropout = Dropout(config.dropout)

    def encode_groups(self, sources: Sequence[Tensor], masks: Sequence[Tensor]) -> list[LSTMState]:
        shapes, lengths = shapes_of(sources), [mask.sum(1) for mask in masks]
        rows = [len(mask) for mask in masks]
        x = self.source_embedding(flatten_groups(sources))
        hidden, cell = [], []
        for layer, bridge in zip(self.encoder, self.bridge, strict=True):
            encoded = [layer(*group) for group in zip(split_groups(self.dropout(x), shapes), lengths, strict=True)]
            x = flatten_groups([outputs for outputs, _ in encoded])
            start_hidden, start_cell = bridge(torch.cat([last for _, last in encoded])).chunk(2, -1)
            hidden.append(start_hidden.tanh().split(rows))
            cell.append(start_cell.contiguous().split(rows))
        x = self.dropout(x)
        keys, values = split_groups(self.attention.project(x), shapes), split_groups(x, shapes)
        encoded_sources = map(Source, keys, values, masks)
        attended = [x.new_zeros(n, self.attended_width) for n in rows]
        return list(map(LSTMState, encoded_sources, zip(*hidden, strict=True), zip(*cell, strict=True), attended))

    def decode_groups(self, tokens: Sequence[Tensor], states: Sequence[LSTMState]) -> tuple[Tensor, list[LSTMState]]:
        inputs = split_groups(self.dropout(self.target_embedding(flatten_groups(tokens))), shapes_of(tokens))
        if self.config.input_feeding:
            outputs = [self._advance_by_step(x, state) for x, state in zip(inputs, states, strict=True)]
            attended, after = flatten_groups([vectors for vectors, _ in outputs]), [state for _, state in outputs]
        else:
            attended, after = self._advance(inputs, states)
        return self.output(self.dropout(attended)), after

    def _advance_by_step(self, inputs: Tensor, state: LSTMState) -> tuple[Tensor, LSTMState]:
        """Return a group's attended vectors (batch, length, hidden), each fed into the next step, and its new state."""
        steps = []
        for step in inputs.unbind(1):
            out, [state] = self._advance([torch.cat([step, state.attended], -1)[:, None]], [state], inputs.shape[1])
            state = state._replace(attended=out)
            steps.append(out)
        return torch.stack(steps, 1), state

    def _advance(
        self, inputs: Sequence[Tensor], states: Sequence[LSTMState], steps: int = 1
    ) -> tuple[Tensor, list[LSTMState]]:
        """Return the attended vectors tanh(W [h; c]) at all positions (Luong et al. 2015, eq. 5) and the new states.

        `steps` is the number of such calls for one target.
        """
        shapes, outputs, hidden, cell = shapes_of(inputs), list(inputs), [], []
        for depth, layer in enumerate(self.decoder):
            if depth:
                outputs = split_groups(self.dropout(flatten_groups(outputs)), shapes)
            starts = [(state.hidden[depth][None], state.cell[depth][None]) for state in states]
            advanced = [layer(*group) for group in zip(outputs, starts, strict=True)]
            outputs = [x for x, _ in advanced]
            hidden.append([last[0] for _, (last, _) in advanced])
            cell.append([last[0] for _, (_, last) in advanced])
        flat, sources = flatten_groups(outputs), [state.source for state in states]
        queries = split_groups(flat, shapes_by_source(inputs, [source.mask for source in sources]))
        contexts = [self.attention(query, source, steps) for query, source in zip(queries, sources, strict=True)]
        attended = torch.tanh(self.combine(torch.cat([flat, flatten_groups(contexts)], -1)))
        recurrent_states = zip(states, zip(*hidden, strict=True), zip(*cell, strict=True), strict=True)
        return attended, [state._replace(hidden=h, cell=c) for state, h, c in recurrent_states]


class EncoderLayer(nn.Module):
    """A recurrent layer over the source, in one direction or both."""

    def __init__(self, inputs: int, hidden: int, directions: int) -> None:
        super().__init__()
        self.forwards = recurrent(inputs, hidden)
        self.backwards = recurrent(inputs, hidden) if directions == 2 else None

    def forward(
        self, x: Float[Tensor, "batch source inputs"], lengths: Int[Tensor, " batch"]
    ) -> tuple[Float[Tensor, "batch source encoded"], Float[Tensor, "batch encoded"]]:
        """Return the outputs at every token, and each direction's output at the last token that it reads."""
        outputs: Tensor = self.forwards(x)[0]
        last = outputs.gather(1, (lengths - 1)[:, None, None].expand(-1, 1, outputs.shape[2]))[:, 0]
        if self.backwards is not None:
            reverse = reverse_tokens(self.backwards(reverse_tokens(x, lengths))[0], lengths)
            outputs, last = torch.cat([outputs, reverse], -1), torch.cat([last, reverse[:, 0]], -1)
        return outputs, last


def recurrent(inputs: int, hidden: int) -> nn.LSTM:
    """An LSTM layer with Xavier input weights, orthogonal recurrent weights and forget biases that sum to 1."""
    lstm = nn.LSTM(inputs, hidden, batch_first=True)
    for name, parameter in lstm.named_parameters():
        if "bias" in name:
            nn.init.zeros_(parameter)
            nn.init.constant_(parameter[hidden : 2 * hidden], 0.5)
        else:
            for gate in parameter.chunk(4):
                (nn.init.orthogonal_ if "_hh" in name else nn.init.xavier_uniform_)(gate)
    return lstm


def reverse_tokens(
    x: Float[Tensor, "batch source width"], lengths: Int[Tensor, " batch"]
) -> Float[Tensor, "batch source width"]:
    """Reverse each row's first `lengths` steps. Padding stays at the end, so that no step reads it before a token."""
    steps = torch.arange(x.shape[1], device=x.device)
    order = torch.where(steps < lengths[:, None], lengths[:, None] - 1 - steps, steps)
    return x.gather(1, order[..., None].expand_as(x))
