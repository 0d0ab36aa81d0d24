"""Graphed steps train as eager ones do. Here a replay computes the work again; `tests/gpu` has real graphs."""

import pytest
import torch
from torch.testing import assert_close

from tests.conftest import VARIANTS
from tests.training.replayed import NoWaiting, Repeated, ReplayedExecution, graphed
from tests.training.small_training import ARCHITECTURES, same, small_training, trained
from tests.training.test_resuming import Interrupt, InterruptionError
from tfstudy import models
from tfstudy.config.schema import TrainConfig
from tfstudy.data.batching import ResidentRows, Shape
from tfstudy.data.encoding import PaddedRows
from tfstudy.training.callbacks import Checkpoints
from tfstudy.training.graphs import Execution, GraphedGradients
from tfstudy.training.loss import TrainingLoss

# Some gradients are 0 but for rounding, such as those of key biases; a small epsilon would make steps of them.
LONG = {"steps": 50, "validation_interval": 50, "log_interval": 50, "micro_batches": 1, "adam_epsilon": 1e-3}
LONG |= {"batching": "length"}
SHORT = LONG | {"steps": 20}
ROWS = torch.arange(3, 11)
QUICK = ("", "dilated", "fire", "contextual", "randomised", "share_layers", "digits")
SLOW = [name for name in VARIANTS if name.partition("-")[2] not in QUICK]


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_replayed_steps_train_as_eager_steps_do(arch):
    execution = ReplayedExecution(graphs=Repeated(watch=True))
    one, other = trained(arch, **LONG), graphed(arch, execution=execution, **LONG)
    assert same(one, other, atol=2e-4)
    assert execution.recorded == ["graphed"]
    assert execution.given.captures <= 4 < 30 < execution.given.replays


@pytest.mark.parametrize(
    "settings",
    [
        {"optimizer": "sgd", "learning_rate": 0.1},
        {"loss_reduction": "sum", "label_smoothing": 0.1, "gradient_clip_norm": 0},
        {"precision": "bf16-mixed"},
        {"accumulate_grad_batches": 2},
    ],
)
def test_every_way_of_training_that_is_graphed_equals_the_eager_one(settings):
    tolerance = 2e-2 if "precision" in settings else 2e-4
    assert same(trained(**SHORT | settings), graphed(**SHORT | settings), atol=tolerance)


def test_padding_a_batch_changes_neither_its_loss_nor_its_gradients():
    module, data = small_training("transformer")
    rows = ResidentRows.of(data.encoded["train"], torch.device("cpu"))
    gradients = GraphedGradients(module.compute_gradients.loss_of, rows, [], Repeated(), print)

    def computed(shape):
        gradients.write(ROWS, shape)
        gradients.compute(shape)
        return float(gradients.loss), [gradient.clone() for gradient in gradients.gradients]

    needed = rows.shape(ROWS)
    loss, plain = computed(needed)
    padded_loss, padded = computed(Shape(needed.rows + 5, needed.source + 3, needed.target + 2))
    assert padded_loss == pytest.approx(loss, rel=1e-5)
    for one, other in zip(plain, padded, strict=True):
        assert_close(one, other, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize(("first", "second"), [(trained, graphed), (graphed, trained)], ids=["eager", "graphed"])
def test_a_run_resumes_with_the_other_way_of_computing_steps(first, second, tmp_path):
    settings = {"steps": 6, "validation_interval": 2, "micro_batches": 1}
    with pytest.raises(InterruptionError):
        first(callbacks=[Checkpoints(tmp_path, "0"), Interrupt()], **settings)
    module = second(callbacks=[Checkpoints(tmp_path, "0")], resume=tmp_path / "last.ckpt", **settings)
    assert module.global_step == 6
    assert same(module, trained(**settings), atol=2e-4)


def test_a_failed_capture_is_reported_once_and_training_goes_on_without_graphs():
    execution = ReplayedExecution(graphs=Repeated(refuse=True))
    assert same(graphed(execution=execution, **SHORT), trained(**SHORT), atol=2e-4)
    assert len(execution.reported) == 1
    assert execution.recorded[0] == "graphed"
    assert "not permitted" in execution.recorded[1]


@pytest.mark.parametrize(
    ("requested", "settings", "fact"),
    [
        ("eager", {}, ""),
        ("graphed", {}, "the device is cpu"),
        ("graphed", {"teacher_forcing": 0.5}, "train.teacher_forcing"),
        ("graphed", {"gradient_checkpointing": True}, "train.gradient_checkpointing"),
        ("graphed", {"micro_batches": 2}, "train.micro_batches"),
    ],
)
def test_where_no_graph_is_possible_steps_are_eager_with_a_line_only_if_graphs_were_requested(
    requested, settings, fact
):
    recorded, reported = [], []
    module = trained(execution=Execution(requested, recorded.append, reported.append), **settings)
    assert [text.partition(",")[0] for text in recorded] == ["eager"]
    assert [fact in line for line in reported] == [True] * bool(fact)
    assert same(module, trained(**settings))


@pytest.mark.parametrize("name", [pytest.param(x, marks=pytest.mark.slow) if x in SLOW else x for x in VARIANTS])
def test_a_loss_can_be_computed_where_no_value_can_be_read(name, monkeypatch):
    """On the device `meta`, which takes the ways of a GPU, tensors have no values, and none of the CPU may mix in."""
    arch, config = VARIANTS[name]
    cls = models.find(arch)
    model = cls(cls.Config(**config | {"dropout": 0.2}), 12, 12).to("meta")
    source, target = (torch.zeros(4, n, dtype=torch.long, device="meta") for n in (7, 5))
    monkeypatch.setattr(torch, "tensor", None)  # would copy a value of the CPU to the device
    with NoWaiting():
        loss = TrainingLoss(model, TrainConfig())([PaddedRows(source, target)])
        gradients = torch.autograd.grad(loss, list(model.parameters()), materialize_grads=True)
    assert {gradient.device.type for gradient in gradients} == {"meta"}
