"""Recurrent layers, the LSTM, minGRU, DeltaNet and the Stack-RNN: torch, their equations, loops over steps."""

import math
from random import Random

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from tests.conftest import SOURCE_VOCAB, TARGET_VOCAB
from tests.models.reference import CLOSE, randomised
from tfstudy.instruments.hooks import logits_of
from tfstudy.models import deltanet
from tfstudy.models.deltanet import CHUNK, DeltaNet, Direction, delta_rule
from tfstudy.models.lstm import LSTM
from tfstudy.models.mingru import recurrence
from tfstudy.models.recurrent import (
    FEW_ROWS,
    GATES,
    advance,
    advance_by_cell,
    advance_by_layer,
    recurrent,
    scan,
    state_parts,
)
from tfstudy.models.stack_rnn import ACTIONS, change
from tfstudy.models.tokens import Tokens

# Layers


@pytest.mark.parametrize("cell", list(GATES))
def test_a_cell_advances_as_its_layer_does_with_the_same_gradients(cell):
    layer = randomised(recurrent(cell, 4, 6))
    work = torch.randn(FEW_ROWS, 1, 4), tuple(torch.randn(FEW_ROWS, 6) for _ in range(state_parts(cell)))

    def outputs_and_gradients(way):
        outputs, state = way(layer, *work)
        return outputs, *state, *torch.autograd.grad(sum(x.sum() for x in state), layer.parameters())

    assert_close(outputs_and_gradients(advance_by_cell), outputs_and_gradients(advance_by_layer), **CLOSE)


@pytest.mark.parametrize(
    ("device", "rows", "length", "by"),
    [("cpu", FEW_ROWS, 1, "cell"), ("cpu", FEW_ROWS + 1, 1, "layer"), ("cpu", FEW_ROWS, 2, "layer"),
     ("meta", FEW_ROWS + 1, 1, "cell"), ("meta", FEW_ROWS + 1, 2, "layer")],
)  # fmt: skip
def test_one_token_is_computed_by_a_cell_where_this_is_faster_and_always_off_the_cpu(device, rows, length, by):
    """The device `meta` stands for a GPU."""
    layer, used = recurrent("gru", 4, 6).to(device), []
    layer.register_forward_hook(lambda *_: used.append("layer"))
    advance(layer, torch.zeros(rows, length, 4, device=device), (torch.zeros(rows, 6, device=device),))
    assert (used or ["cell"]) == [by]


@pytest.mark.parametrize("cell", list(GATES))
def test_recurrent_weights_are_orthogonal_in_each_gate_and_only_an_lstm_forgets_with_a_bias(cell):
    layer = recurrent(cell, 4, 6)
    for gate in layer.weight_hh_l0.chunk(GATES[cell]):
        assert_close(gate @ gate.T, torch.eye(6), **CLOSE)
    expected = torch.zeros(GATES[cell], 6)
    expected[1:2] = float(cell == "lstm")
    assert_close((layer.bias_ih_l0 + layer.bias_hh_l0).view(-1, 6), expected)


def by_steps(keep, new, state=0.0):
    """The linear recurrence, one step after the other."""
    states = []
    for step in range(new.shape[1]):
        state = keep[:, step] * state + new[:, step]
        states.append(state)
    return torch.stack(states, 1)


@pytest.mark.parametrize("length", [1, 2, 3, 8, 9, 500])
def test_the_scan_and_its_gradient_are_those_of_the_recurrence(length):
    keep, new = torch.rand(3, length, 5, dtype=torch.float64), torch.randn(3, length, 5, dtype=torch.float64)
    assert_close(scan(keep, new), by_steps(keep, new))
    if length < 10:
        assert torch.autograd.gradcheck(scan, (keep.requires_grad_(), new.requires_grad_()))


# LSTM


@pytest.mark.parametrize(("layers", "bidirectional"), [(1, True), (2, True), (2, False)])
def test_the_lstm_encoder_agrees_with_that_of_torch_on_packed_sequences(source, layers, bidirectional):
    config = LSTM.Config(dim=8, hidden=6, layers=layers, bidirectional=bidirectional)
    model = randomised(LSTM(config, SOURCE_VOCAB, TARGET_VOCAB))
    reference = nn.LSTM(8, 6, layers, bidirectional=bidirectional, batch_first=True)
    with torch.no_grad():
        for theirs, ours in zip(reference.parameters(), model.encoder.parameters(), strict=True):
            theirs.copy_(ours)
    mask = source > 0
    state = model.encode(Tokens.of(source))
    packed = nn.utils.rnn.pack_padded_sequence(
        model.source_embedding(source), mask.sum(1), batch_first=True, enforce_sorted=False
    )
    outputs, (last, _) = reference(packed)
    expected = nn.utils.rnn.pad_packed_sequence(outputs, batch_first=True)[0]
    assert_close(state.source[0].values[mask], expected[mask], **CLOSE)
    for layer in range(layers):
        ends = torch.cat(list(last.unflatten(0, (layers, -1))[layer]), -1)
        hidden, cell = model.bridge[layer](ends).chunk(2, -1)
        assert_close(state.recurrent[layer], (hidden.tanh(), cell), **CLOSE)


