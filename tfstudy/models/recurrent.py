"""Recurrent layers: an LSTM, GRU or tanh cell, and a linear recurrence computed in parallel."""

from collections.abc import Callable, Mapping
from typing import Any, Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

Cell = Literal["lstm", "gru", "tanh"]
RecurrentState = tuple[Tensor, ...]  # (batch, hidden): the output and, of an LSTM, the cell

KINDS = {"lstm": nn.LSTM, "gru": nn.GRU, "tanh": nn.RNN}
GATES = {"lstm": 4, "gru": 3, "tanh": 1}
CELLS: Mapping[str, Callable[..., Any]] = {
    "LSTM": torch.lstm_cell,
    "GRU": torch.gru_cell,
    "RNN_TANH": torch.rnn_tanh_cell,
}  # by the mode of the layer
# Up to this many rows of one token, a CPU is faster with a cell than with the layer, which arranges its weights at each
# call: measured 4 to 6 times for one row, 1.5 to 5 times for 16, and slower for 64 rows at widths from 144 on.
FEW_ROWS = 16


def state_parts(cell: Cell) -> int:
    """Return the number of vectors in the state of a layer."""
    return 2 if cell == "lstm" else 1


def recurrent(cell: Cell, inputs: int, hidden: int) -> nn.RNNBase:
    """A recurrent layer with Xavier input weights and orthogonal recurrent weights for each gate.

    The forget biases of an LSTM sum to 1, all other biases are 0. In the GRU, the reset gate is applied after the
    matrix product, as in the first version of Cho et al. 2014 (arXiv 1406.1078v1) and in cuDNN.
    """
    layer: nn.RNNBase = KINDS[cell](inputs, hidden, batch_first=True)
    for name, parameter in layer.named_parameters():
        if "bias" in name:
            nn.init.zeros_(parameter)
            if cell == "lstm":
                nn.init.constant_(parameter[hidden : 2 * hidden], 0.5)
        else:
            for gate in parameter.chunk(GATES[cell]):
                (nn.init.orthogonal_ if "_hh" in name else nn.init.xavier_uniform_)(gate)
    return layer


def advance(
    layer: nn.RNNBase, x: Float[Tensor, "batch length inputs"], state: RecurrentState
) -> tuple[Float[Tensor, "batch length hidden"], RecurrentState]:
    """Return a layer's outputs and its new state.

    On a GPU a single token is always computed by a cell: in a CUDA graph that is replayed after other work, cuDNN's
    layer leaves the states of some rows as they were.
    """
    by_cell = x.shape[1] == 1 and (len(x) <= FEW_ROWS or x.device.type != "cpu")
    return advance_by_cell(layer, x, state) if by_cell else advance_by_layer(layer, x, state)


def advance_by_layer(layer: nn.RNNBase, x: Tensor, state: RecurrentState) -> tuple[Tensor, RecurrentState]:
    """Return `advance` by torch's fused kernel, which arranges its weights again at each call."""
    before = tuple(part[None] for part in state)
    outputs, after = layer(x, before if len(before) == 2 else before[0])
    return outputs, tuple(part[0] for part in (after if len(before) == 2 else [after]))


def advance_by_cell(layer: nn.RNNBase, x: Tensor, state: RecurrentState) -> tuple[Tensor, RecurrentState]:
    """Return `advance` of a single token by torch's function of the cell."""
    after = CELLS[layer.mode](x[:, 0], state if len(state) == 2 else state[0], *layer.all_weights[0])
    parts = after if len(state) == 2 else (after,)
    return parts[0][:, None], parts


class EncoderLayer(nn.Module):
    """A recurrent layer over the source, in one direction or both."""

    def __init__(self, cell: Cell, inputs: int, hidden: int, directions: int) -> None:
        super().__init__()
        self.forwards = recurrent(cell, inputs, hidden)
        self.backwards = recurrent(cell, inputs, hidden) if directions == 2 else None

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


def reverse_tokens(
    x: Float[Tensor, "batch source width"], lengths: Int[Tensor, " batch"]
) -> Float[Tensor, "batch source width"]:
    """Reverse each row's first `lengths` steps. Padding stays at the end, so that no step reads it before a token."""
    steps = torch.arange(x.shape[1], device=x.device)
    order = torch.where(steps < lengths[:, None], lengths[:, None] - 1 - steps, steps)
    return x.gather(1, order[..., None].expand_as(x))


class _Scan(torch.autograd.Function):
    """h_t = a_t h_(t-1) + b_t by recursive doubling; its gradient is the same recurrence from the end."""

    @staticmethod
    def forward(ctx: Any, keep: Tensor, new: Tensor) -> Tensor:
        states = doubling(keep, new)
        ctx.save_for_backward(keep, states)
        return states

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor]:
        keep, states = ctx.saved_tensors
        later = torch.cat([torch.zeros_like(keep[:, :1]), keep[:, 1:].flip(1)], 1)  # a_(t+1), from the end
        to_new = doubling(later, gradients[0].flip(1)).flip(1)
        before = torch.cat([torch.zeros_like(states[:, :1]), states[:, :-1]], 1)
        return to_new * before, to_new


def scan(
    keep: Float[Tensor, "batch length hidden"], new: Float[Tensor, "batch length hidden"]
) -> Float[Tensor, "batch length hidden"]:
    """Return h_t = keep_t h_(t-1) + new_t for all t, with h_(-1) = 0, in about log2(length) passes."""
    states: Tensor = _Scan.apply(keep, new) if keep.shape[1] > 1 else new  # type: ignore[no-untyped-call]
    return states


def doubling(keep: Tensor, new: Tensor) -> Tensor:
    """Compute the recurrence: after a pass with distance d, each state covers the 2 d tokens up to its own."""
    distance = 1
    while distance < keep.shape[1]:
        reached = torch.addcmul(new[:, distance:], keep[:, distance:], new[:, :-distance])
        new = torch.cat([new[:, :distance], reached], 1)
        keep = torch.cat([keep[:, :distance], keep[:, distance:] * keep[:, :-distance]], 1)
        distance *= 2
    return new
