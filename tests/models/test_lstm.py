"""The LSTM against torch and against loops over its cells."""

import math

import pytest
import torch
from pydantic import ValidationError
from torch import nn
from torch.testing import assert_close

from tests.conftest import SOURCE_VOCAB, TARGET_VOCAB
from tests.models.reference import CLOSE, randomised
from tfstudy.data.encoding import PAD
from tfstudy.models.lstm import LSTM


@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("bidirectional", [True, False])
def test_the_lstm_encoder_agrees_with_that_of_torch_on_packed_sequences(source, layers, bidirectional):
    config = LSTM.Config(dim=8, hidden=6, layers=layers, bidirectional=bidirectional)
    model = randomised(LSTM(config, SOURCE_VOCAB, TARGET_VOCAB))
    reference = nn.LSTM(8, 6, layers, bidirectional=bidirectional, batch_first=True)
    with torch.no_grad():
        for theirs, ours in zip(reference.parameters(), model.encoder.parameters(), strict=True):
            theirs.copy_(ours)
    mask = source != PAD
    state = model.encode(source, mask)
    packed = nn.utils.rnn.pack_padded_sequence(
        model.source_embedding(source), mask.sum(1), batch_first=True, enforce_sorted=False
    )
    outputs, (last, _) = reference(packed)
    expected = nn.utils.rnn.pad_packed_sequence(outputs, batch_first=True)[0]
    assert_close(state.source.values[mask], expected[mask], **CLOSE)
    for layer in range(layers):
        ends = torch.cat(list(last.unflatten(0, (layers, -1))[layer]), -1)
        hidden, cell = model.bridge[layer](ends).chunk(2, -1)
        assert_close(state.recurrent[layer], (hidden.tanh(), cell), **CLOSE)


@pytest.mark.parametrize("input_feeding", [True, False])
@pytest.mark.parametrize("attention", ["multiplicative", "dot", "additive", "none"])
def test_the_lstm_decoder_agrees_with_a_loop_over_cells(source, tokens, attention, input_feeding):
    config = LSTM.Config(
        dim=8, hidden=6, attention=attention, input_feeding=input_feeding, bidirectional=attention != "dot"
    )
    model = randomised(LSTM(config, SOURCE_VOCAB, TARGET_VOCAB))
    mask = source != PAD
    start = model.encode(source, mask)
    cell = nn.LSTMCell(8 + 6 * input_feeding, 6)
    cell.load_state_dict({name.removesuffix("_l0"): value for name, value in model.decoder[0].state_dict().items()})
    for row in range(3):
        encoded = start.source.values[row, mask[row]]
        (hidden, memory), fed = [part[row, None] for part in start.recurrent[0]], torch.zeros(1, 6)
        for step, token in enumerate(tokens[row]):
            x = model.target_embedding(token)[None]
            hidden, memory = cell(torch.cat([x, fed], 1) if input_feeding else x, (hidden, memory))
            fed = torch.tanh(model.combine(torch.cat([hidden, context_by_hand(model.attention, hidden, encoded)], 1)))
            expected = model.output(fed)[0]
            assert_close(model(source, mask, tokens)[row, step], expected, **CLOSE)


def context_by_hand(attention, query, encoded):
    if attention.kind == "none":
        return query[:, :0]
    if attention.kind == "dot":  # s^T h, Luong et al. 2015, eq. 8
        weights = torch.stack([query[0] @ h for h in encoded]).exp()
        return (weights / weights.sum() @ encoded)[None]
    if attention.kind == "additive":  # v^T tanh(W s + U h), Bahdanau et al. 2015, appendix A.1.2
        scores = [attention.score(torch.tanh(attention.query(query[0]) + attention.key(h))) for h in encoded]
    else:  # s^T W h, Luong et al. 2015, eq. 8, scaled by sqrt(hidden)
        scores = [(query[0] @ attention.key(h) / math.sqrt(query.shape[1]))[None] for h in encoded]
    weights = torch.cat(scores).exp()
    return (weights / weights.sum() @ encoded)[None]


@pytest.mark.parametrize(("cell", "parts"), [("lstm", 2), ("gru", 1), ("tanh", 1)])
def test_a_layer_of_the_decoder_has_a_cell_only_with_an_lstm(source, cell, parts):
    model = LSTM(LSTM.Config(**LSTM.small, cell=cell, layers=2), SOURCE_VOCAB, TARGET_VOCAB)
    state = model.encode(source, source != PAD)
    assert [[part.shape for part in layer] for layer in state.recurrent] == [[(3, 20)] * parts] * 2
    assert model.bridge[0].out_features == parts * 20


@pytest.mark.parametrize("changes", [{"attention": "dot"}, {"attention": "none", "copy_output": True}])
def test_switches_that_do_not_fit_each_other_are_refused(changes):
    with pytest.raises(ValidationError, match=f"attention.*'{changes['attention']}'"):
        LSTM.Config(**changes)


def test_forget_gates_start_with_a_bias_of_one(build):
    state = build("lstm").decoder[0].state_dict()
    bias = state["bias_ih_l0"] + state["bias_hh_l0"]
    assert_close(bias.view(4, 20), torch.tensor([0.0, 1.0, 0.0, 0.0])[:, None].expand(4, 20))
