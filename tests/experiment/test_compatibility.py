"""Sections of a config that do not fit each other or the data are refused before anything is trained."""

import subprocess
import sys

import pytest

from tfstudy import tasks
from tfstudy.config.resolve import overrides, resolve
from tfstudy.config.trees import merge
from tfstudy.errors import UserError
from tfstudy.evaluation.decoding import needed_positions
from tfstudy.experiment.compatibility import DataShape, check, sized_model
from tfstudy.experiment.prepare import prepare

SMALL = ["data.train_examples=20", "data.eval_examples=5", "train.steps=10"]


def refusal(task: str, *assignments: str) -> str:
    config = resolve(merge({"task": task, "arch": "transformer"}, overrides(assignments)))
    with pytest.raises(UserError) as error:
        check(config, DataShape.of(tasks.find(task)(config.data)))
    return str(error.value)


@pytest.mark.parametrize(
    ("task", "assignments", "facts"),
    [
        ("scan", ["model.share_embeddings=true"], ["model.share_embeddings", "scan"]),
        ("copying", [*SMALL, "decode.max_length=3"], ["decode.max_length", "20", "3"]),
        (
            "copying",
            [*SMALL, "decode.max_length=600", "model.positions=learned"],
            ["model.max_positions", "601", "decode.max_length=600", "512"],
        ),
        (
            "copying",
            [*SMALL, "model.randomised_positions=20", "model.max_positions=20"],
            ["model.randomised_positions", "37", "20"],
        ),
        ("copying", [*SMALL, "model.digit_positions=30"], ["model.digit_positions", "copying"]),
        ("arithmetic", [*SMALL, "model.digit_positions=30"], ["model.digit_positions", "data.format=reversed"]),
        ("scan", ["model.copy_output=true"], ["model.copy_output", "share", "scan"]),
        ("scan", ["model.layout=encoder_only"], ["model.layout=encoder_only", "tokens more than its source"]),
        (
            "arithmetic",
            [*SMALL, "model.digit_positions=10", "data.format=reversed"],
            ["model.digit_positions", "at least 11", "longest source", "10"],
        ),
        (
            "scan",
            ["eval.checkpoint=best", "data.validation_fraction=0"],
            ["eval.checkpoint", "validation split"],
        ),
    ],
)
def test_settings_that_do_not_fit_are_refused_with_both_values(task, assignments, facts):
    message = refusal(task, *assignments)
    assert all(fact in message for fact in facts), message


def test_the_check_needs_no_lightning():
    code = "import sys, tfstudy.experiment.compatibility; sys.exit('lightning' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def prepared(*assignments: str, task: str = "copying", arch: str = "cnn"):
    tree = merge({"task": task, "arch": arch, "model": {"dim": 16, "channels": 16}}, overrides([*SMALL, *assignments]))
    return prepare(resolve(tree))


def test_a_table_of_positions_is_as_large_as_the_data_need():
    assert prepared().model.max_positions == 512
    assert prepared("model.max_positions=9").model.max_positions == 37
    long = prepared("model.max_positions=9", "data.test_length=600-600")
    assert long.model.max_positions == 617


def test_the_size_of_the_table_depends_on_the_data_only():
    sizes = {
        prepared("model.max_positions=9", *decode).model.max_positions
        for decode in ([], ["decode.limit=source"], ["decode.method=beam"], ["decode.max_length=30"])
    }
    assert sizes == {37}


def test_the_config_of_a_run_keeps_the_least_size():
    run = prepared("model.max_positions=9")
    assert run.config.model.max_positions == 9
    assert run.identity.settings["model"]["max_positions"] == 9


def test_the_cnn_takes_the_lengths_of_chomsky():
    config = resolve({"task": "chomsky", "arch": "cnn", "data": {"split": "reverse_string", "test_length": "41-500",
                      "train_examples": 50, "eval_examples": 60}})  # fmt: skip
    task = tasks.find("chomsky")(config.data)
    shape = DataShape.of(task)
    check(config, shape)
    assert sized_model(config, shape).max_positions == needed_positions(task) > 512
