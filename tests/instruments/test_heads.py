"""Masks on heads, their importance, and models without some of them, by independent computations."""

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from tfstudy.instruments.examples import ExampleSettings, in_batches
from tfstudy.instruments.head_importance import (
    attention_modules,
    heads_of,
    importances,
    mask_gradients,
    masked,
    normalised,
)  # fmt: skip
from tfstudy.instruments.hooks import logits_of
from tfstudy.instruments.pruning import without
from tfstudy.models.positions import SCHEMES, acts_on_attention

FEW = ExampleSettings(examples=6)


def first(subject):
    return next(in_batches(subject, FEW))


def logits(model, batch):
    with torch.no_grad():
        return logits_of(model, batch.source, batch.tokens)


def test_masks_of_1_change_nothing_and_masks_of_0_leave_the_bias_of_the_projection(subject):
    one = subject("transformer")
    model, batch = one.model, first(one)
    names, before = attention_modules(model), logits(model, batch)
    with masked(model, {name: torch.ones(2) for name in names}):
        assert_close(logits(model, batch), before)
    module, outputs = model.get_submodule("encoder.layers.0.attention"), []
    handle = module.register_forward_hook(lambda *found: outputs.append(found[2][0]))
    with masked(model, {"encoder.layers.0.attention": torch.zeros(2)}):
        logits(model, batch)
    handle.remove()
    assert_close(outputs[0], module.out.bias.expand_as(outputs[0]))
    assert_close(logits(model, batch), before)


def test_the_importance_is_the_derivative_of_each_examples_loss_to_its_mask(subject):
    one = subject("transformer")
    model, batch = one.model.double(), first(one)
    found = mask_gradients(model, batch)
    name, head, step = "decoder.layers.1.cross", 1, 1e-5

    def losses(value):
        mask = torch.tensor([1.0, value], dtype=torch.double)
        with masked(model, {name: mask}):
            log_probabilities = logits(model, batch).log_softmax(-1)
        return -log_probabilities.gather(2, batch.gold[..., None])[..., 0].mean(1)

    expected = (losses(1 + step) - losses(1 - step)) / (2 * step)
    assert_close(found[name][:, head].double(), expected, atol=1e-6, rtol=1e-4)
    several = importances(one, FEW)
    assert len(several) == 2 * (2 + 2 + 2)
    shares = normalised(several).items()
    norms = [sum(v * v for head, v in shares if head.module == name) for name in attention_modules(model)]
    assert norms == pytest.approx([1.0] * len(norms))
    assert all(parameter.grad is None for parameter in model.parameters())


ON_ATTENTION = [{"positions": name} for name in SCHEMES if acts_on_attention(name)]


@pytest.mark.parametrize("config", [{}, {"share_layers": True}, *ON_ATTENTION], ids=str)
def test_a_model_without_heads_computes_what_the_masked_model_does(subject, config):
    one = subject("transformer", **config)
    model, batch = one.model, first(one)
    for parameter in model.parameters():  # some start as zeros, and would not show which head they belong to
        nn.init.normal_(parameter, std=0.3)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    heads = heads_of(model)
    for removed in (heads[:1], [*heads[1:4], heads[-1]], heads):
        masks = {name: torch.ones(module.heads) for name, module in attention_modules(model).items()}
        for head in removed:
            masks[head.module][head.head - 1] = 0.0
        with masked(model, masks):
            expected = logits(model, batch)
        assert_close(logits(without(model, removed), batch), expected)
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())


def test_pruning_begins_with_the_whole_model_and_its_metrics_are_those_of_decoding(subject, measure):
    rows = measure("pruning", subject("transformer"), examples=6, points=2, repeats=1)
    assert [row["removed"] for row in rows if row["metric"] == "exact_match"] == [0.0, 0.5, 1.0]
    assert {row["metric"] for row in rows} == {"exact_match", "token_accuracy", "decoding speed"}
    assert next(row["value"] for row in rows if row["metric"] == "decoding speed") == 1.0
    assert all(0 <= row["value"] <= 1 for row in rows if row["metric"] != "decoding speed")
