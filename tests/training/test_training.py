"""The schedule, the loss, the gradient and the checkpoints are what their words say."""

import math
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from lightning.pytorch import Callback, Trainer
from torch.nn.functional import cross_entropy, log_softmax
from torch.testing import assert_close

import tasks
from tests.commands import tfstudy
from tests.example_task import TASK, added
from tests.interrupted_runs import command, folder
from tfstudy import models
from tfstudy.config.presets import preset
from tfstudy.config.resolve import merge, overrides, resolve
from tfstudy.config.schema import TrainConfig
from tfstudy.data.module import TaskData
from tfstudy.data.vocabulary import BOS, PAD
from tfstudy.evaluation.decoding import greedy
from tfstudy.experiment import prepare
from tfstudy.runs.reader import find_runs, read_result
from tfstudy.runs.writer import RunFolder
from tfstudy.training import module as training
from tfstudy.training.checkpoints import model_weights
from tfstudy.training.fit import fit
from tfstudy.training.module import DivergenceError, Seq2Seq, block, labels, own_words, summed_loss
from tfstudy.training.optimization import rate

SMALL = {"transformer": {"feedforward": 16}, "lstm": {"hidden": 16}, "cnn": {"channels": 16, "layers": 2}}


@pytest.fixture(autouse=True)
def _reverse(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with added(tasks, "reverse", TASK, tmp_path / "more"):
        yield


def parts(arch: str = "lstm", dropout: float = 0.0, seed: int = 0, **train) -> tuple[Seq2Seq, TaskData]:
    """A module and its data."""
    config = TrainConfig(
        **{"steps": 4, "batch_size": 16, "log_interval": 1, "validation_interval": 2, "warmup_steps": 0} | train
    )
    task = tasks.find("reverse")(tasks.find("reverse").Config(split="short"))
    data = TaskData(task, config.batch_size, config.batch_tokens, config.batching, seed, config.micro_batches)
    torch.manual_seed(seed)
    cls = models.find(arch)
    model = cls(cls.Config(dim=16, dropout=dropout, **SMALL[arch]), len(data.source_vocab), len(data.target_vocab))
    return Seq2Seq(model, len(data.target_vocab), config, seed), data


def trained(*args, callbacks=(), **settings) -> Seq2Seq:
    module, data = parts(*args, **settings)
    fit(module, data, accelerator="cpu", callbacks=callbacks)
    return module


def same(one: torch.nn.Module, other: torch.nn.Module, **close) -> bool:
    pairs = list(zip(one.parameters(), other.parameters(), strict=True))
    return all(torch.allclose(a, b, **close) if close else torch.equal(a, b) for a, b in pairs)


# The schedule


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
        ("cosine", 5, 5, [0.2, 0.4, 0.6, 0.8, 1.0]),
    ],
)
def test_the_schedule_is_as_computed_by_hand(schedule, warmup_steps, steps, expected):
    config = TrainConfig(schedule=schedule, warmup_steps=warmup_steps, steps=steps)
    assert [rate(config, step) for step in range(len(expected))] == pytest.approx(expected, abs=1e-4)


def test_the_optimiser_follows_the_schedule_at_every_step():
    rates = []

    class Watch(Callback):
        def on_before_optimizer_step(self, trainer, pl_module, optimizer):
            rates.append(optimizer.param_groups[0]["lr"])

    module = trained(steps=5, warmup_steps=2, learning_rate=0.1, callbacks=[Watch()])
    assert rates == pytest.approx([0.1 * rate(module.config, step) for step in range(5)])
    assert rates[:2] == pytest.approx([0.05, 0.1])


# The loss and its gradient


def test_accumulating_two_batches_equals_one_batch_of_both():
    """Equal weight for each batch: with as many labels in both, the mean of both gradients is the whole's."""
    size = 8
    settings = {
        "optimizer": "sgd",
        "learning_rate": 0.1,
        "gradient_clip_norm": 0,
        "weight_decay": 0,
        "schedule": "constant",
    }
    one, data = parts(batch_size=size, accumulate_grad_batches=2, steps=1, **settings)
    fit(one, data, accelerator="cpu")
    other, _ = parts(batch_size=size)
    other.model.load_state_dict(parts(batch_size=size)[0].model.state_dict())
    loss = torch.zeros(())
    for number in range(2):
        batch = data.encoded["train"].batch(data.batches.index(number))
        [[rows]] = batch.parts
        logits = other.model(rows.source, rows.source != PAD, rows.target[:, :-1]).flatten(0, 1)
        loss = loss + summed_loss(logits, rows.target[:, 1:].flatten()) / batch.tokens / 2
    loss.backward()
    with torch.no_grad():
        for parameter in other.model.parameters():
            parameter -= 0.1 * (1 + 0.9) * parameter.grad  # the first step of Nesterov's momentum
    assert same(one.model, other.model, atol=1e-5)


