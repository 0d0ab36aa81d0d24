"""A loss that is not finite ends a run, and the run is a result."""

import math

import pytest

from tests.commands import tfstudy
from tests.interrupted_runs import command, folder
from tests.training.small_training import trained
from tfstudy.runs.reader import read_result
from tfstudy.runs.writer import RunFolder
from tfstudy.training import loss as training
from tfstudy.training.module import DivergenceError


def test_a_run_that_diverges_is_a_result_without_metrics(capsys):
    words = ["--set", "train.learning_rate=1e6", "--set", "train.optimizer=sgd", "--set", "train.gradient_clip_norm=0"]
    assert tfstudy(*command("transformer", *words, "--set", "model.norm=post")) == 1
    result = read_result(folder())
    assert result.status == "diverged"
    assert "the training loss is nan at step" in result.reason or "the training loss is inf" in result.reason
    assert result.splits == {}
    assert not (folder() / "predictions").exists()
    assert RunFolder(folder(), "").test_reads() == {}
    assert "diverged (the training loss is" in capsys.readouterr().out
    assert tfstudy(*command("transformer", *words, "--set", "model.norm=post")) == 1
    assert "already finished" in capsys.readouterr().err


def test_a_run_that_diverged_after_a_checkpoint_is_not_used_or_tested(monkeypatch, capsys):
    real = training.summed_loss
    steps = []

    def late(logits, gold, smoothing=0.0):
        steps.append(logits.requires_grad)
        return real(logits, gold, smoothing) * (math.nan if sum(steps) > 12 else 1)

    monkeypatch.setattr(training, "summed_loss", late)
    assert tfstudy(*command("lstm", "--set", "train.micro_batches=1")) == 1
    assert read_result(folder()).status == "diverged"
    assert (folder() / "checkpoints/last.ckpt").exists()
    for words in (["predict", folder(), "a"], ["evaluate", folder()]):
        capsys.readouterr()
        assert tfstudy(*words) == 2
        assert "diverged" in capsys.readouterr().err
    assert RunFolder(folder(), "").test_reads() == {}


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_loss_that_is_no_number_raises_when_it_is_read(value, monkeypatch):
    monkeypatch.setattr(training, "summed_loss", lambda logits, *_: logits.sum() * value)
    with pytest.raises(DivergenceError, match=r"the training loss is (?:nan|inf|-inf) at step 2"):
        trained(log_interval=2)


def test_a_divergence_after_the_last_logged_step_is_a_divergence_too(monkeypatch):
    real, calls = training.summed_loss, []

    def late(logits, gold, smoothing=0.0):
        calls.append(1)
        return real(logits, gold, smoothing) * (math.nan if logits.requires_grad and len(calls) > 40 else 1)

    monkeypatch.setattr(training, "summed_loss", late)
    more = ["train.steps=43", "train.micro_batches=1", "train.validation_interval=50"]
    assert tfstudy(*command("lstm", *(word for text in more for word in ("--set", text)))) == 1
    assert len(calls) >= 43
    assert read_result(folder()).status == "diverged"
