"""The attention weights of a model on examples, for the instruments that measure them."""

from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.utils.parametrize import cached

from tfstudy.errors import UserError
from tfstudy.instruments.base import Subject
from tfstudy.instruments.examples import ExampleSettings, TeacherForced, in_batches
from tfstudy.models.base import Model
from tfstudy.models.parts.linear_attention import LinearAttention
from tfstudy.models.parts.listening import Site, joined, joined_visible, recorded_attention


class SiteWeights(NamedTuple):
    """The weights (batch, heads, queries, keys) at one site for a batch of examples, and which keys are visible."""

    site: Site
    weights: Tensor
    visible: Tensor
    batch: TeacherForced


def recorded_weights(subject: Subject, settings: ExampleSettings) -> Iterator[SiteWeights]:
    """Yield the attention weights of each site for each batch, with teacher forcing; `UserError` without attention."""
    for batch in in_batches(subject, settings):
        maps, visible = weights_of(subject.model, batch)
        if not maps:
            raise no_attention(subject.model)
        yield from (SiteWeights(site, maps[site], visible[site], batch) for site in sorted(maps))


@torch.no_grad()
@cached()
def weights_of(model: Model, batch: TeacherForced) -> tuple[dict[Site, Tensor], dict[Site, Tensor]]:
    """Return the attention weights (batch, heads, queries, keys) at each site, and which keys are visible."""
    with recorded_attention() as recorded:
        model(batch.source, batch.mask, batch.tokens)
    return joined(recorded), joined_visible(recorded)


def has_linear_attention(model: Model) -> bool:
    """Return whether a layer of a model has linear attention."""
    return any(isinstance(module, LinearAttention) for module in model.modules())


def linear_note(model: Model) -> str:
    """Return why rows on self-attention are missing beside those on cross-attention; empty if they are not."""
    return "no self-attention: linear attention has no weights of each token" if has_linear_attention(model) else ""


def no_attention(model: Model) -> UserError:
    """Return the error for a model that has no attention, or only linear attention."""
    if has_linear_attention(model):
        return UserError(
            "this needs the attention weight of each token, but linear attention (model.attention=linear) sums over "
            "tokens and has no weights"
        )
    return UserError(f"this needs attention, which this model ({type(model).__name__}) does not have")
