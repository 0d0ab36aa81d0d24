"""Gradients, norms, probes and patches of hidden states: where the answer is known, and as with untrained weights."""

import pytest
import torch
from torch.testing import assert_close

from tests.example_task import TASK, added
from tfstudy import tasks
from tfstudy.config.resolve import resolve
from tfstudy.experiment.prepare import prepare
from tfstudy.instruments.base import Subject
from tfstudy.instruments.examples import untrained
from tfstudy.instruments.gradient_by_distance import gradient_norms
from tfstudy.instruments.hooks import logits_of, observing, record_states
from tfstudy.instruments.patching import Difference, Patch, nearest_pair, patching_effects
from tfstudy.instruments.probe import Labelled, majority_accuracy, probe_accuracy
from tfstudy.tasks.base import Example

GAMMA = 0.7


def rows(source_length, target_length):
    return torch.full((2, source_length), 4), torch.full((2, target_length), 5)


def test_the_gradient_of_a_tanh_rnn_decays_as_a_power_of_its_recurrent_weight(build):
    changes = {"bidirectional": False, "attention": "none"}
    model = build("lstm-tanh", **changes).double().eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "weight_hh" in name:
                parameter.copy_(GAMMA * torch.eye(len(parameter)))
            elif "embedding" in name:
                parameter.mul_(1e-6)  # tanh is linear there
            elif "bias" in name:
                parameter.zero_()
    norms = gradient_norms(model, *rows(40, 30), torch.tensor([4, 6]))
    for sequence, length in (("source", 40), ("target", 30)):
        expected = GAMMA ** torch.arange(length, dtype=torch.double).expand(2, -1)
        assert_close(norms[sequence] / norms[sequence][:, :1], expected, rtol=1e-6, atol=0)


def test_no_gradient_reaches_beyond_the_window_of_a_cnn(build):
    model = build("cnn").eval()  # 2 layers with kernel size 3: a token and the 4 before it
    norms = gradient_norms(model, *rows(5, 9), torch.tensor([4, 6]))["target"]
    assert (norms > 0).tolist() == [[True] * 5 + [False] * 4] * 2


def test_gradients_may_be_those_of_the_initial_weights(subject, measure):
    one = subject("lstm")
    first, again, trained = (measure("gradient_by_distance", one, examples=3, untrained=n < 2) for n in range(3))
    assert first == again != trained


def test_a_planted_label_is_found():
    draw = torch.Generator().manual_seed(0)
    states = torch.randn(600, 8, generator=draw)
    labels = 7 + (states @ torch.randn(8, 3, generator=draw)).argmax(1)
    data = Labelled(states, labels, torch.arange(600) % 2 == 0)
    assert probe_accuracy(data) > 0.95
    assert majority_accuracy(data) < 0.6


def test_each_layer_is_probed_with_trained_and_untrained_weights(subject, measure, monkeypatch):
    given = subject("transformer")
    same = {"a": 0, "b": 1, "c": 2}

    def labels(example):
        return {"token": [same[t] for t in example.source], "odd": [None, *[1] * (len(example.source) - 1)]}

    monkeypatch.setattr(given.task, "labels", labels)
    rows = measure("probe", given, examples=20)
    accuracy = {(row["label"], row["layer"], row["features"]): row["accuracy"] for row in rows}
    assert len(accuracy) == len(rows) == 2 * 3 * 3  # labels, layers and features
    assert accuracy["token", 0, "trained"] == accuracy["odd", 0, "majority"] == 1


NAMES = ["transformer", "lstm", "cnn", "mingru"]
SOURCES = torch.tensor([[4, 5, 6, 2], [4, 7, 6, 2]])
INPUTS = torch.tensor([[1, 4, 5]] * 2)


@pytest.mark.parametrize("name", NAMES)
def test_the_embedding_of_the_token_that_differs_has_the_whole_effect(name, build):
    model = build(name).double().eval()
    found = dict(patching_effects(model, Difference(SOURCES, INPUTS, torch.tensor([4, 6]))))
    effects = {site: effect for site, effect in found.items() if site.layer == 0}
    assert_close(list(effects.values()), [torch.tensor([0.0, 1, 0, 0]).double(), torch.zeros(3).double()])
    assert len(found) > len(effects)


@pytest.mark.parametrize("name", NAMES)
def test_patching_with_the_states_of_the_same_source_changes_nothing(name, build):
    model = build(name).eval()
    recorded = record_states(model, SOURCES[:1], INPUTS[:1])
    for site, states in recorded.states().items():
        with observing(model, Patch(site, states[0])):
            logits = logits_of(model, *(x[:1].expand(states.shape[1], -1) for x in (SOURCES, INPUTS)))
        assert_close(logits, recorded.logits.expand_as(logits))


def test_the_pair_that_differs_in_the_fewest_tokens_is_chosen():
    examples = [Example(tuple(s), tuple(t), {}) for s, t in (("abc", "x"), ("abd", "x"), ("aad", "y"), ("ab", "z"))]
    assert nearest_pair(examples) == (tuple("abd"), tuple("aad"))


def test_positions_are_named_by_both_tokens_where_they_differ(subject, measure):
    given = subject("transformer", positions="sinusoidal")
    rows = measure("patching", given, source="a b c", other="a c c")
    names = list(dict.fromkeys(row["position"] for row in rows if row["sequence"] == "source"))
    assert names == ["1 a", "2 b/c", "3 c", "4 <eos>"]


MODEL = {"dim": 8, "heads": 2, "feedforward": 8, "digit_positions": 20, "positions": "none"}
DIGITS = "    def digits(self):\n        return ('b',)\n"


def test_the_untrained_model_is_the_one_that_the_run_started_with(tmp_path):
    tree = {"task": "counted", "arch": "transformer", "data": {"split": "short"}, "model": MODEL, "seed": 3}
    with added(tasks, "counted", f"{TASK}\n{DIGITS}", tmp_path):
        prepared = prepare(resolve(tree))
    trained = prepared.model
    before = {name: value.clone() for name, value in [*trained.named_parameters(), *trained.named_buffers()]}
    with torch.no_grad():
        for parameter in trained.parameters():
            parameter.add_(1)
    state = torch.get_rng_state()
    model = untrained(Subject(trained, prepared.task, prepared.data, prepared.config))
    assert torch.equal(torch.get_rng_state(), state), "no random numbers are drawn"
    after = dict([*model.named_parameters(), *model.named_buffers()])
    assert after.keys() == before.keys()
    assert [name for name, value in before.items() if not torch.equal(value, after[name])] == []
    assert trained.get_submodule("digits").source_digits.sum() == 1
