"""The importance of heads: how much the loss changes with a mask on each (Michel et al. 2019, arXiv 1905.10650)."""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from tfstudy.errors import UserError
from tfstudy.instruments.base import Chart, Instrument, Row, Subject
from tfstudy.instruments.examples import ExampleSettings, TeacherForced, in_batches
from tfstudy.instruments.hooks import layer_number, logits_of
from tfstudy.models.attention import MultiHeadAttention
from tfstudy.models.base import Model


class HeadImportance(Instrument):
    """Mean over examples of |dL / d mask| (eq. 2), in nats; `normalised` is divided by the L2 norm of the layer."""

    summary = "importance of heads: gradient of the loss to a mask on each (Michel et al. 2019)"
    chart = Chart(
        "heatmap", x="head", y="layer", hue="importance", facet="kind", ranked="head",
        hue_label="importance |dL / d mask| (nats)",
    )  # fmt: skip
    Config = ExampleSettings
    config: ExampleSettings

    def measure(self, subject: Subject) -> list[Row]:
        found = importances(subject, self.config)
        shares = normalised(found)
        return [
            {
                "kind": head.kind, "layer": head.layer, "head": head.head, "importance": value,
                "normalised": shares[head],
            }
            for head, value in sorted(found.items(), key=lambda item: item[0][1:])
        ]  # fmt: skip


class Head(NamedTuple):
    """A head of a module. A layer that is used at several depths has the number of the first."""

    module: str  # the name of the attention module in the model
    kind: str  # encoder, decoder or cross
    layer: int  # from 1
    head: int  # from 1


def attention_modules(model: Model) -> dict[str, MultiHeadAttention]:
    """Return the multi-head attention of a model by name; `UserError` if it has none."""
    found = {name: module for name, module in model.named_modules() if isinstance(module, MultiHeadAttention)}
    if not found:
        raise UserError(f"this instrument needs multi-head attention, which {type(model).__name__} does not have here")
    return found


def heads_of(model: Model) -> list[Head]:
    """Return all heads of a model, in the order of its modules, such as `decoder.layers.0.cross`."""
    heads = []
    for name, module in attention_modules(model).items():
        kind = "cross" if name.endswith("cross") else "encoder" if name.startswith("encoder") else "decoder"
        heads += [Head(name, kind, layer_number(name), number) for number in range(1, module.heads + 1)]
    return heads


@contextmanager
def masked(model: Model, masks: Mapping[str, Tensor]) -> Iterator[None]:
    """Within this context, multiply the output of each head by its mask.

    The masks, by the name of the module, are (heads,) or (batch, heads). A mask is applied to the concatenated heads
    before they are projected, so attention itself stays as it is.
    """
    with ExitStack() as stack:
        for name, mask in masks.items():
            module = model.get_submodule(name)
            assert isinstance(module, MultiHeadAttention)  # noqa: S101 - always true; for the type checker

            def apply(_: nn.Module, inputs: tuple[Tensor], mask: Tensor = mask) -> tuple[Tensor]:
                [x] = inputs  # (positions, heads * head_dim), row by row
                by_position = mask.repeat_interleave(len(x) // len(mask), 0) if mask.ndim == 2 else mask[None]
                return (x * by_position.repeat_interleave(x.shape[1] // mask.shape[-1], 1),)

            stack.callback(module.out.register_forward_pre_hook(apply).remove)
        yield


def importances(subject: Subject, settings: ExampleSettings) -> dict[Head, float]:
    """Return I_h = mean over examples of |dL / d mask_h| (Michel et al. 2019, arXiv 1905.10650, eq. 2).

    L is the mean cross-entropy of an example's target tokens, in nats, with teacher forcing, and the masks are 1.
    """
    model, sums, count = subject.model, dict.fromkeys(heads_of(subject.model), 0.0), 0
    for batch in in_batches(subject, settings):
        count += len(batch.examples)
        for name, gradient in mask_gradients(model, batch).items():
            for head in (head for head in sums if head.module == name):
                sums[head] += float(gradient[:, head.head - 1].abs().sum())
    return {head: total / count for head, total in sums.items()}


def mask_gradients(model: Model, batch: TeacherForced) -> dict[str, Tensor]:
    """Return the gradient of each example's loss to the mask of each head, (batch, heads) by module."""
    rows, device = len(batch.examples), batch.source.device
    masks = {
        name: torch.ones(rows, module.heads, device=device, requires_grad=True)
        for name, module in attention_modules(model).items()
    }
    with torch.enable_grad(), masked(model, masks):
        logits = logits_of(model, batch.source, batch.tokens)
        losses = cross_entropy(logits.transpose(1, 2), batch.gold, reduction="none").mean(1)
        gradients = torch.autograd.grad(losses.sum(), list(masks.values()))
    return dict(zip(masks, gradients, strict=True))


def normalised(importance: Mapping[Head, float]) -> dict[Head, float]:
    """Return importances divided by the L2 norm of their layer, as Michel et al. do before they prune (section 4.1)."""
    norms: dict[str, float] = {}
    for head, value in importance.items():
        norms[head.module] = norms.get(head.module, 0.0) + value * value
    return {head: value / (norms[head.module] ** 0.5 or 1.0) for head, value in importance.items()}
