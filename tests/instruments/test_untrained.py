"""Initial weights: those that the run started with, in a model that knows the same of the data."""

import pytest
import torch

from tests.example_task import TASK, added
from tfstudy import tasks
from tfstudy.config.resolve import resolve
from tfstudy.experiment.prepare import prepare
from tfstudy.instruments.base import Subject
from tfstudy.instruments.examples import untrained

MODEL = {"dim": 8, "heads": 2, "feedforward": 8, "copy_output": True, "digit_positions": 20, "positions": "none"}
DIGITS = "    def digits(self):\n        return ('b',)\n"


@pytest.fixture
def prepared(tmp_path):
    with added(tasks, "counted", f"{TASK}\n{DIGITS}", tmp_path):
        yield prepare(
            resolve({"task": "counted", "arch": "transformer", "data": {"split": "short"}, "model": MODEL, "seed": 3})
        )


def test_the_untrained_model_is_the_one_that_the_run_started_with(prepared):
    trained = prepared.model
    before = {name: value.clone() for name, value in [*trained.named_parameters(), *trained.named_buffers()]}
    with torch.no_grad():
        for parameter in trained.parameters():
            parameter.add_(1)
    model = untrained(Subject(trained, prepared.task, prepared.data, prepared.config))
    after = dict([*model.named_parameters(), *model.named_buffers()])
    assert after.keys() == before.keys()
    assert [name for name, value in before.items() if not torch.equal(value, after[name])] == []
    assert trained.get_submodule("digits").source_digits.sum() == 1
