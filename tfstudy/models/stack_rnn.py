"""A recurrent network with stacks (Joulin and Mikolov 2015, arXiv 1503.01007), as in Deletang et al. 2022 (2207.02098).

The positive control for tasks that need a stack: it reads the source, then writes the target, and nothing of the source
reaches the decoder but the hidden state and the stacks. There is no attention.
"""

from typing import ClassVar, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from pydantic import Field
from torch import Tensor, nn
from torch.nn.functional import pad

from tfstudy.models.base import PaddedModel
from tfstudy.models.checkpointing import run_layer
from tfstudy.models.config import ModelConfig
from tfstudy.models.dropout import Dropout
from tfstudy.models.recurrent_model import initialise

ACTIONS = 3  # push, pop, leave


class State(NamedTuple):
    """The hidden state, and the cells of each stack from top to bottom: one for each token so far."""

    hidden: Float[Tensor, "rows hidden"]
    stacks: Float[Tensor, "rows stacks cells width"]


class StackRNN(PaddedModel):
    """A tanh recurrence in the encoder and in the decoder, which read and change the same differentiable stacks.

    Unlike Deletang et al., the encoder and the decoder have weights of their own, the activation is tanh and not ReLU,
    and a stack has no largest height.
    """

    version = 1
    parallel = True
    widths = ("dim", "hidden")
    small: ClassVar = {"dim": 16, "hidden": 20, "stack_width": 4}
    variants: ClassVar = {"two-stacks": {"stacks": 2}}

    class Config(ModelConfig):
        hidden: int = Field(256, ge=1, le=16384, description="width of the recurrent state")
        stacks: int = Field(1, ge=1, le=64, description="number of stacks")
        stack_width: int = Field(8, ge=1, le=1024, description="width of a cell of a stack")

    def __init__(self, config: Config, source_vocab: int, target_vocab: int) -> None:
        super().__init__(config, source_vocab, target_vocab)
        self.config = config
        self.source_embedding = nn.Embedding(source_vocab, config.dim)
        self.target_embedding = nn.Embedding(target_vocab, config.dim)
        self.encoder, self.decoder = Recurrence(config), Recurrence(config)
        self.output = nn.Linear(config.hidden, target_vocab)
        self.dropout = Dropout(config.dropout)
        for module in self.modules():
            initialise(module)
        for part in (self.encoder, self.decoder):
            nn.init.orthogonal_(part.recurrent.weight[:, : config.hidden])

    def encode_padded(self, source: Int[Tensor, "rows source"], mask: Bool[Tensor, "rows source"]) -> State:
        x = self.dropout(self.source_states(self.source_embedding(source), 0))
        empty = x.new_zeros(len(x), self.config.stacks, 0, self.config.stack_width)
        start = State(x.new_zeros(len(x), self.config.hidden), empty)
        outputs, state = run_layer(self.encoder, x, start, mask)
        self.source_states(outputs, 1)
        return State(*state)

    def decode_padded(
        self, tokens: Int[Tensor, "rows length"], state: State
    ) -> tuple[Float[Tensor, "rows length target_vocab"], State]:
        x = self.dropout(self.target_states(self.target_embedding(tokens), 0))
        x, state = run_layer(self.decoder, x, state)
        return self.output(self.dropout(self.target_states(x, 1))), state


class Recurrence(nn.Module):
    """h_t = tanh(W x_t + U [h_(t-1); tops of the stacks]); h_t chooses what each stack does, and what is pushed."""

    def __init__(self, config: StackRNN.Config) -> None:
        super().__init__()
        self.inputs = nn.Linear(config.dim, config.hidden)
        self.recurrent = nn.Linear(config.hidden + config.stacks * config.stack_width, config.hidden, bias=False)
        self.actions = nn.Linear(config.hidden, config.stacks * ACTIONS)
        self.pushed = nn.Linear(config.hidden, config.stacks * config.stack_width)

    def forward(
        self, x: Float[Tensor, "rows length dim"], state: State, mask: Bool[Tensor, "rows length"] | None = None
    ) -> tuple[Float[Tensor, "rows length hidden"], State]:
        """Return the hidden states, and the state after them. Where the mask is False the state stays as it is."""
        (hidden, stacks), outputs = state, []
        for number, own in enumerate(self.inputs(x).unbind(1)):
            top = pad(stacks, (0, 0, 0, 1))[:, :, 0]  # 0 of an empty stack
            after = (own + self.recurrent(torch.cat([hidden, top.flatten(1)], 1))).tanh()
            actions = self.actions(after).unflatten(1, (-1, ACTIONS)).softmax(2)
            changed = change(stacks, actions, self.pushed(after).view_as(top))
            if mask is not None:
                seen = mask[:, number]
                after = torch.where(seen[:, None], after, hidden)
                changed = torch.where(seen[:, None, None, None], changed, pad(stacks, (0, 0, 0, 1)))
            hidden, stacks = after, changed
            outputs.append(hidden)
        return torch.stack(outputs, 1), State(hidden, stacks)


def change(
    stacks: Float[Tensor, "rows stacks cells width"],
    actions: Float[Tensor, "rows stacks 3"],
    pushed: Float[Tensor, "rows stacks width"],
) -> Float[Tensor, "rows stacks more width"]:
    """Return the stacks, one cell higher, after pushing, popping and leaving them with these probabilities."""
    push, pop, leave = actions[..., None, None].unbind(2)
    down = torch.cat([pushed[:, :, None], stacks], 2)
    up = pad(stacks[:, :, 1:], (0, 0, 0, 2))[:, :, : down.shape[2]]
    return push * down + pop * up + leave * pad(stacks, (0, 0, 0, 1))