@pytest.mark.parametrize("attention", ["multiplicative", "additive", "none"])
def test_the_lstm_decoder_agrees_with_a_loop_over_cells(source, tokens, attention):
    config = LSTM.Config(dim=8, hidden=6, attention=attention)
    model = randomised(LSTM(config, SOURCE_VOCAB, TARGET_VOCAB))
    mask = source > 0
    start, logits = model.encode(Tokens.of(source)), logits_of(model, source, tokens)
    cell = nn.LSTMCell(8, 6)
    cell.load_state_dict({name.removesuffix("_l0"): value for name, value in model.decoder[0].state_dict().items()})
    for row in range(3):
        encoded = start.source[0].values[row, mask[row]]
        hidden, memory = (part[row, None] for part in start.recurrent[0])
        for step, token in enumerate(tokens[row]):
            hidden, memory = cell(model.target_embedding(token)[None], (hidden, memory))
            context = context_by_hand(model.attention, hidden, encoded)
            attended = torch.tanh(model.combine(torch.cat([hidden, context], 1)))
            assert_close(logits[row, step], model.output(attended)[0], **CLOSE)


def context_by_hand(attention, query, encoded):
    if attention.kind == "none":
        return query[:, :0]
    if attention.kind == "additive":  # v^T tanh(W s + U h), Bahdanau et al. 2015, appendix A.1.2
        scores = [attention.score(torch.tanh(attention.query(query[0]) + attention.key(h))) for h in encoded]
    else:  # s^T W h, Luong et al. 2015, eq. 8, scaled by sqrt(hidden)
        scores = [(query[0] @ attention.key(h) / math.sqrt(query.shape[1]))[None] for h in encoded]
    weights = torch.cat(scores).exp()
    return (weights / weights.sum() @ encoded)[None]


# minGRU


def test_the_recurrence_is_that_of_the_paper():
    """h_t = (1 - z_t) h_(t-1) + z_t c_t (Feng et al. 2024, section 3.1)."""
    gates, start = torch.randn(2, 6, 8), torch.randn(2, 4)
    update, candidate = gates[..., :4].sigmoid(), gates[..., 4:]
    keep, new = 1 - update, update * candidate
    assert_close(recurrence(gates, start, None, False), by_steps(keep, new, start), **CLOSE)
    assert_close(recurrence(gates, None, None, True), by_steps(keep.flip(1), new.flip(1)).flip(1), **CLOSE)


# DeltaNet


def delta_by_steps(query, key, value, correct, log_decay, matrix):
    """Equation 10 of Yang et al. 2024: S_t = S_(t-1) a_t (I - b_t k_t k_t') + b_t v_t k_t', o_t = S_t q_t."""
    outputs, state = [], matrix.mT
    for q, k, v, b, a in zip(*(x.unbind(2) for x in (query, key, value, correct, log_decay.exp())), strict=True):
        b, a, across = b[..., None, None], a[..., None, None], k[..., None] * k[..., None, :]
        state = state @ (a * (torch.eye(k.shape[-1], dtype=k.dtype) - b * across)) + b * v[..., None] * k[..., None, :]
        outputs.append((state @ q[..., None])[..., 0])
    return torch.stack(outputs, 2), state.mT


@pytest.mark.parametrize("length", [1, 5, CHUNK, CHUNK + 1, 3 * CHUNK + 7])
def test_the_chunks_of_the_delta_rule_and_their_gradients_are_those_of_the_recurrence(length):
    query, key, value = torch.randn(3, 2, 3, length, 4, dtype=torch.float64).unbind(0)
    correct, log_decay = torch.rand(2, 2, 3, length, dtype=torch.float64).unbind(0)
    start = torch.randn(2, 3, 4, 4, dtype=torch.float64)
    inputs = [query, nn.functional.normalize(key, dim=-1), value, 2 * correct, -0.2 * log_decay, start]
    inputs = [x.requires_grad_() for x in inputs]

    def results(rule):
        outputs, matrix = rule(*inputs)
        return outputs, matrix, *torch.autograd.grad((outputs.sin().sum() + matrix.square().sum()), inputs)

    assert_close(results(delta_rule), results(delta_by_steps))


