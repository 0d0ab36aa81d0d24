"""Observing a model while it computes: attention weights, and hidden states, which an observer may also replace."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn.functional import pad

from tfstudy.errors import UserError
from tfstudy.models.base import Model
from tfstudy.models.parts.tokens import RaggedGroup


class Site(NamedTuple):
    """Where a model attends: `encoder` (self-attention), `decoder` (causal self-attention) or `cross`, and the layer.

    With one stack for source and target (`prefix`), target tokens attend to the source and the target so far.

    Layers count from 1. A layer that is used at several depths has a site for each.
    """

    kind: str
    layer: int


class RecordedWeights(NamedTuple):
    """The weights of one call at a site, before dropout; each row sums to 1 over the keys that its query sees.

    The mask says which keys are visible (None: all), as it was given to attention: True there, or above -inf. A visible
    key can have the weight 0, by underflow.
    """

    site: Site
    weights: Float[Tensor, "batch heads queries keys"]
    mask: Tensor | None = None

    @property
    def visible(self) -> Bool[Tensor, "batch heads queries keys"]:
        """Which keys each query sees."""
        if self.mask is None:
            return torch.ones_like(self.weights, dtype=torch.bool)
        seen = self.mask if self.mask.dtype == torch.bool else self.mask > float("-inf")
        return seen.expand_as(self.weights)


_RECORD: ContextVar[list[RecordedWeights] | None] = ContextVar("recorded_attention", default=None)


@contextmanager
def recorded_attention() -> Iterator[list[RecordedWeights]]:
    """Within this context, record the weights of all attention of this thread: yields the list that they are added to.

    There is an item for each call and each ragged group, in order of computation. Masked keys have the weight 0.
    Outside, models use their fast kernels, which have no weights to return; the outputs are equal up to rounding.
    """
    recorded: list[RecordedWeights] = []
    token = _RECORD.set(recorded)
    try:
        yield recorded
    finally:
        _RECORD.reset(token)


class _Discarded(list[RecordedWeights]):
    """A list that keeps nothing."""

    def append(self, item: RecordedWeights) -> None:
        pass


@contextmanager
def explicit_attention() -> Iterator[None]:
    """Within this context, compute all attention of this thread with explicit weights, which are not recorded."""
    token = _RECORD.set(_Discarded())
    try:
        yield
    finally:
        _RECORD.reset(token)


def is_recorded(site: Site | None) -> bool:
    """Whether to record the weights of a call at this site. A call without a site is never recorded."""
    return site is not None and _RECORD.get() is not None


def record(site: Site | None, weights: Float[Tensor, "batch heads queries keys"], mask: Tensor | None) -> None:
    """Record weights and what was visible, if somebody listens."""
    recorded = _RECORD.get()
    if site is not None and recorded is not None:
        recorded.append(RecordedWeights(site, weights, mask))


def joined(recorded: Sequence[RecordedWeights]) -> dict[Site, Float[Tensor, "batch heads queries keys"]]:
    """Return the weights of each site, with the queries of successive calls for one batch in one tensor.

    A step of decoding sees more keys than the one before: the weights of keys that it does not see yet are 0.
    """
    return _joined([(call.site, call.weights) for call in recorded])


def joined_visible(recorded: Sequence[RecordedWeights]) -> dict[Site, Bool[Tensor, "batch heads queries keys"]]:
    """Return which keys the queries see, in the order of `joined`."""
    return _joined([(call.site, call.visible) for call in recorded])


def _joined(found: Sequence[tuple[Site, Tensor]]) -> dict[Site, Tensor]:
    calls: dict[Site, list[Tensor]] = {}
    for site, each in found:
        calls.setdefault(site, []).append(each)
    keys = {site: max(one.shape[-1] for one in each) for site, each in calls.items()}
    return {
        site: torch.cat([pad(one, (0, keys[site] - one.shape[-1])) for one in each], dim=2)
        for site, each in calls.items()
    }


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
