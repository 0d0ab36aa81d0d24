"""Attention in chunks: the same outputs and gradients, and tensors of bounded size."""

import pytest
import torch
from torch.testing import assert_close
from torch.utils._python_dispatch import TorchDispatchMode

from tests.models.reference import CLOSE
from tfstudy.data.encoding import PAD
from tfstudy.models.parts import layers
from tfstudy.models.parts.layers import in_chunks


class Largest(TorchDispatchMode):
    """The largest number of elements of any tensor of numbers that an operation returns (oneDNN's memory is bytes)."""

    def __init__(self):
        super().__init__()
        self.elements = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        out = function(*args, **kwargs or {})
        for tensor in out if isinstance(out, tuple | list) else [out]:
            if isinstance(tensor, torch.Tensor) and tensor.is_floating_point():
                self.elements = max(self.elements, tensor.numel())
        return out


def outer(x, y):
    """Sums over y of x * y, from all products, with the sizes of the chunks that compute them."""
    sizes = []

    def compute(rows, queries):
        products = x[rows, queries, None] * y[rows, None]
        sizes.append(products.numel())
        return products.tanh().sum(2)

    return compute, sizes


@pytest.mark.parametrize("bound", [1, 30, 70, 200, 599])
@pytest.mark.parametrize("gradients", [True, False])
def test_chunks_give_the_same_outputs_and_gradients_within_the_bound(monkeypatch, bound, gradients):
    x, y = torch.randn(3, 4, 5, requires_grad=True), torch.randn(3, 10, 5, requires_grad=True)
    expected = outer(x, y)[0](slice(None), slice(None))
    compute, sizes = outer(x, y)
    monkeypatch.setattr(layers, "MAX_ELEMENTS", bound)
    with torch.set_grad_enabled(gradients):
        out = in_chunks(compute, 3, 4, 50)
    assert_close(out, expected)
    assert len(sizes) > 1
    assert max(sizes) <= max(bound, 50), "a pair of a row and a query is never split"
    if gradients:
        weights = torch.randn_like(out)
        assert_close(*(torch.autograd.grad((o * weights).sum(), [x, y]) for o in (out, expected)))


def test_within_the_bound_there_is_one_chunk(monkeypatch):
    x, y = torch.randn(3, 4, 5), torch.randn(3, 10, 5)
    compute, sizes = outer(x, y)
    monkeypatch.setattr(layers, "MAX_ELEMENTS", 600)
    assert torch.equal(in_chunks(compute, 3, 4, 50), outer(x, y)[0](slice(None), slice(None)))
    assert sizes == [600]


def test_several_calls_share_the_bound(monkeypatch):
    compute, sizes = outer(torch.randn(3, 4, 5, requires_grad=True), torch.randn(3, 10, 5))
    monkeypatch.setattr(layers, "MAX_ELEMENTS", 600)
    in_chunks(compute, 3, 4, 50, calls=2).sum().backward()
    assert sizes == [600, 600], "computed again in the backward pass"


@pytest.mark.parametrize("rows", [0, 1, 2, 3])
def test_rows_of_no_queries_and_queries_of_no_rows_work(monkeypatch, rows):
    monkeypatch.setattr(layers, "MAX_ELEMENTS", 10)
    compute, _ = outer(torch.randn(rows, 0, 5), torch.randn(rows, 10, 5))
    assert in_chunks(compute, rows, 0, 50).shape == (rows, 0, 5)


def loss_and_gradients(model, source, tokens):
    torch.manual_seed(5)
    loss = model(source, source != PAD, tokens).square().mean()
    return loss, torch.autograd.grad(loss, [p for p in model.parameters() if p.requires_grad], allow_unused=True)


@pytest.mark.parametrize("bound", [40, 600])
def test_every_model_has_the_same_outputs_and_gradients_in_chunks(monkeypatch, model, source, tokens, bound):
    expected = loss_and_gradients(model, source, tokens)
    monkeypatch.setattr(layers, "MAX_ELEMENTS", bound)
    got = loss_and_gradients(model, source, tokens)
    assert_close(got[0], expected[0], **CLOSE)
    for ours, theirs in zip(got[1], expected[1], strict=True):
        assert_close(ours, theirs, **CLOSE)


@pytest.mark.parametrize("positions", ["relative", "sinusoidal"])
def test_dropout_on_weights_is_the_same_in_the_backward_pass(monkeypatch, build, source, tokens, positions):
    model = build("transformer", attention_dropout=0.4, dropout=0.0, positions=positions).double()
    monkeypatch.setattr(layers, "MAX_ELEMENTS", 40)
    weight = model.encoder.layers[0].attention.query.weight
    _, gradients = loss_and_gradients(model, source, tokens)
    gradient = gradients[[p is weight for p in model.parameters()].index(True)]
    losses = []
    for change in (1e-5, -1e-5):
        with torch.no_grad():
            weight[3, 4] += change
        losses.append(float(loss_and_gradients(model, source, tokens)[0].detach()))
        with torch.no_grad():
            weight[3, 4] -= change
    assert gradient[3, 4].item() == pytest.approx((losses[0] - losses[1]) / 2e-5, rel=1e-4)


EXPLICIT = {
    "lstm-additive": {},
    "lstm": {},
    "cnn": {},
    "transformer-relative": {},
    "transformer": {"attention_dropout": 0.3},
}


@pytest.mark.parametrize("name", EXPLICIT)
@pytest.mark.parametrize("training", [True, False])
def test_no_tensor_of_a_long_input_is_much_larger_than_the_bound(monkeypatch, build, name, training):
    model = build(name, **EXPLICIT[name], **({} if "lstm" in name else {"max_positions": 200})).train(training)
    source, tokens = torch.randint(4, 9, (6, 150)), torch.randint(4, 9, (6, 130))
    monkeypatch.setattr(layers, "MAX_ELEMENTS", 2**16)  # all states have 6 * 150 * 80 elements at most
    with Largest() as largest, torch.set_grad_enabled(training):
        loss = model(source, source != PAD, tokens).sum()
        if training:
            loss.backward()
    assert largest.elements < 2**17