def test_a_correction_of_two_computes_the_parity_of_any_length_and_one_of_at_most_one_never_turns_a_sign():
    bits, key = torch.randint(2, (1, 1, 1000)), torch.tensor([1.0, 0]).expand(1, 1, 1000, 2)
    start, nothing = torch.eye(2)[None, None], torch.zeros(1, 1, 1000)
    outputs, _ = delta_rule(key, key, torch.zeros_like(key), 2.0 * bits, nothing, start)
    assert_close(outputs[..., 0], 1.0 - 2 * (bits.cumsum(2) % 2))
    for correct in torch.rand(20, 1, 1, 1000):
        assert (delta_rule(key, key, torch.zeros_like(key), correct, nothing, start)[0] > -1e-6).all()


@pytest.mark.parametrize(("negative", "largest"), [(False, 1), (True, 2)])
def test_the_range_of_eigenvalues_is_that_of_the_config(negative, largest, monkeypatch):
    layer = Direction(DeltaNet.Config(dim=8, heads=2, head_width=4, negative_eigenvalues=negative))
    seen = []
    monkeypatch.setattr(deltanet, "delta_rule", lambda *inputs: seen.append(inputs) or delta_rule(*inputs))
    layer(100 * torch.randn(50, 30, 8), None, None)
    [(_, key, _, correct, log_decay, _)] = seen
    assert (key.norm(dim=-1) < 1.001).all(), "longer keys would have larger eigenvalues"
    assert (log_decay <= 0).all()
    assert_close(torch.stack([correct.min(), correct.max()]), torch.tensor([0.0, largest]), atol=1e-3, rtol=0)


def test_the_decoder_of_deltanet_goes_on_from_the_matrices_of_the_encoder(build, source):
    """They are the only way for the source into layers of the decoder whose bridge is 0."""
    model = build("deltanet").eval()
    nn.init.zeros_(model.bridge.weight)
    states = model.encode(Tokens.of(source[:2])).layers
    assert all((state.matrix[0] - state.matrix[1]).abs().max() > 1e-3 for state in states)


# Stack-RNN


def test_certain_actions_move_a_stack_as_a_list():
    """An empty stack, of cells 0, stays empty when it is popped."""
    random, stack, cells = Random(0), [], torch.zeros(1, 1, 0, 2)
    for step in range(300):
        action, value = random.randrange(ACTIONS), torch.randn(1, 1, 2)
        cells = change(cells, torch.eye(ACTIONS)[action].view(1, 1, -1), value)
        stack = ([value[0, 0], *stack], stack[1:], stack)[action]
        expected = torch.stack([*stack, *[torch.zeros(2)] * (step + 1 - len(stack))])
        assert torch.equal(cells[0, 0], expected)


def test_a_stack_after_an_uncertain_action_is_the_mean_of_those_after_each():
    cells, value, weights = torch.randn(2, 3, 5, 4), torch.randn(2, 3, 4), torch.rand(2, 3, ACTIONS).softmax(2)
    each = [change(cells, row.expand(2, 3, ACTIONS), value) for row in torch.eye(ACTIONS)]
    mean = sum(weights[..., i, None, None] * after for i, after in enumerate(each))
    assert_close(change(cells, weights, value), mean)


def test_the_delta_rule_has_the_numbers_of_the_authors_reference():
    """Those of `naive_recurrent_gated_delta_rule` in flash-linear-attention (ops/gated_delta_rule/naive.py)."""
    grid = torch.arange(10.0).view(1, 1, 5, 2)
    query, key, value = (grid + 1).sin(), nn.functional.normalize(grid.cos(), dim=-1), (2 * grid).sin()
    correct = torch.tensor([0.5, 1, 1.5, 2, 0.25]).view(1, 1, 5)
    log_decay = -torch.tensor([0.1, 0.2, 0, 0.7, 0.3]).view(1, 1, 5)
    start = torch.tensor([[1, -0.5], [0.25, 2]]).view(1, 1, 2, 2)
    outputs, matrix = delta_rule(query, key, value, correct, log_decay, start)
    expected = [[0.4373231, 1.5269583], [-0.3260341, -0.5187248], [0.7970997, -1.1083769], [-0.8019575, 1.6023275]]
    assert_close(outputs[0, 0], torch.tensor([*expected, [-0.4955409, 0.2075513]]), atol=1e-6, rtol=0)
    assert_close(matrix[0, 0], torch.tensor([[-0.9901147, 1.1373409], [0.1608326, 0.4800695]]), atol=1e-6, rtol=0)
