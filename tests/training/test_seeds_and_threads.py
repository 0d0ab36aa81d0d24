"""Neither the threads nor the global generator change a weight; the seed does."""

import math
from pathlib import Path

import pytest
import torch
from lightning.pytorch import Trainer

from tests.commands import tfstudy
from tests.interrupted_runs import command, folder
from tests.training.small_training import ARCHITECTURES, same, small_training, trained
from tfstudy.runs.reader import read_result
from tfstudy.training import loss as training
from tfstudy.training.fit import fit
from tfstudy.training.module import DivergenceError


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_the_same_seed_gives_the_same_weights_and_another_seed_others(arch):
    one, again, other = (trained(arch, dropout=0.3, seed=seed) for seed in (0, 0, 1))
    assert same(one, again)
    assert not same(one, other)
    assert not same(one, small_training(arch, dropout=0.3)[0]), "training changes weights"


def test_the_state_of_the_global_generator_decides_nothing():
    one = trained(dropout=0.3)
    module, data = small_training(dropout=0.3)
    torch.manual_seed(99)
    fit(module, data, accelerator="cpu")
    assert same(one, module)


@pytest.fixture
def threads():
    """Sets the number of torch's threads; as before afterwards."""
    before = torch.get_num_threads()
    yield torch.set_num_threads
    torch.set_num_threads(before)


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_the_number_of_threads_changes_no_weight(arch, threads):
    threads(1)
    one = trained(arch, dropout=0.3, micro_batches=3)
    threads(3)
    assert same(one, trained(arch, dropout=0.3, micro_batches=3))
    assert torch.get_num_threads() == 3, "training leaves the number of threads as it was"


@pytest.mark.parametrize("precision", ["32-true", "bf16-mixed"])
def test_gradient_checkpointing_changes_no_weight(precision, threads):
    threads(3)
    settings = {"dropout": 0.3, "micro_batches": 3, "precision": precision}
    assert same(trained("transformer", **settings, gradient_checkpointing=True), trained("transformer", **settings))


def test_a_training_that_fails_leaves_the_number_of_threads_as_it_was(threads, monkeypatch):
    monkeypatch.setattr(training, "summed_loss", lambda logits, *_: logits.sum() * math.nan)
    threads(3)
    with pytest.raises(DivergenceError):
        trained("transformer", micro_batches=3)
    assert torch.get_num_threads() == 3


def test_a_module_holds_its_model_once():
    module, _ = small_training()
    assert {name.split(".")[0] for name in module.state_dict()} == {"model"}


def test_the_module_trains_in_a_plain_trainer():
    module, data = small_training()
    trainer = Trainer(
        max_steps=3, accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False,
        enable_model_summary=False, num_sanity_val_steps=0, log_every_n_steps=1,
    )  # fmt: skip
    trainer.fit(module, data)
    assert trainer.global_step == 3
    assert not same(module, small_training()[0])


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_mixed_precision_runs(arch):
    assert tfstudy(*command(arch, "--set", "train.precision=bf16-mixed", "--set", "train.steps=10")) == 0
    assert read_result(folder()).status == "finished"


def test_half_precision_is_refused_on_a_cpu(capsys):
    assert tfstudy(*command("lstm", "--set", "train.precision=16-mixed")) == 2
    error = capsys.readouterr().err
    assert "16-mixed" in error
    assert "bf16-mixed" in error
    assert not Path("results").exists()
