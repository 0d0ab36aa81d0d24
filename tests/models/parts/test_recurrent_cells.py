"""The cells against their equations, one step after the other."""

import pytest
import torch
from torch.testing import assert_close

from tests.models.reference import CLOSE, randomised
from tfstudy.models.parts import recurrent as recurrent_module
from tfstudy.models.parts.recurrent import (
    FEW_ROWS,
    GATES,
    advance,
    advance_by_cell,
    advance_by_layer,
    recurrent,
    state_parts,
)


def gru_step(layer, x, h):
    """r, z = sigmoid(W x + b + U h + c), n = tanh(W x + b + r (U h + c)), h' = (1 - z) n + z h."""
    own = (x @ layer.weight_ih_l0.T + layer.bias_ih_l0).chunk(3, -1)
    past = (h @ layer.weight_hh_l0.T + layer.bias_hh_l0).chunk(3, -1)
    reset, update = ((own[i] + past[i]).sigmoid() for i in (0, 1))
    return (1 - update) * (own[2] + reset * past[2]).tanh() + update * h


def tanh_step(layer, x, h):
    return (x @ layer.weight_ih_l0.T + layer.bias_ih_l0 + h @ layer.weight_hh_l0.T + layer.bias_hh_l0).tanh()


@pytest.mark.parametrize(("cell", "step"), [("gru", gru_step), ("tanh", tanh_step)])
def test_a_layer_agrees_with_the_equations_of_its_cell(cell, step):
    layer, x, hidden = randomised(recurrent(cell, 4, 6)), torch.randn(3, 5, 4), torch.randn(3, 6)
    outputs, (last,) = advance(layer, x, (hidden,))
    for t in range(5):
        hidden = step(layer, x[:, t], hidden)
        assert_close(outputs[:, t], hidden, **CLOSE)
    assert_close(last, hidden, **CLOSE)


@pytest.mark.parametrize("cell", list(GATES))
def test_a_cell_advances_as_its_layer_does_with_the_same_gradients(cell):
    layer = randomised(recurrent(cell, 4, 6))
    work = torch.randn(FEW_ROWS, 1, 4), tuple(torch.randn(FEW_ROWS, 6) for _ in range(state_parts(cell)))

    def outputs_and_gradients(way):
        outputs, state = way(layer, *work)
        return outputs, *state, *torch.autograd.grad(sum(x.sum() for x in state), layer.parameters())

    assert_close(outputs_and_gradients(advance_by_cell), outputs_and_gradients(advance_by_layer), **CLOSE)
    assert_close(outputs_and_gradients(advance), outputs_and_gradients(advance_by_cell), rtol=0, atol=0)


@pytest.mark.parametrize("cell", list(GATES))
@pytest.mark.parametrize(("device", "rows", "length", "by"), [
    ("cpu", FEW_ROWS, 1, "cell"),
    ("cpu", FEW_ROWS + 1, 1, "layer"),
    ("cpu", FEW_ROWS, 2, "layer"),
    ("meta", FEW_ROWS + 1, 1, "cell"),
    ("meta", FEW_ROWS + 1, 2, "layer"),
])  # fmt: skip
def test_one_token_is_computed_by_a_cell_where_this_is_faster_and_always_off_the_cpu(
    cell, device, rows, length, by, monkeypatch
):
    """The device `meta` stands for a GPU."""
    used = []
    for way in ("cell", "layer"):
        function = getattr(recurrent_module, f"advance_by_{way}")
        monkeypatch.setattr(
            recurrent_module,
            f"advance_by_{way}",
            lambda *a, way=way, function=function: used.append(way) or function(*a),
        )
    state = (torch.zeros(rows, 6, device=device),) * state_parts(cell)
    advance(recurrent(cell, 4, 6).to(device), torch.zeros(rows, length, 4, device=device), state)
    assert used == [by]


@pytest.mark.parametrize("cell", list(GATES))
def test_recurrent_weights_are_orthogonal_in_each_gate_and_only_an_lstm_forgets_with_a_bias(cell):
    layer = recurrent(cell, 4, 6)
    for gate in layer.weight_hh_l0.chunk(GATES[cell]):
        assert_close(gate @ gate.T, torch.eye(6), **CLOSE)
    expected = torch.zeros(GATES[cell], 6)
    expected[1:2] = float(cell == "lstm")
    assert_close((layer.bias_ih_l0 + layer.bias_hh_l0).view(-1, 6), expected)
