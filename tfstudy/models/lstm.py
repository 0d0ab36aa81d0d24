"""An LSTM encoder-decoder with attention (Bahdanau et al. 2015, arXiv 1409.0473; Luong et al. 2015, 1508.04025)."""

import math
from collections.abc import Sequence
from typing import Literal, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from pydantic import Field
from torch import Tensor, nn

from tfstudy.models.base import Dropout, Model
from tfstudy.models.config import ModelConfig
from tfstudy.models.ragged import Blockwise, joined, parted, shapes


class LSTMState(NamedTuple):
    """The encoded source with its projected keys, and the decoder's recurrent state."""

    keys: Float[Tensor, "batch source hidden"]
    values: Float[Tensor, "batch source encoded"]
    source_mask: Bool[Tensor, "batch source"]
    hidden: Float[Tensor, "batch layers hidden"]
    cell: Float[Tensor, "batch layers hidden"]
    fed: Float[Tensor, "batch hidden"]


class LSTM(Blockwise, Model):
    """A bidirectional encoder and a decoder that attends to it from its own output, without input feeding.

    Without input feeding the recurrence does not depend on the attention, so teacher forcing is one call of the fused
    LSTM a block. The decoder starts from learned maps of the encoder's last outputs (Bahdanau et al. 2015, appendix
    A.2.2).
    """

    version = 1
    parallel = True

    class Config(ModelConfig):
        hidden: int = Field(256, ge=1, le=16384, description="width of the recurrent state")
        layers: int = Field(1, ge=1, le=64, description="recurrent layers of the encoder and of the decoder")
        bidirectional: bool = Field(True, description="the encoder reads both ways")
        attention: Literal["multiplicative", "general", "additive", "none"] = Field(
            "multiplicative",
            description="Luong's general score over sqrt(hidden) or as it is, Bahdanau's, or none",
        )
        input_feeding: bool = Field(
            False, description="the attended vector enters the next step (slow: steps in a loop)"
        )

    def __init__(self, config: Config, source_vocab: int, target_vocab: int) -> None:
        super().__init__(config, source_vocab, target_vocab)
        self.config = config
        hidden, directions = config.hidden, 1 + config.bidirectional
        self.source_embedding = nn.Embedding(source_vocab, config.dim)
        self.target_embedding = nn.Embedding(target_vocab, config.dim)
        for embedding in (self.source_embedding, self.target_embedding):
            nn.init.normal_(embedding.weight, std=0.1)
        self.encoder = nn.ModuleList(
            Reader(hidden * directions if depth else config.dim, hidden, directions) for depth in range(config.layers)
        )
        fed = hidden if config.input_feeding else 0
        self.decoder = nn.ModuleList(
            recurrent(hidden if depth else config.dim + fed, hidden) for depth in range(config.layers)
        )
        self.bridge = nn.ModuleList(nn.Linear(hidden * directions, 2 * hidden) for _ in range(config.layers))
        self.attention = Attention(config.attention, hidden, hidden * directions)
        self.combine = nn.Linear(hidden + self.attention.width, hidden)
        self.output = nn.Linear(hidden, target_vocab)
        for layer in (*self.bridge, self.combine, self.output):
            nn.init.xavier_uniform_(layer.weight)
            nn.init.zeros_(layer.bias)
        self.dropout = Dropout(config.dropout)

    def encode_blocks(self, sources: Sequence[Tensor], masks: Sequence[Tensor]) -> list[LSTMState]:
        places, lengths = shapes(sources), [mask.sum(1) for mask in masks]
        x = self.source_embedding(joined(sources))
        hidden, cell = [], []
        for reader, bridge in zip(self.encoder, self.bridge, strict=True):
            read = [reader(*each) for each in zip(parted(self.dropout(x), places), lengths, strict=True)]
            x = joined([outputs for outputs, _ in read])
            start_hidden, start_cell = bridge(torch.cat([last for _, last in read])).chunk(2, -1)
            hidden.append(start_hidden.tanh())
            cell.append(start_cell)
        x = self.dropout(x)
        rows = [len(mask) for mask in masks]
        starts = zip(torch.split(torch.cat(hidden, 1), rows), torch.split(torch.cat(cell, 1), rows), strict=True)
        known = zip(parted(self.attention.project(x), places), parted(x, places), masks, strict=True)
        fed = [x.new_zeros(n, self.config.hidden) for n in rows]
        return [LSTMState(*a, *b, c) for a, b, c in zip(known, starts, fed, strict=True)]

    def decode_blocks(self, tokens: Sequence[Tensor], states: Sequence[LSTMState]) -> tuple[Tensor, list[LSTMState]]:
        inputs = parted(self.dropout(self.target_embedding(joined(tokens))), shapes(tokens))
        if self.config.input_feeding:
            fed = [self._feed(x, state) for x, state in zip(inputs, states, strict=True)]
            attended, after = joined([vectors for vectors, _ in fed]), [state for _, state in fed]
        else:
            attended, after = self._advance(inputs, states)
        return self.output(self.dropout(attended)), after

    def _feed(self, inputs: Tensor, state: LSTMState) -> tuple[Tensor, LSTMState]:
        """The attended vectors (rows, length, hidden) of a block; each enters the next step."""
        steps = []
        for step in inputs.unbind(1):
            out, [state] = self._advance([torch.cat([step, state.fed], -1)[:, None]], [state])
            state = state._replace(fed=out)
            steps.append(out)
        return torch.stack(steps, 1), state

    def _advance(self, inputs: Sequence[Tensor], states: Sequence[LSTMState]) -> tuple[Tensor, list[LSTMState]]:
        """The attended vectors h~ = tanh(W [h; c]) (Luong et al. 2015, eq. 5) at all positions, and the new states."""
        places, outputs, hidden, cell = shapes(inputs), list(inputs), [], []
        for depth, layer in enumerate(self.decoder):
            if depth:
                outputs = parted(self.dropout(joined(outputs)), places)
            starts = [
                (state.hidden[None, :, depth].contiguous(), state.cell[None, :, depth].contiguous()) for state in states
            ]
            done = [layer(*each) for each in zip(outputs, starts, strict=True)]
            outputs = [x for x, _ in done]
            hidden.append([last[0] for _, (last, _) in done])
            cell.append([last[0] for _, (_, last) in done])
        contexts = [self.attention(x, *state[:3]) for x, state in zip(outputs, states, strict=True)]
        attended = torch.tanh(self.combine(torch.cat([joined(outputs), joined(contexts)], -1)))
        after = [
            state._replace(hidden=torch.stack(h, 1), cell=torch.stack(c, 1))
            for state, h, c in zip(states, zip(*hidden, strict=True), zip(*cell, strict=True), strict=True)
        ]
        return attended, after