@pytest.mark.parametrize("count", [(2, 1), (1, 4), (2, 3), (5, 2)], ids=str)
@pytest.mark.parametrize("arch", SMALL)
def test_the_loss_and_gradient_of_a_batch_do_not_depend_on_its_parts_and_blocks(arch, count, monkeypatch):
    monkeypatch.setattr("tfstudy.data.ragged.OVERHEAD", 0)
    module, data = parts(arch)
    encoded, index = data.encoded["train"], torch.arange(40)

    def computed(batch):
        module.zero_grad()
        losses = [summed_loss(module.model.forward_blocks([block(r) for r in p]), labels(p)) for p in batch.parts]
        loss = torch.stack(losses).sum() / batch.tokens
        loss.backward()
        return loss.detach(), [p.grad.clone() for p in module.parameters() if p.grad is not None]

    whole, cut = encoded.batch(index), encoded.batch(index, *count)
    assert whole.tokens == cut.tokens == float((encoded.target[index][:, 1:] != PAD).sum())
    assert sum(len(rows.source) for part in cut.parts for rows in part) == 40
    assert len(cut.parts) == count[0]
    assert (max(map(len, cut.parts)) > 1) == (count[1] > 1)
    (loss, gradient), (loss_cut, gradient_cut) = computed(whole), computed(cut)
    assert_close(loss, loss_cut, atol=1e-5, rtol=0)
    for a, b in zip(gradient, gradient_cut, strict=True):
        assert_close(a, b, atol=1e-5, rtol=0)


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.5])
def test_label_smoothing_spreads_probability_over_all_tokens(smoothing):
    torch.manual_seed(0)
    logits, target = torch.randn(2, 4, 7), torch.tensor([[BOS, 4, 5, 2, PAD], [BOS, 6, 2, PAD, PAD]])
    labels = target[:, 1:]
    spread = torch.full((2, 4, 7), smoothing / 7).scatter_add(
        2, labels[..., None], torch.full((2, 4, 1), 1 - smoothing)
    )
    expected = -(spread * log_softmax(logits, -1)).sum(-1)[labels != PAD].sum()
    assert_close(summed_loss(logits.flatten(0, 1), labels.flatten(), smoothing), expected)
    plain = cross_entropy(logits[labels != PAD], labels[labels != PAD], reduction="sum", label_smoothing=smoothing)
    assert_close(summed_loss(logits.flatten(0, 1), labels.flatten(), smoothing), plain)


def test_the_gradient_is_clipped_as_a_whole_and_its_norm_before_that_is_kept():
    norms = []

    class Watch(Callback):
        def on_before_optimizer_step(self, trainer, pl_module, optimizer):
            norms.append(torch.stack([p.grad.norm() for p in pl_module.parameters()]).norm().item())

    module = trained(steps=1, gradient_clip_norm=0.01, callbacks=[Watch()])
    clipped = norms[0] if norms[0] < 0.011 else None
    norm = float(module._gradient_norm)
    assert norm > 0.011
    after = torch.stack([p.grad.norm() for p in module.parameters() if p.grad is not None])
    assert clipped is None or clipped == pytest.approx(0.01, rel=1e-3)
    assert len(after) == 0 or after.norm().item() == pytest.approx(0.01, rel=1e-3)
    unclipped = trained(steps=1, gradient_clip_norm=0)
    assert float(unclipped._gradient_norm) == pytest.approx(norm, rel=1e-5)


@pytest.mark.parametrize("arch", SMALL)
def test_own_words_are_what_greedy_decoding_says(arch):
    module, data = parts(arch)
    model = module.model.eval()
    source = data.encoded["train"].rows(torch.arange(20)).source
    length = 6
    words = own_words(model, source, source != PAD, length)
    assert words.shape == (20, length)
    assert (words[:, 0] == BOS).all()
    said = greedy(model, source, source != PAD, 0, lengths=torch.full((20,), length - 1))
    for mine, theirs in zip(words[:, 1:].tolist(), said, strict=True):
        upto = mine.index(2) if 2 in mine else len(mine)  # oracle decoding never says EOS: compare up to one
        assert mine[:upto] == theirs[:upto]


def test_teacher_forcing_of_zero_feeds_the_models_own_words(monkeypatch):
    fed = []
    monkeypatch.setattr(training, "own_words", lambda *args: fed.append(1) or own_words(*args))
    trained(teacher_forcing=0.0, micro_batches=1)
    assert len(fed) == 4
    fed.clear()
    trained(teacher_forcing=1.0, micro_batches=1)
    assert not fed
    trained(teacher_forcing=0.5, micro_batches=1, steps=20)
    assert 3 < len(fed) < 17


