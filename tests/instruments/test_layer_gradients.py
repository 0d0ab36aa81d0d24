"""Gradients and updates of each layer during training: the right numbers, and the same after a resumed run."""

import json
import math
import shlex

import pytest
from lightning.pytorch import Callback
from torch.nn.utils import parameters_to_vector

from tests.commands import tfstudy
from tests.interrupted_runs import at_row, command, folder, killed
from tests.training.small_training import same, trained
from tfstudy import instruments, load
from tfstudy.errors import UserError
from tfstudy.instruments.layer_gradients import LayerListener, layer_name

MEASURED = ("--measure", "layer_gradients")


class Weights(Callback):
    """Keeps the output layer's gradient and weights at each step."""

    def __init__(self):
        self.gradients, self.before, self.after = [], [], []

    def on_before_optimizer_step(self, trainer, module, optimizer):
        parameters = [*module.model.output.parameters()]
        self.gradients.append(parameters_to_vector(parameter.grad for parameter in parameters))
        self.before.append(parameters_to_vector(parameters).detach())

    def on_train_batch_end(self, trainer, module, *_):
        self.after.append(parameters_to_vector(module.model.output.parameters()).detach())


@pytest.mark.usefixtures("task")
def test_rows_are_the_norms_of_gradients_and_relative_updates():
    expected, listener = Weights(), LayerListener("layer_gradients", 3)
    measured = trained("transformer", callbacks=[expected, listener], steps=3, gradient_clip_norm=0.01)
    rows = {(r["quantity"], r["step"]): r["value"] for r in listener.rows if r["layer"] == "output"}
    for i in range(3):
        assert rows["gradient norm", i + 1] == pytest.approx(float(expected.gradients[i].norm()), rel=1e-5)
        update = (expected.after[i] - expected.before[i]).norm() / expected.before[i].norm()
        assert rows["update / weights", i + 1] == pytest.approx(float(update), rel=1e-5)
    assert same(measured, trained("transformer", steps=3, gradient_clip_norm=0.01))


@pytest.mark.usefixtures("task")
def test_a_long_training_is_measured_at_200_steps():
    listener = LayerListener("layer_gradients", 1000)
    trained("lstm", callbacks=[listener], steps=10)
    assert {row["step"] for row in listener.rows} == {5, 10}


@pytest.mark.parametrize(
    ("parameter", "layer"),
    [
        ("encoder.layers.0.attention.query.weight", "encoder 1"),
        ("decoder.11.parametrizations.weight.original0", "decoder 12"),
        ("source_embedding.tokens.weight", "source embedding"),
        ("encoder.norm.weight", "encoder"),
    ],
)
def test_parameters_are_grouped_by_layer(parameter, layer):
    assert layer_name(parameter) == layer


@pytest.mark.usefixtures("task", "empty_folder")
def test_a_killed_run_has_the_rows_of_an_undisturbed_one(undisturbed, capsys):
    expected = undisturbed([*command(), *MEASURED])
    killed([*command(), *MEASURED], at_row(25))
    assert tfstudy(*command()) == 0  # it stays measured, whether this is said again or not
    paths = (path / "instruments" / "layer_gradients.json" for path in (folder(), expected))
    rows, undisturbed_rows = (json.loads(path.read_text())["columns"] for path in paths)
    assert rows == undisturbed_rows
    assert max(rows["step"]) == 40
    assert all(math.isfinite(value) for value in rows["value"])
    assert load(folder()).measure("layer_gradients").chart.facet == "quantity"
    assert tfstudy(*command(), *MEASURED) == 0
    assert "already finished" in capsys.readouterr().err


@pytest.mark.usefixtures("task", "empty_folder")
def test_steps_that_were_not_measured_are_reported(capsys):
    killed(command(), at_row(15))
    assert tfstudy(*command(), *MEASURED) == 2
    assert "trained without measuring layer_gradients" in capsys.readouterr().err
    assert tfstudy(*command()) == 0
    capsys.readouterr()
    assert tfstudy(*command(), *MEASURED) == 2
    error = capsys.readouterr().err
    with pytest.raises(UserError, match="trained without measuring layer_gradients"):
        load(folder()).measure("layer_gradients")
    again = shlex.split(error.split("`")[1])
    assert tfstudy(*again[1:]) == 0
    assert load(folder()).measure("layer_gradients").rows


def test_only_instruments_that_listen_to_training_can_be_asked_for(capsys):
    assert tfstudy("run", "sorting", "--measure", "entropy") == 2
    assert "entropy measures finished runs (`tfstudy measure RUN entropy`)" in capsys.readouterr().err
    assert instruments.parse_in_training("layer_gradients, layer_gradients") == ("layer_gradients",)