class Reader(nn.Module):
    """One recurrent layer over the source, forwards or both ways."""

    def __init__(self, inputs: int, hidden: int, directions: int) -> None:
        super().__init__()
        self.forwards = recurrent(inputs, hidden)
        self.backwards = recurrent(inputs, hidden) if directions == 2 else None

    def forward(
        self, x: Float[Tensor, "batch source inputs"], lengths: Int[Tensor, " batch"]
    ) -> tuple[Float[Tensor, "batch source encoded"], Float[Tensor, "batch 1 encoded"]]:
        """Outputs at every token, and each direction's output at the last token that it reads."""
        outputs: Tensor = self.forwards(x)[0]
        last = outputs.gather(1, (lengths - 1)[:, None, None].expand(-1, 1, outputs.shape[2]))
        if self.backwards is not None:
            reverse = back(self.backwards(back(x, lengths))[0], lengths)
            outputs, last = torch.cat([outputs, reverse], -1), torch.cat([last, reverse[:, :1]], -1)
        return outputs, last


class Attention(nn.Module):
    """Contexts: averages of values, weighted by the softmax of a score of query and key; none gives empty contexts."""

    def __init__(self, kind: str, hidden: int, encoded: int) -> None:
        super().__init__()
        self.kind, self.hidden = kind, hidden
        self.width = 0 if kind == "none" else encoded
        if kind != "none":
            self.key = nn.Linear(encoded, hidden, bias=False)
            nn.init.xavier_uniform_(self.key.weight)
        if kind == "additive":
            self.query = nn.Linear(hidden, hidden)
            self.score = nn.Linear(hidden, 1, bias=False)
            for layer in (self.query, self.score):
                nn.init.xavier_uniform_(layer.weight)

    def project(self, encoded: Float[Tensor, "positions encoded"]) -> Float[Tensor, "positions keys"]:
        """The part of the score that does not depend on the query."""
        projected: Tensor = encoded.new_zeros(len(encoded), 0) if self.kind == "none" else self.key(encoded)
        return projected

    def forward(
        self,
        query: Float[Tensor, "batch length hidden"],
        keys: Float[Tensor, "batch source _"],
        values: Float[Tensor, "batch source encoded"],
        mask: Bool[Tensor, "batch source"],
    ) -> Float[Tensor, "batch length {self.width}"]:
        if self.kind == "none":
            return query[..., :0]
        if self.kind == "additive":
            scores = self.score(torch.tanh(self.query(query)[:, :, None] + keys[:, None]))[..., 0]
        else:
            scores = query @ keys.transpose(1, 2)
            if self.kind == "multiplicative":
                scores = scores / math.sqrt(self.hidden)
        weights: Tensor = scores.masked_fill(~mask[:, None], float("-inf")).softmax(-1)
        return weights @ values


def recurrent(inputs: int, hidden: int) -> nn.LSTM:
    """One recurrent layer, Xavier for input weights, orthogonal for recurrent ones, forget biases 1 in sum."""
    lstm = nn.LSTM(inputs, hidden, batch_first=True)
    for name, parameter in lstm.named_parameters():
        if "bias" in name:
            nn.init.zeros_(parameter)
            nn.init.constant_(parameter[hidden : 2 * hidden], 0.5)
        else:
            for gate in parameter.chunk(4):
                (nn.init.orthogonal_ if "_hh" in name else nn.init.xavier_uniform_)(gate)
    return lstm


def back(x: Float[Tensor, "batch source width"], lengths: Int[Tensor, " batch"]) -> Float[Tensor, "batch source width"]:
    """Each row's first `lengths` steps in reverse; padding stays behind, so that no step reads it before a token."""
    steps = torch.arange(x.shape[1], device=x.device)
    order = torch.where(steps < lengths[:, None], lengths[:, None] - 1 - steps, steps)
    return x.gather(1, order[..., None].expand_as(x))
