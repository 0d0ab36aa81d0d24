"""Hidden states: what a model computes at each depth. An observer can record them or put others in their place."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from tfstudy.errors import UserError
from tfstudy.models.base import Model
from tfstudy.models.parts.listening import Site
from tfstudy.models.parts.ragged import RaggedGroup

Observer = Callable[[Site, Tensor], Tensor]  # gets hidden states (..., width), and returns those to compute with

_OBSERVER: ContextVar[Observer | None] = ContextVar("observer", default=None)


def observed(site: Site, x: Float[Tensor, "*positions width"]) -> Float[Tensor, "*positions width"]:
    """Return the hidden states at a site, or what an observer of this thread puts in their place.

    Architectures call this for the embeddings (layer 0) and after each layer, of kind `encoder` where they read the
    source and `decoder` where they write the target. The positions of a row are next to each other.
    """
    if torch.compiler.is_compiling():  # a context variable would break the graph
        return x
    observer = _OBSERVER.get()
    return x if observer is None else observer(site, x)


@contextmanager
def observing(observer: Observer) -> Iterator[None]:
    """Within this context, pass all hidden states of this thread through `observer`."""
    token = _OBSERVER.set(observer)
    try:
        yield
    finally:
        _OBSERVER.reset(token)


class Recorded(NamedTuple):
    """The logits of a model for some rows, and the hidden states of each site, of each call of `observed`."""

    logits: Float[Tensor, "batch length vocab"]
    calls: dict[Site, list[Tensor]]  # more than one call where the target is written step by step

    def states(self) -> dict[Site, Float[Tensor, "batch positions _"]]:
        """Return the hidden states at each site."""
        return {site: self._joined(calls) for site, calls in self.calls.items()}

    def gradients(self, output: Float[Tensor, ""], site: Site) -> Float[Tensor, "batch positions _"]:
        """Return the gradient of a scalar, computed from the logits, with respect to the hidden states at a site."""
        calls = self.calls[site]
        found = torch.autograd.grad(output, calls, retain_graph=True, allow_unused=True)
        return self._joined([torch.zeros_like(x) if g is None else g for x, g in zip(calls, found, strict=True)])

    def _joined(self, calls: list[Tensor]) -> Tensor:
        return torch.cat([x.reshape(len(self.logits), -1, x.shape[-1]) for x in calls], 1)


def record_states(model: Model, group: RaggedGroup) -> Recorded:
    """Return the logits and hidden states of a model with teacher forcing; `UserError` if it never calls `observed`.

    Gradients can flow through what is returned, unless they are disabled.
    """
    calls: dict[Site, list[Tensor]] = {}

    def keep(site: Site, x: Tensor) -> Tensor:
        calls.setdefault(site, []).append(x)
        return x

    with observing(keep):
        logits = model(*group)
    if not calls:
        raise UserError(f"the hidden states of this model ({type(model).__name__}) can't be observed")
    return Recorded(logits, calls)
