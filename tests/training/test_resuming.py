"""Training that continues from a checkpoint ends as if it had never stopped, whatever callbacks there are."""

import pytest
import torch
from lightning.pytorch import Callback
from lightning.pytorch.loggers import Logger

from tests.training.small_training import ARCHITECTURES, same, small_training, trained
from tfstudy.training.callbacks import Checkpoints, TrainingProgress
from tfstudy.training.checkpoints import load_checkpoint
from tfstudy.training.fit import fit

SETTINGS = {"steps": 6, "dropout": 0.3, "validation_interval": 2}


class InterruptionError(Exception):
    """Ends a training."""


class Interrupt(Callback):
    """Ends a training before its fifth step."""

    def on_train_batch_start(self, trainer, pl_module, batch, batch_idx):
        if trainer.global_step == 4:
            raise InterruptionError


class Counter(Callback):
    """A callback with a state, under a key of its own."""

    state_key = "counter"

    def __init__(self):
        self.steps = 0

    def on_train_batch_end(self, *_):
        self.steps += 1

    def state_dict(self):
        return {"steps": self.steps}

    def load_state_dict(self, state_dict):
        self.steps = state_dict["steps"]


class RenamedCounter(Counter):
    """The same callback after its class was renamed."""


class Steps(Logger):
    """Records the step of every row of training metrics."""

    name, version = "steps", ""

    def __init__(self):
        super().__init__()
        self.steps = []

    def log_hyperparams(self, *_, **__):
        pass

    def log_metrics(self, metrics, step=None):
        if "train_loss" in metrics:
            self.steps.append(step)


def interrupted(folder, *callbacks, arch="lstm", **settings):
    """The checkpoint after four of six steps."""
    module, data = small_training(arch, **SETTINGS | settings)
    with pytest.raises(InterruptionError):
        fit(module, data, callbacks=[Checkpoints(folder, "0"), *callbacks, Interrupt()], accelerator="cpu")
    return load_checkpoint(folder / "last.ckpt", "0")


def resumed(checkpoint, *callbacks, arch="lstm", loggers=(), **settings):
    module, data = small_training(arch, **SETTINGS | settings)
    fit(module, data, callbacks=callbacks, resume=checkpoint, accelerator="cpu", loggers=loggers)
    return module


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_a_resumed_training_has_the_weights_of_an_undisturbed_one(arch, tmp_path):
    checkpoint = interrupted(tmp_path, arch=arch)
    assert checkpoint["global_step"] == 4
    assert same(resumed(checkpoint, arch=arch), trained(arch, **SETTINGS))


@pytest.mark.parametrize(
    "settings",
    [
        {"batching": "fairseq", "batch_tokens": 30, "resampled_examples": 50},  # three epochs in six steps
        {"resampled_examples": 41, "loss_reduction": "sum", "adam_epsilon": 1e-6},
        {"teacher_forcing": 0.5, "sampling_stops_at_eos": True},
        {"target_eos": False},
    ],
    ids=lambda settings: next(iter(settings)),
)
def test_training_with_a_papers_settings_resumes_to_the_same_weights(settings, tmp_path):
    resumed_module = resumed(interrupted(tmp_path, **settings), **settings)
    assert same(resumed_module, trained(**SETTINGS | settings))
    assert not same(resumed_module, trained(**SETTINGS))


@pytest.mark.parametrize("accumulate", [1, 2])
def test_a_resumed_training_logs_the_steps_that_are_left(tmp_path, accumulate):
    logger = Steps()
    checkpoint = interrupted(tmp_path, accumulate_grad_batches=accumulate)
    module = resumed(checkpoint, loggers=[logger], accumulate_grad_batches=accumulate)
    assert logger.steps == [5, 6]
    assert module.global_step == 6


def test_a_callback_that_the_checkpoint_does_not_know_starts_afresh(tmp_path):
    checkpoint = interrupted(tmp_path)
    stateless, stateful = Callback(), Counter()
    resumed(checkpoint, stateless, stateful)
    assert stateful.steps == 2


def test_a_callback_that_training_no_longer_has_is_ignored(tmp_path):
    assert resumed(interrupted(tmp_path, Counter())).global_step == 6


def test_a_renamed_callback_keeps_its_state(tmp_path):
    checkpoint = interrupted(tmp_path, Counter())
    assert checkpoint["callbacks"]["counter"] == {"steps": 4}
    renamed = RenamedCounter()
    resumed(checkpoint, renamed)
    assert renamed.steps == 6


def test_the_keys_of_our_callbacks_in_a_checkpoint_are_fixed(tmp_path):
    checkpoint = interrupted(tmp_path, TrainingProgress(lambda _: None))
    assert set(checkpoint["callbacks"]) == {"checkpoints", "progress"}


def test_the_tokens_of_earlier_processes_count(tmp_path):
    _, data = small_training(**SETTINGS)
    tokens = [data.encoded["train"].batch(data.batches.index(step)).tokens for step in range(6)]
    checkpoint = interrupted(tmp_path, TrainingProgress(lambda _: None))
    assert checkpoint["callbacks"]["progress"]["tokens"] == sum(tokens[:4])
    bar = TrainingProgress(lambda _: None)
    resumed(checkpoint, bar)
    assert bar.state_dict()["tokens"] == sum(tokens)


def test_fit_changes_neither_the_data_nor_the_checkpoint(tmp_path):
    checkpoint = interrupted(tmp_path)
    weights = {name: value.clone() for name, value in checkpoint["state_dict"].items()}
    module, data = small_training(**SETTINGS)
    before = dict(vars(data))
    fit(module, data, resume=checkpoint, accelerator="cpu")
    assert vars(data) == before
    assert checkpoint["global_step"] == 4
    assert all(torch.equal(value, weights[name]) for name, value in checkpoint["state_dict"].items())
