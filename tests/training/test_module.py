"""The module: its optimiser, its seeds and threads, its precision, and what happens if its loss is no number."""

import math
import shutil

import pytest
import torch
from lightning.pytorch import Callback

from tests.commands import tfstudy
from tests.interrupted_runs import command, folder
from tests.training.small_training import ARCHITECTURES, same, small_training, trained
from tfstudy.config.schema import TrainConfig
from tfstudy.runs.store import open_run, read_result
from tfstudy.training import loss as training
from tfstudy.training.module import DivergenceError
from tfstudy.training.step import learning_rate_factor

# The learning rate, the gradient and the optimiser


@pytest.mark.parametrize(
    ("schedule", "warmup_steps", "steps", "expected"),
    [
        ("cosine", 4, 8, [0.25, 0.5, 0.75, 1.0, 0.9045, 0.6545, 0.3455, 0.0955, 0.0]),
        ("cosine", 0, 3, [0.8536, 0.5, 0.1464, 0.0]),
        ("inverse_sqrt", 4, 16, [0.25, 0.5, 0.75, 1.0, 0.8944, 0.8165, 0.7559, 0.7071]),
        ("inverse_sqrt", 0, 16, [1.0, 0.7071, 0.5774, 0.5]),
        ("constant", 2, 5, [0.5, 1.0, 1.0, 1.0]),
        ("constant", 0, 5, [1.0, 1.0]),
        ("cosine", 10, 5, [0.1, 0.2, 0.3, 0.4, 0.5]),  # a warm-up that never ends
        ("noam", 4, 16, [0.0313, 0.0625, 0.0938, 0.125, 0.1118, 0.1021]),  # of a model of width 16
        ("noam", 0, 16, [0.25, 0.1768, 0.1443]),
    ],
)
def test_the_schedule_is_as_computed_by_hand(schedule, warmup_steps, steps, expected):
    config = TrainConfig(schedule=schedule, warmup_steps=warmup_steps, steps=steps)
    assert [learning_rate_factor(config, step, dim=16) for step in range(len(expected))] == pytest.approx(
        expected, abs=1e-4
    )


def test_the_optimiser_follows_the_schedule_at_every_step():
    rates = []

    class Recorder(Callback):
        def on_before_optimizer_step(self, trainer, pl_module, optimizer):
            rates.append(optimizer.param_groups[0]["lr"])

    module = trained(steps=5, warmup_steps=2, learning_rate=0.1, callbacks=[Recorder()])
    assert rates == pytest.approx([0.1 * learning_rate_factor(module.config, step, 16) for step in range(5)])
    assert rates[:2] == pytest.approx([0.05, 0.1])
    rates.clear()
    trained(steps=3, warmup_steps=2, learning_rate=0.1, schedule="noam", callbacks=[Recorder()])
    assert rates == pytest.approx([0.1 * 16**-0.5 * rate for rate in (2**-1.5, 2**-0.5, 3**-0.5)])


def test_the_gradient_is_clipped_as_a_whole_and_its_norm_before_that_is_kept():
    norms = []

    class Recorder(Callback):
        def on_before_optimizer_step(self, trainer, pl_module, optimizer):
            norms.append(torch.stack([p.grad.norm() for p in pl_module.parameters()]).norm().item())

    module = trained(steps=1, gradient_clip_norm=0.01, callbacks=[Recorder()])
    norm = float(module.gradient_norm)
    assert norm > 0.011
    assert norms == pytest.approx([norm], rel=1e-5)
    clipped = torch.stack([p.grad.norm() for p in module.parameters()])
    assert clipped.norm().item() == pytest.approx(0.01, rel=1e-3)
    unclipped = trained(steps=1, gradient_clip_norm=0)
    assert float(unclipped.gradient_norm) == pytest.approx(norm, rel=1e-5)


def test_weight_decay_acts_on_what_the_model_does_not_exempt():
    module, _ = small_training("cnn", weight_decay=0.3)
    decayed, spared = module.configure_optimizers()["optimizer"].param_groups
    assert (decayed["weight_decay"], spared["weight_decay"]) == (0.3, 0.0)
    assert {id(p) for p in spared["params"]} == {id(p) for p in module.model.parameters_without_decay()}
    assert len(decayed["params"]) + len(spared["params"]) == len(list(module.parameters()))


# Seeds, threads and precision


@pytest.fixture
def threads():
    """Sets the number of torch's threads; as before afterwards."""
    before = torch.get_num_threads()
    yield torch.set_num_threads
    torch.set_num_threads(before)


@pytest.mark.parametrize(("precision", "micro_batches"), [("32-true", 3), ("bf16-mixed", 3), ("32-true", 1)])
@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_the_number_of_threads_changes_no_weight(arch, precision, micro_batches, threads):
    threads(1)
    one = trained(arch, 0.3, micro_batches=micro_batches, precision=precision)
    threads(3)
    assert same(one, trained(arch, 0.3, micro_batches=micro_batches, precision=precision))
    assert torch.get_num_threads() == 3, "training leaves the number of threads as it was"


@pytest.mark.parametrize("precision", ["32-true", "bf16-mixed"])
def test_gradient_checkpointing_changes_no_weight(precision, threads):
    threads(3)
    settings = {"dropout": 0.3, "micro_batches": 3, "precision": precision}
    assert same(trained("transformer", **settings, gradient_checkpointing=True), trained("transformer", **settings))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # as errors they would end the compiler of torch
@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_a_compiled_model_trains_as_an_eager_one_does(arch):
    if not shutil.which("gcc") and not shutil.which("g++"):
        pytest.skip("torch.compile needs a compiler")
    settings = {"steps": 20, "micro_batches": 1, "adam_epsilon": 1e-3, "validation_interval": 20}
    assert same(trained(arch, **settings, compile=True), trained(arch, **settings), atol=1e-3)


def test_a_training_that_fails_leaves_the_number_of_threads_as_it_was(threads, monkeypatch):
    monkeypatch.setattr(training, "summed_loss", lambda logits, *_: logits.sum() * math.nan)
    threads(3)
    with pytest.raises(DivergenceError):
        trained("transformer", micro_batches=3)
    assert torch.get_num_threads() == 3


# A loss that is not finite ends a run, and the run is a result


def test_a_run_that_diverges_is_a_result_whose_weights_are_not_used_or_tested(monkeypatch, capsys):
    real = training.summed_loss
    steps = []

    def late(logits, gold, smoothing=0.0):
        steps.append(logits.requires_grad)
        return real(logits, gold, smoothing) * (math.nan if sum(steps) > 12 else 1)

    monkeypatch.setattr(training, "summed_loss", late)
    words = command("lstm", "--set", "train.micro_batches=1")
    assert tfstudy(*words) == 1
    assert "diverged (the training loss is nan at step 15)" in capsys.readouterr().out
    result = read_result(folder())
    assert (result.status, result.reason, result.splits) == ("diverged", "the training loss is nan at step 15", {})
    assert (folder() / "checkpoints/last.ckpt").exists()
    for refused in (["predict", folder(), "a"], ["evaluate", folder()]):
        assert tfstudy(*refused) == 2
        assert "diverged" in capsys.readouterr().err
    assert open_run(folder()).test_reads == {}
    assert not (folder() / "predictions").exists()
    assert tfstudy(*words) == 1
    assert "already finished" in capsys.readouterr().err
