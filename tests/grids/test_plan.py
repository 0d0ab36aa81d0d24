"""Planning: every run has its folder, and each shape of model and data is checked once."""

from pathlib import Path

import pytest

from tfstudy.errors import UserError
from tfstudy.experiment import compatibility
from tfstudy.grids.expand import expand
from tfstudy.grids.plan import plan
from tfstudy.tasks.base import fingerprint

BASE = {"task": "copying", "data": {"train_examples": 20, "eval_examples": 5}, "train": {"steps": 10}}


def planned(axes: dict, seeds: str = "0", **base):
    grid = {"base": {**BASE, **base}, "axes": axes, "seeds": seeds}
    return plan(expand(grid), Path("results"), "study")


@pytest.fixture
def built(monkeypatch):
    """The architectures of the models that are built, and `data` for each data set."""
    names: list[str] = []
    table = compatibility.position_table
    monkeypatch.setattr(compatibility, "position_table", lambda *words: names.append(words[0]) or table(*words))
    monkeypatch.setattr("tfstudy.grids.plan.fingerprint", lambda task: names.append("data") or fingerprint(task))
    compatibility.checked_table.cache_clear()
    return names


def test_a_model_is_built_once_for_each_shape_and_data_once_for_all(built):
    axes = {"train.learning_rate": [0.1, 0.01, 0.001], "model.dropout": [0.0, 0.1], "model.dim": [16, 32]}
    runs = planned(axes, seeds="0-2")
    assert len(runs) == len({run.path for run in runs}) == 36
    assert sorted(built) == ["data", "transformer", "transformer"]


def test_data_of_another_length_are_another_shape(built):
    planned({"data.test_length": ["21-30", "600-700"]}, arch="cnn")
    assert sorted(built) == ["cnn", "cnn", "data", "data"]


def test_every_setting_that_does_not_fit_is_named(built):
    with pytest.raises(UserError) as error:
        planned({"decode.max_length": [3, 4, 600]}, seeds="0-1", model={"positions": "learned"})
    lines = str(error.value).splitlines()
    assert [line.partition(" must")[0] for line in lines] == [
        "decode.max_length",
        "decode.max_length",
        "model.max_positions",
    ]
    assert lines[2].endswith("at least 601 for decode.max_length=600, but is 512")
    assert built.count("transformer") == 1
