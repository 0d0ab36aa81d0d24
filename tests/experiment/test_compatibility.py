"""Sections of a config that do not fit each other or the data are refused before anything is trained."""

import subprocess
import sys

import pytest

import tasks
from tasks.errors import UserError
from tfstudy.config.resolve import overrides, resolve
from tfstudy.config.trees import merge
from tfstudy.experiment.compatibility import check

SMALL = ["data.train_examples=20", "data.eval_examples=5", "train.steps=10"]


def refusal(task: str, *assignments: str) -> str:
    config = resolve(merge({"task": task, "arch": "transformer"}, overrides(assignments)))
    with pytest.raises(UserError) as error:
        check(config, tasks.find(task)(config.data))
    return str(error.value)


@pytest.mark.parametrize(
    ("task", "assignments", "facts"),
    [
        ("scan", ["model.share_embeddings=true"], ["model.share_embeddings", "scan"]),
        ("copying", [*SMALL, "decode.max_length=3"], ["decode.max_length", "20", "3"]),
        ("copying", [*SMALL, "model.max_positions=9", "model.positions=learned"], ["model.max_positions", "37", "9"]),
        ("copying", [*SMALL, "eval.checkpoint=best"], ["eval.checkpoint", "validation_interval"]),
    ],
)
def test_settings_that_do_not_fit_are_refused_with_both_values(task, assignments, facts):
    message = refusal(task, *assignments)
    assert all(fact in message for fact in facts), message


def test_the_check_needs_no_lightning():
    code = "import sys, tfstudy.experiment.compatibility; sys.exit('lightning' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
