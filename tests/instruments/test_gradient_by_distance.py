"""The gradient by distance: gamma^distance in a tanh RNN, and none beyond the window of a CNN."""

import pytest
import torch
from torch.testing import assert_close

from tfstudy.instruments.gradient_by_distance import gradient_norms
from tfstudy.models.parts.tokens import RaggedGroup

GAMMA = 0.7


def group(source_length, target_length):
    source = torch.full((2, source_length), 4)
    return RaggedGroup(source, source > 0, torch.full((2, target_length), 5))


def test_the_gradient_of_a_tanh_rnn_decays_as_a_power_of_its_recurrent_weight(build):
    changes = {"bidirectional": False, "attention": "none", "input_feeding": False, "copy_output": False}
    model = build("lstm-tanh", **changes).double().eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "weight_hh" in name:
                parameter.copy_(GAMMA * torch.eye(len(parameter)))
            elif "embedding" in name:
                parameter.mul_(1e-6)  # tanh is linear there
            elif "bias" in name:
                parameter.zero_()
    norms = gradient_norms(model, group(40, 30), torch.tensor([4, 6]))
    for sequence, length in (("source", 40), ("target", 30)):
        expected = GAMMA ** torch.arange(length, dtype=torch.double).expand(2, -1)
        assert_close(norms[sequence] / norms[sequence][:, :1], expected, rtol=1e-6, atol=0)


def test_no_gradient_reaches_beyond_the_window_of_a_cnn(build):
    model = build("cnn").eval()  # 2 layers with kernel size 3: a token and the 4 before it
    norms = gradient_norms(model, group(5, 9), torch.tensor([4, 6]))["target"]
    assert (norms > 0).tolist() == [[True] * 5 + [False] * 4] * 2


def test_all_rows_are_relative_to_the_nearest_position(subject, measure):
    rows = measure("gradient_by_distance", subject("transformer"), examples=5)
    assert {row["sequence"] for row in rows} == {"source", "target"}
    assert [row["gradient"] for row in rows if row["distance"] == 0] == [1, 1]


def test_the_initial_weights_are_those_of_the_seed_and_the_random_state_stays(subject, measure):
    state = torch.get_rng_state()
    settings = {"examples": 3, "untrained": True}
    first, again = (measure("gradient_by_distance", subject("lstm"), **settings) for _ in range(2))
    trained = measure("gradient_by_distance", subject("lstm"), examples=3)
    assert first == again != trained
    assert len(state) == len(torch.get_rng_state())


@pytest.mark.parametrize("architecture", ["cnn", "mingru"])
def test_the_norm_of_the_embeddings_is_that_of_their_weights(architecture, subject, measure):
    given = subject(architecture, **({"positions": "none"} if architecture == "cnn" else {}))
    with torch.no_grad():
        for name, parameter in given.model.named_parameters():
            if "source_embedding" in name:
                parameter.fill_(3.0)
    rows = measure("representation_norm", given, examples=5)
    [norm] = [row["norm"] for row in rows if (row["sequence"], row["layer"]) == ("source", 0)]
    assert norm == pytest.approx(3)
