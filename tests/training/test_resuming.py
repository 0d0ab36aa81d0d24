"""Training that continues from a checkpoint ends as if it had never stopped; which checkpoints are written and used."""

import io
from contextlib import redirect_stderr
from zipfile import ZIP_DEFLATED, ZipFile

import pytest
import torch
from lightning.pytorch import Callback

from tests.commands import tfstudy
from tests.interrupted_runs import command, folder
from tests.training.small_training import ARCHITECTURES, same, small_training, trained
from tfstudy.config.resolve import overrides, resolve
from tfstudy.errors import UserError
from tfstudy.experiment import prepare
from tfstudy.experiment.train import training_data
from tfstudy.runs.store import read_result
from tfstudy.training.callbacks import Checkpoints, TrainingProgress
from tfstudy.training.checkpoints import (
    STATE_KEY,
    load_checkpoint,
    resumable_checkpoint,
    save_checkpoint,
)
from tfstudy.training.module import Seq2Seq

SETTINGS = {"steps": 6, "dropout": 0.3, "validation_interval": 2}
RUN = "a" * 64


class InterruptionError(Exception):
    """Ends a training."""


class Interrupt(Callback):
    """Ends a training before its fifth step."""

    def on_train_batch_start(self, trainer, pl_module, batch, batch_idx):
        if trainer.global_step == 4:
            raise InterruptionError


def interrupted(folder, *callbacks, arch="lstm"):
    """The path of the checkpoint after four of six steps."""
    with pytest.raises(InterruptionError):
        trained(arch, callbacks=[Checkpoints(folder, "0"), *callbacks, Interrupt()], **SETTINGS)
    return folder / "last.ckpt"


def resumed(checkpoint, *callbacks, arch="lstm"):
    return trained(arch, callbacks=[Checkpoints(checkpoint.parent, "0"), *callbacks], resume=checkpoint, **SETTINGS)


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_a_resumed_training_has_the_weights_of_an_undisturbed_one(arch, tmp_path):
    checkpoint = interrupted(tmp_path, arch=arch)
    assert load_checkpoint(checkpoint)["global_step"] == 4
    assert same(resumed(checkpoint, arch=arch), trained(arch, **SETTINGS))


def test_tokens_of_earlier_processes_count(tmp_path):
    _, data = small_training(**SETTINGS)
    tokens = [data.encoded["train"].batch(data.batches.index(step)).tokens for step in range(6)]
    checkpoint = interrupted(tmp_path, TrainingProgress(lambda _: None))
    assert load_checkpoint(checkpoint)["callbacks"]["progress"]["tokens"] == sum(tokens[:4])
    bar = TrainingProgress(lambda _: None)
    resumed(checkpoint, bar)
    assert bar.state_dict()["tokens"] == sum(tokens)


# From which checkpoint training continues


def save(path, name, step, run=RUN, best=1.0):
    state = {"run": run, "best": best}
    weights = {"model.weight": torch.full((50,), float(step))}
    save_checkpoint({"state_dict": weights, "global_step": step, "callbacks": {STATE_KEY: state}}, path / name)


def damage(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def continued(path):
    """The step of the checkpoint, 0 without one, and the lines that were reported."""
    with redirect_stderr(io.StringIO()) as err:
        checkpoint = resumable_checkpoint(path, RUN)
    return checkpoint["global_step"] if checkpoint else 0, err.getvalue().splitlines()


@pytest.mark.parametrize(("damaged", "step"), [((), 30), (("last",), 20), (("last", "previous"), 0)])
def test_training_continues_from_the_newest_checkpoint_that_is_sound(tmp_path, damaged, step):
    assert continued(tmp_path) == (0, []), "a run that never had a checkpoint needs none"
    save(tmp_path, "last.ckpt", 30)
    save(tmp_path, "previous.ckpt", 20)
    for name in damaged:
        damage(tmp_path / f"{name}.ckpt")
    lines = [f"{tmp_path / name}.ckpt is damaged and is not used (kept as {name}.ckpt.damaged)" for name in damaged]
    assert continued(tmp_path) == (step, lines)
    assert all((tmp_path / f"{name}.ckpt.damaged").exists() for name in damaged)
    assert continued(tmp_path) == (step, []), "also in a later attempt"


def test_a_compressed_checkpoint_is_not_unpacked(tmp_path, monkeypatch):
    def compressed(checkpoint, file):
        plain = io.BytesIO()
        save_uncompressed(checkpoint, plain)
        with ZipFile(plain) as source, ZipFile(file, "w", ZIP_DEFLATED) as target:
            for member in source.infolist():
                target.writestr(member.filename, source.read(member))

    save_uncompressed = torch.save
    monkeypatch.setattr(torch, "save", compressed)
    save(tmp_path, "last.ckpt", 30)
    with pytest.raises(UserError, match="it is compressed"):
        continued(tmp_path)


# Which checkpoints are written, and what the result records of training


def test_the_best_checkpoint_is_the_one_of_lowest_validation_loss(monkeypatch):
    losses = iter([3.0, 1.0, 2.0, 1.0])
    monkeypatch.setattr(Seq2Seq, "on_validation_epoch_end", lambda self: self.log("validation_loss", next(losses)))
    assert tfstudy(*command("lstm", "--set", "eval.checkpoint=best")) == 0
    best, last = (load_checkpoint(folder() / "checkpoints" / name) for name in ("best.ckpt", "last.ckpt"))
    assert (best["global_step"], last["global_step"]) == (20, 40)
    result = read_result(folder())
    assert (result.checkpoint, result.step) == ("best", 20)


def test_the_result_records_tokens_parameters_and_operations_of_training():
    assert tfstudy(*command()) == 0
    result = read_result(folder())
    assert (result.checkpoint, result.step) == ("last", 40)
    words = overrides(word for word in command() if "=" in word)
    prepared = prepare.prepare(resolve({"task": "reverse", "arch": "lstm"} | words))
    data = training_data(prepared)
    tokens = sum(data.encoded["train"].batch(data.batches.index(step)).tokens for step in range(40))
    assert result.train_tokens == tokens
    assert result.parameters == sum(p.numel() for p in prepared.model.parameters())
    assert result.train_flops_estimate == 6 * result.parameters * tokens
    assert result.train_examples == len(data.encoded["train"])
