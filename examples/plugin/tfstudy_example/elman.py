"""A simple recurrent encoder-decoder without gates or attention (Elman 1990, doi 10.1207/s15516709cog1402_1)."""

from typing import ClassVar, NamedTuple

import torch
from pydantic import Field
from torch import Tensor, nn

from tfstudy.models.base import PaddedModel
from tfstudy.models.config import ModelConfig
from tfstudy.models.dropout import Dropout


class State(NamedTuple):
    """The state of the decoder."""

    hidden: Tensor  # (rows, hidden)


class Elman(PaddedModel):
    """A simple recurrent network reads the source, and another one continues from its last state."""

    version = 1
    widths = ("dim", "hidden")
    small: ClassVar = {"dim": 16, "hidden": 24}

    class Config(ModelConfig):
        hidden: int = Field(256, ge=1, description="width of the recurrent state")

    def __init__(self, config: Config, source_vocab: int, target_vocab: int) -> None:
        super().__init__(config, source_vocab, target_vocab)
        self.source = nn.Embedding(source_vocab, config.dim)
        self.target = nn.Embedding(target_vocab, config.dim)
        self.encoder = nn.RNN(config.dim, config.hidden, batch_first=True)
        self.decoder = nn.RNN(config.dim, config.hidden, batch_first=True)
        self.output = nn.Linear(config.hidden, target_vocab)
        self.dropout = Dropout(config.dropout)

    def encode_padded(self, source: Tensor, mask: Tensor) -> State:
        outputs, _ = self.encoder(self.dropout(self.source(source)))
        return State(outputs[torch.arange(len(source), device=source.device), mask.sum(1) - 1])

    def decode_padded(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        outputs, hidden = self.decoder(self.dropout(self.target(tokens)), state.hidden[None])
        return self.output(self.dropout(outputs)), State(hidden[0])
