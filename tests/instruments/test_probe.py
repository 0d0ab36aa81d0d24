"""Probes find a label that is planted linearly, and not one that is random."""

import pytest
import torch

from tfstudy.errors import UserError
from tfstudy.instruments.probe import Labelled, majority_accuracy, probe_accuracy

TOKENS = 600


@pytest.fixture
def states():
    return torch.randn(TOKENS, 8, generator=torch.Generator().manual_seed(0))


def labelled(states, labels):
    return Labelled(states, labels, torch.arange(TOKENS) % 2 == 0)


def test_a_planted_label_is_found(states):
    labels = 7 + (states @ torch.randn(8, 3, generator=torch.Generator().manual_seed(1))).argmax(1)
    data = labelled(states, labels)
    assert probe_accuracy(data) > 0.95
    assert majority_accuracy(data) < 0.6


def test_a_random_label_is_not_found(states):
    labels = torch.randint(2, (TOKENS,), generator=torch.Generator().manual_seed(2))
    assert probe_accuracy(labelled(states, labels)) == pytest.approx(0.5, abs=0.1)


def test_a_label_that_only_the_test_tokens_have_is_an_error(states):
    labels = (torch.arange(TOKENS) % 2 == 0).long()
    assert probe_accuracy(labelled(states, labels)) == 0


def test_each_layer_is_probed_with_trained_and_untrained_weights(subject, measure, monkeypatch):
    given = subject("transformer")
    same = {"a": 0, "b": 1, "c": 2}
    labels = {"token": lambda source: [same[t] for t in source], "odd": lambda source: [None, *[1] * (len(source) - 1)]}
    monkeypatch.setattr(
        given.task, "labels", lambda example: {name: f(example.source) for name, f in labels.items()}, raising=True
    )
    rows = measure("probe", given, examples=20)
    accuracy = {(row["label"], row["layer"], row["features"]): row["accuracy"] for row in rows}
    assert len(accuracy) == len(rows) == 2 * 3 * 3  # labels, layers and features
    assert accuracy["token", 0, "trained"] == accuracy["odd", 0, "majority"] == 1


def test_a_task_without_labels_is_refused(subject, measure):
    with pytest.raises(UserError, match="labels"):
        measure("probe", subject("transformer"))
