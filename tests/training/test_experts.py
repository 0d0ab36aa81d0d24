"""The loss that balances the load of experts joins the training loss, whoever computes the micro-batches."""

import pytest
import torch
from torch.testing import assert_close

from tests.training.small_training import same, small_training, trained
from tfstudy.models.parts.feedforward import recorded_routing
from tfstudy.models.transformer import Transformer


@pytest.fixture
def experts(monkeypatch):
    """`experts(weight)`: small Transformers have three experts and this weight of the balancing loss."""

    def set_weight(weight):
        settings = {"experts": 3, "experts_per_token": 1, "expert_balance": weight}
        monkeypatch.setattr(Transformer, "small", {**Transformer.small, **settings})

    return set_weight


def test_the_balancing_loss_is_part_of_the_training_loss(experts, monkeypatch):
    experts(100.0)
    module, data = small_training("transformer")
    data.setup("fit")
    batch = next(iter(data.train_dataloader()))
    with recorded_routing() as routings:
        plain = module._loss(batch.micro_batches[0], teacher_forcing=True)
    assert routings == [], "training records for itself"
    monkeypatch.setattr(Transformer, "small", {**Transformer.small, "expert_balance": 0.0})
    without = small_training("transformer")[0]
    without.load_state_dict(module.state_dict())
    positions = sum(rows.source.numel() + rows.target[:, 1:].numel() for rows in batch.micro_batches[0])
    added = (plain - without._loss(batch.micro_batches[0], teacher_forcing=True)).item()
    assert 0.99 < added / (100.0 * 2 * positions) < 3  # 2 layers; 1 for an even load, 3 if one expert has all


def test_neither_threads_nor_gradient_checkpointing_change_a_weight(experts):
    experts(1.0)
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        one = trained("transformer", dropout=0.3, micro_batches=3)
        torch.set_num_threads(3)
        assert same(one, trained("transformer", dropout=0.3, micro_batches=3, gradient_checkpointing=True))
    finally:
        torch.set_num_threads(before)


def test_the_balancing_loss_pulls_towards_an_even_load(experts):
    experts(0.01)
    model = Transformer(Transformer.Config(**Transformer.small), 9, 9).eval()
    router = model.encoder.layers[0].feedforward.router
    with torch.no_grad():
        router.weight[0] += 0.2  # the first expert gets more than its share
    source = torch.randint(4, 9, (20, 10), generator=torch.Generator().manual_seed(0))
    with recorded_routing() as routings:
        model(source, source > 0, source)
    before = routings[0]
    [gradient] = torch.autograd.grad(before.loss, [router.weight])
    with torch.no_grad():
        router.weight -= 0.1 * gradient
    with recorded_routing() as routings:
        model(source, source > 0, source)
    assert routings[0].loss < before.loss
    assert_close(routings[0].load.sum(), torch.tensor(1.0))
