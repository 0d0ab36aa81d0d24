"""Averages of the weights: their formulas, that training goes on without them, and that they are validated and kept."""

import pytest
import torch
from lightning.pytorch import Callback, Trainer

from tests.training.small_training import same, small_training, trained
from tests.training.test_resuming import Interrupt, InterruptionError
from tfstudy.config.schema import TrainConfig
from tfstudy.training.averaging import TRAINED
from tfstudy.training.checkpoints import Checkpoints
from tfstudy.training.fit import fit
from tfstudy.training.saved_weights import load_checkpoint

SETTINGS = {"steps": 6, "dropout": 0.3, "validation_interval": 2, "learning_rate": 0.01}
AVERAGES = [{"ema_decay": 0.7}, {"average_last": 3}, {"average_last": 99}]


class Recorder(Callback):
    """The weights after each step, and those that are validated."""

    def __init__(self):
        self.weights, self.validated = {}, {}

    def on_train_batch_end(self, trainer, pl_module, *_):
        self.weights[trainer.global_step] = flat(pl_module)

    def on_validation_batch_start(self, trainer, pl_module, *_):
        self.validated[trainer.global_step] = flat(pl_module)


def flat(module):
    return torch.cat([p.detach().double().flatten() for p in module.parameters()])


def expected(weights, steps, ema_decay=0.0, average_last=0):
    """The average after some of the six steps, as computed by hand."""
    if average_last:
        last = [weights[step] for step in range(1, steps + 1) if step > 6 - average_last]
        return sum(last) / len(last) if last else weights[steps]
    average = weights[1]
    for step in range(2, steps + 1):
        average = ema_decay * average + (1 - ema_decay) * weights[step]
    return average


@pytest.mark.parametrize("average", AVERAGES, ids=str)
def test_the_average_is_as_computed_by_hand_and_is_what_is_validated(average):
    plain, recorder = Recorder(), Recorder()
    last = trained(**SETTINGS, callbacks=[plain])
    module = trained(**SETTINGS, **average, callbacks=[recorder])
    assert all(torch.equal(recorder.weights[step], plain.weights[step]) for step in range(1, 7))
    assert set(recorder.validated) == {2, 4, 6}
    for step, weights in recorder.validated.items():
        torch.testing.assert_close(weights, expected(plain.weights, step, **average), rtol=1e-5, atol=1e-6)
    assert torch.equal(flat(module), recorder.validated[6])
    assert not same(module, last)


@pytest.mark.parametrize(("average", "accumulate"), [(AVERAGES[0], 2), (AVERAGES[1], 1)], ids=str)
def test_a_resumed_training_has_the_average_of_an_undisturbed_one(average, accumulate, tmp_path):
    settings = SETTINGS | average | {"accumulate_grad_batches": accumulate, "gradient_checkpointing": True}
    module, data = small_training("transformer", **settings)
    with pytest.raises(InterruptionError):
        fit(module, data, callbacks=[Checkpoints(tmp_path, "0"), Interrupt()], accelerator="cpu")
    checkpoint = load_checkpoint(tmp_path / "last.ckpt", "0")
    assert checkpoint["global_step"] == 4
    assert checkpoint[TRAINED].keys() == checkpoint["state_dict"].keys()
    module, data = small_training("transformer", **settings)
    fit(module, data, resume=checkpoint, accelerator="cpu")
    assert same(module, trained("transformer", **settings))


def test_after_training_the_average_is_saved_and_validated_as_such(tmp_path):
    plain, recorder, settings = Recorder(), Recorder(), SETTINGS | AVERAGES[0]
    module, data = small_training(**settings)
    trainer = fit(module, data, callbacks=[plain, recorder, Checkpoints(tmp_path, "0")], accelerator="cpu")
    average = flat(module)
    trainer.save_checkpoint(tmp_path / "end.ckpt")
    checkpoint = load_checkpoint(tmp_path / "end.ckpt", "0")
    names = [name for name, _ in module.named_parameters()]
    held, trained = (
        torch.cat([checkpoint[key][name].double().flatten() for name in names]) for key in ("state_dict", TRAINED)
    )
    assert torch.equal(held, average)
    assert torch.equal(trained, plain.weights[6])
    recorder.validated.clear()
    trainer.validate(module, data, verbose=False)
    assert all(torch.equal(weights, average) for weights in recorder.validated.values())
    assert len(recorder.validated) == 1
    assert torch.equal(flat(module), average)


def test_a_model_that_was_never_trained_is_validated_and_saved_as_it_is(tmp_path):
    module, data = small_training(ema_decay=0.9)
    before = flat(module)
    trainer = Trainer(accelerator="cpu", logger=False, enable_progress_bar=False, enable_checkpointing=False)
    trainer.validate(module, data, verbose=False)
    assert trainer.callback_metrics["validation_loss"] > 0
    trainer.save_checkpoint(tmp_path / "start.ckpt")
    assert TRAINED not in torch.load(tmp_path / "start.ckpt")
    assert torch.equal(flat(module), before)


def test_a_checkpoint_without_an_average_has_the_same_entries_as_before(tmp_path):
    module, data = small_training(steps=2)
    fit(module, data, callbacks=[Checkpoints(tmp_path, "0")], accelerator="cpu")
    checkpoint = load_checkpoint(tmp_path / "last.ckpt", "0")
    assert TRAINED not in checkpoint
    assert set(checkpoint["callbacks"]) == {"checkpoints"}


def test_two_averages_exclude_each_other():
    with pytest.raises(ValueError, match="average_last must be 0 if ema_decay is set, but is 3"):
        TrainConfig(ema_decay=0.9, average_last=3)
