"""The loss that balances the load of experts joins the training loss, whoever computes the micro-batches."""

import pytest
import torch
from torch.nn.functional import pad
from torch.testing import assert_close

from tests.models.reference import CLOSE
from tests.training.small_training import same, small_training, trained
from tfstudy.data.encoding import PaddedRows
from tfstudy.data.vocabulary import BOS, EOS
from tfstudy.models.parts.feedforward import recorded_routing
from tfstudy.models.transformer import Transformer


@pytest.fixture
def experts(monkeypatch):
    """`experts(weight)`: small Transformers have three experts and this weight of the balancing loss."""

    def set_weight(weight):
        settings = {"experts": 3, "experts_per_token": 1, "expert_balance": weight}
        monkeypatch.setattr(Transformer, "small", {**Transformer.small, **settings})

    return set_weight


def gradient_and_loss(module, *groups):
    """The gradient of the routers and the loss of a micro-batch."""
    loss = module.loss_of(groups, teacher_forcing=True)
    routers = [weight for name, weight in module.named_parameters() if "router" in name]
    return torch.cat([one.flatten() for one in torch.autograd.grad(loss, routers)]), loss.item()


def test_the_balancing_loss_trains_the_routers_and_is_no_part_of_the_training_loss(experts, monkeypatch):
    experts(100.0)
    module, data = small_training("transformer")
    data.setup("fit")
    groups = next(iter(data.train_dataloader())).micro_batches[0]
    with recorded_routing() as routings:
        balanced, loss = gradient_and_loss(module, *groups)
    assert routings == [], "training records for itself"
    monkeypatch.setattr(Transformer, "small", {**Transformer.small, "expert_balance": 0.0})
    without = small_training("transformer")[0]
    without.load_state_dict(module.state_dict())
    plain, expected = gradient_and_loss(without, *groups)
    assert loss == expected
    assert balanced.norm() > 10 * plain.norm()


def test_padding_changes_neither_the_loss_nor_its_gradient(experts):
    experts(1.0)
    module, generator = small_training("transformer")[0].eval(), torch.Generator().manual_seed(0)
    rows = []
    for source, target in ((3, 6), (7, 2), (5, 4)):
        ids = torch.randint(4, 6, (1, source + target), generator=generator)
        ends = [torch.full((1, 1), special) for special in (BOS, EOS)]
        rows.append(PaddedRows(ids[:, :source], torch.cat([ends[0], ids[:, source:], ends[1]], 1)))
    padded = (
        torch.cat([pad(ids, (0, max(other.shape[1] for other in column) - ids.shape[1])) for ids in column])
        for column in zip(*rows, strict=True)
    )
    assert_close(gradient_and_loss(module, PaddedRows(*padded)), gradient_and_loss(module, *rows), **CLOSE)


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