def test_weight_decay_spares_biases_and_gains():
    module, _ = parts("transformer", weight_decay=0.3)
    optimizer = module.configure_optimizers()["optimizer"]
    decayed, spared = optimizer.param_groups
    assert (decayed["weight_decay"], spared["weight_decay"]) == (0.3, 0.0)
    assert all(p.ndim >= 2 for p in decayed["params"])
    assert all(p.ndim < 2 for p in spared["params"])
    ids = {id(p) for group in (decayed, spared) for p in group["params"]}
    assert ids == {id(p) for p in module.parameters()}
    assert len(ids) == len(decayed["params"]) + len(spared["params"])


def test_no_gain_of_a_weight_normed_layer_is_decayed():
    module, _ = parts("cnn", weight_decay=0.3)
    decayed = {id(p) for p in module.configure_optimizers()["optimizer"].param_groups[0]["params"]}
    gains = [name for name, p in module.model.named_parameters() if p.ndim > 1 and p.numel() == p.shape[0]]
    assert not [name for name in gains if id(dict(module.model.named_parameters())[name]) in decayed]


# Seeds, precision, compilation


@pytest.mark.parametrize("arch", SMALL)
def test_the_same_seed_gives_the_same_weights_and_another_seed_others(arch):
    one, again, other = (trained(arch, dropout=0.3, seed=seed) for seed in (0, 0, 1))
    assert same(one, again)
    assert not same(one, other)
    assert not same(one, parts(arch, dropout=0.3)[0]), "training changes weights"


def test_the_state_of_the_global_generator_decides_nothing():
    one = trained(dropout=0.3)
    module, data = parts(dropout=0.3)
    torch.manual_seed(99)
    fit(module, data, accelerator="cpu")
    assert same(one, module)


@pytest.fixture
def threads():
    """Sets the number of torch's threads; as before afterwards."""
    before = torch.get_num_threads()
    yield torch.set_num_threads
    torch.set_num_threads(before)


@pytest.mark.parametrize("arch", SMALL)
def test_the_number_of_threads_changes_no_weight(arch, threads):
    threads(1)
    one = trained(arch, dropout=0.3, micro_batches=3)
    threads(3)
    assert same(one, trained(arch, dropout=0.3, micro_batches=3))
    assert torch.get_num_threads() == 3, "training leaves the number of threads as it was"


def test_a_training_that_fails_leaves_the_number_of_threads_as_it_was(threads, monkeypatch):
    monkeypatch.setattr(training, "summed_loss", lambda logits, *_: logits.sum() * math.nan)
    threads(3)
    with pytest.raises(DivergenceError):
        trained("transformer", micro_batches=3)
    assert torch.get_num_threads() == 3


def test_a_module_holds_its_model_once():
    module, _ = parts()
    assert {name.split(".")[0] for name in module.state_dict()} == {"model"}


def test_the_module_trains_in_a_plain_trainer():
    module, data = parts()
    trainer = Trainer(
        max_steps=3, accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False,
        enable_model_summary=False, num_sanity_val_steps=0, log_every_n_steps=1,
    )  # fmt: skip
    trainer.fit(module, data)
    assert trainer.global_step == 3
    assert not same(module, parts()[0])


@pytest.mark.parametrize("arch", SMALL)
def test_mixed_precision_runs(arch):
    assert tfstudy(*command(arch, "--set", "train.precision=bf16-mixed", "--set", "train.steps=10")) == 0
    assert read_result(folder())["status"] == "finished"


# Divergence


def test_a_run_that_diverges_is_a_result_without_metrics(capsys):
    words = ["--set", "train.learning_rate=1e6", "--set", "train.optimizer=sgd", "--set", "train.gradient_clip_norm=0"]
    assert tfstudy(*command("transformer", *words, "--set", "model.norm=post")) == 1
    result = read_result(folder())
    assert result["status"] == "diverged"
    assert "the training loss is nan at step" in result["reason"] or "the training loss is inf" in result["reason"]
    assert "splits" not in result
    assert not (folder() / "predictions").exists()
    assert RunFolder(folder(), "").test_reads() == {}
    assert "diverged (the training loss is" in capsys.readouterr().out
    assert tfstudy(*command("transformer", *words, "--set", "model.norm=post")) == 1
    assert "already done" in capsys.readouterr().out


def test_a_run_that_diverged_after_a_checkpoint_is_not_used_or_tested(monkeypatch, capsys):
    real = training.summed_loss
    steps = []

    def late(logits, gold, smoothing=0.0):
        steps.append(logits.requires_grad)
        return real(logits, gold, smoothing) * (math.nan if sum(steps) > 12 else 1)

    monkeypatch.setattr(training, "summed_loss", late)
    assert tfstudy(*command("lstm", "--set", "train.micro_batches=1")) == 1
    assert read_result(folder())["status"] == "diverged"
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
    assert read_result(folder())["status"] == "diverged"


