"""Which checkpoints are written and used, and what the result records about training."""

import torch

from tests.commands import tfstudy
from tests.interrupted_runs import command, folder
from tfstudy.config.resolve import overrides, resolve
from tfstudy.experiment import prepare
from tfstudy.experiment.train import training_data
from tfstudy.runs.reader import read_result
from tfstudy.training.module import Seq2Seq


def test_the_best_checkpoint_is_the_one_of_lowest_validation_loss(monkeypatch):
    losses = iter([3.0, 1.0, 2.0, 1.0])

    def ended(self):
        loss = next(losses)
        self.validation_loss.reset()
        self.validation_accuracy.reset()
        self.log_dict({"validation_loss": loss, "validation_accuracy": 0.0}, logger=False)

    monkeypatch.setattr(Seq2Seq, "on_validation_epoch_end", ended)
    assert tfstudy(*command("lstm", "--set", "eval.checkpoint=best")) == 0
    steps = {
        name: torch.load(folder() / "checkpoints" / name, weights_only=True)["global_step"]
        for name in ("best.ckpt", "last.ckpt")
    }
    assert steps == {"best.ckpt": 20, "last.ckpt": 40}
    result = read_result(folder())
    assert (result.checkpoint, result.step) == ("best", 20)


def test_the_last_checkpoint_is_reported_by_default():
    assert tfstudy(*command("lstm", "--set", "train.steps=37")) == 0
    result = read_result(folder())
    assert (result.checkpoint, result.step) == ("last", 37)


def test_the_result_records_tokens_parameters_and_operations_of_training():
    assert tfstudy(*command()) == 0
    result = read_result(folder())
    words = overrides(word for word in command() if "=" in word)
    prepared = prepare.prepare(resolve({"task": "reverse", "arch": "lstm"} | words))
    data = training_data(prepared)
    tokens = sum(data.encoded["train"].batch(data.batches.index(step)).tokens for step in range(40))
    assert result.train_tokens == tokens
    assert result.parameters == sum(p.numel() for p in prepared.model.parameters())
    assert result.train_flops_estimate == 6 * result.parameters * tokens
    assert result.train_examples == len(data.encoded["train"])
