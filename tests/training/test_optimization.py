"""The learning-rate schedule, gradient clipping and weight decay."""

import pytest
import torch
from lightning.pytorch import Callback

from tests.training.small_training import small_training, trained
from tfstudy.config.schema import TrainConfig
from tfstudy.training.step import learning_rate_factor


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
        ("constant", 10, 5, [0.1, 0.2, 0.3, 0.4, 0.5]),
        ("inverse_sqrt", 10, 5, [0.1, 0.2, 0.3, 0.4, 0.5]),
        ("noam", 4, 16, [0.0313, 0.0625, 0.0938, 0.125, 0.1118, 0.1021]),  # of a model of width 16
        ("noam", 0, 16, [0.25, 0.1768, 0.1443]),
        ("noam", 10, 5, [0.0079, 0.0158, 0.0237, 0.0316, 0.0395]),
    ],
)
def test_the_schedule_is_as_computed_by_hand(schedule, warmup_steps, steps, expected):
    config = TrainConfig(schedule=schedule, warmup_steps=warmup_steps, steps=steps)
    assert [learning_rate_factor(config, step, dim=16) for step in range(len(expected))] == pytest.approx(
        expected, abs=1e-4
    )


def test_noam_is_the_formula_of_vaswani_et_al():
    config = TrainConfig(schedule="noam", warmup_steps=4000, steps=100_000)
    for step in (1, 17, 3999, 4000, 4001, 90_000):
        expected = 512**-0.5 * min(step**-0.5, step * 4000**-1.5)
        assert learning_rate_factor(config, step - 1, 512) == pytest.approx(expected, rel=1e-12)
    assert learning_rate_factor(config, 3999, 512) == pytest.approx(6.99e-4, rel=1e-3)  # the peak of the base model


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
    norm = float(module.runner.gradient_norm)
    assert norm > 0.011
    assert norms == pytest.approx([norm], rel=1e-5)
    clipped = torch.stack([p.grad.norm() for p in module.parameters()])
    assert clipped.norm().item() == pytest.approx(0.01, rel=1e-3)
    unclipped = trained(steps=1, gradient_clip_norm=0)
    assert float(unclipped.runner.gradient_norm) == pytest.approx(norm, rel=1e-5)


def test_the_epsilon_of_adam_is_that_of_the_config():
    for settings, epsilon in (({}, 1e-9), ({"adam_epsilon": 1e-8}, 1e-8)):
        optimizer = small_training(**settings)[0].configure_optimizers()["optimizer"]
        assert {group["eps"] for group in optimizer.param_groups} == {epsilon}


def test_weight_decay_spares_biases_and_gains():
    module, _ = small_training("transformer", weight_decay=0.3)
    optimizer = module.configure_optimizers()["optimizer"]
    decayed, spared = optimizer.param_groups
    assert (decayed["weight_decay"], spared["weight_decay"]) == (0.3, 0.0)
    assert all(p.ndim >= 2 for p in decayed["params"])
    assert all(p.ndim < 2 for p in spared["params"])
    ids = {id(p) for group in (decayed, spared) for p in group["params"]}
    assert ids == {id(p) for p in module.parameters()}
    assert len(ids) == len(decayed["params"]) + len(spared["params"])


def test_no_gain_of_a_weight_normed_layer_is_decayed():
    module, _ = small_training("cnn", weight_decay=0.3)
    decayed = {id(p) for p in module.configure_optimizers()["optimizer"].param_groups[0]["params"]}
    gains = [name for name, p in module.model.named_parameters() if p.ndim > 1 and p.numel() == p.shape[0]]
    assert gains
    assert not [name for name in gains if id(dict(module.model.named_parameters())[name]) in decayed]