# Checkpoints


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
    assert (result["checkpoint"], result["step"]) == ("best", 20)


def test_the_last_checkpoint_is_reported_by_default():
    assert tfstudy(*command("lstm", "--set", "train.steps=37")) == 0
    result = read_result(folder())
    assert (result["checkpoint"], result["step"]) == ("last", 37)


def test_what_the_record_says_of_training_is_what_was_done():
    assert tfstudy(*command()) == 0
    result = read_result(folder())
    words = overrides(word for word in command() if "=" in word)
    prepared = prepare.prepare(resolve({"task": "reverse", "arch": "lstm"} | words))
    data = prepared.data
    tokens = sum(data.encoded["train"].batch(data.batches.index(step)).tokens for step in range(40))
    assert result["train_tokens"] == tokens
    assert result["parameters"] == sum(p.numel() for p in prepared.model.parameters())
    assert result["train_flops_estimate"] == 6 * result["parameters"] * tokens
    assert result["train_examples"] == len(data.encoded["train"])


def test_the_validation_loss_is_that_of_all_labels():
    """Every label counts the same, in whatever batch or part it stands."""
    words = ["run", "scan", *command("lstm", "--set", "train.steps=10")[2:]]
    assert tfstudy(*words) == 0
    assignments = overrides([word for word in words if "=" in word])
    prepared = prepare.prepare(resolve({"task": "scan", "arch": "lstm"} | merge(preset("scan", "lstm"), assignments)))
    checkpoint = torch.load(folder() / "checkpoints/last.ckpt", weights_only=True)
    prepared.model.load_state_dict(model_weights(checkpoint))
    encoded = prepared.data.encoded["validation"]
    rows = encoded.rows(torch.arange(len(encoded)))
    with torch.no_grad():
        logits = prepared.model.eval()(rows.source, rows.source != PAD, rows.target[:, :-1])
    gold = rows.target[:, 1:]
    loss = float(cross_entropy(logits[gold != PAD], gold[gold != PAD]))
    accuracy = float((logits.argmax(-1) == gold)[gold != PAD].float().mean())
    kept = metrics(folder())
    assert kept["10", "validation_loss"] == pytest.approx(loss, abs=1e-5)
    assert kept["10", "validation_accuracy"] == pytest.approx(accuracy, abs=1e-6)


# Processes of their own: several devices, compilation


def shell(results: str, *more: str, arch: str = "lstm") -> Path:
    """The folder of a run that a process of its own made, without dropout."""
    words = ["run", "scan", *command(arch)[2:], "--set", "model.dropout=0", "--set", "train.steps=20", *more]
    done = subprocess.run(
        [sys.executable, "-m", "tfstudy", *words, "--results", results],
        env=os.environ | {"OMP_NUM_THREADS": "1"}, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    [path] = find_runs(Path(results))
    return path


def metrics(path: Path) -> dict[tuple[str, str], float]:
    rows = [line.split(",") for line in (path / "metrics.csv").read_text().splitlines()[1:]]
    out = {(step, name): float(value) for step, name, value in rows}
    assert len(out) == len(rows), "a row was written twice"
    return out


@pytest.mark.slow
def test_two_devices_train_as_one_does(monkeypatch):
    one = shell("one")
    task = {"NTASKS": "1", "JOB_ID": "7", "JOB_NAME": "grid", "PROCID": "0", "LOCALID": "0", "NODELIST": "n1"}
    for name, value in task.items():  # as in a job of Slurm: its single task must not pass for the single device
        monkeypatch.setenv(f"SLURM_{name}", value)
    two = shell("two", "--devices", "2")
    assert one.name == two.name, "devices are no part of the identity"
    a, b = metrics(one), metrics(two)
    assert a.keys() == b.keys()
    for key, value in a.items():
        assert b[key] == pytest.approx(value, abs=1e-4, rel=1e-4), key
    x, y = read_result(one), read_result(two)
    assert x["train_tokens"] == y["train_tokens"]
    assert {name: split["n"] for name, split in x["splits"].items()} == {
        name: split["n"] for name, split in y["splits"].items()
    }


@pytest.mark.slow
@pytest.mark.parametrize("arch", SMALL)
def test_a_compiled_model_trains_as_an_eager_one_does(arch):
    if not shutil.which("gcc") and not shutil.which("g++"):
        pytest.skip("torch.compile needs a compiler")
    eager = metrics(shell("eager", "--set", "train.micro_batches=1", arch=arch))
    compiled = metrics(shell("compiled", "--set", "train.micro_batches=1", "--set", "train.compile=true", arch=arch))
    assert eager.keys() == compiled.keys()
    for key, value in eager.items():
        assert compiled[key] == pytest.approx(value, abs=1e-3, rel=1e-3), key
