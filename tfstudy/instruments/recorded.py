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
from tfstudy.models.parts.observing import Site, joined, joined_visible, recorded_attention


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


def no_attention(model: Model) -> UserError:
    """Return the error for a model that has no attention."""
    return UserError(f"this needs attention, which this model ({type(model).__name__}) does not have")
