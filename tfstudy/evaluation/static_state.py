"""The state of a model in tensors that keep their place from token to token."""

from collections.abc import Iterator

import torch
from torch import Tensor

from tfstudy.models.base import State
from tfstudy.models.parts.cache import Cache, KeyValue, StaticCache, StaticPosition


class NotStaticError(ValueError):
    """The state of a model changes its shape from token to token, or is not made of tensors."""


def static_state(state: State, position: StaticPosition) -> State:
    """Return a state before the first token with memory of its own, and with caches of a fixed size."""
    if isinstance(state, Tensor):
        return state.clone()
    if isinstance(state, StaticCache):
        return StaticCache(KeyValue(*(part.clone() for part in state.seen)), position)
    if isinstance(state, Cache) and state.length == 0:
        batch, heads, _, dim = state.seen.keys.shape
        return StaticCache(
            KeyValue(*(part.new_zeros(batch, heads, position.room, dim) for part in state.seen)), position
        )
    if isinstance(state, tuple):
        parts = [static_state(part, position) for part in state]
        return type(state)(*parts) if hasattr(state, "_fields") else tuple(parts)
    raise NotStaticError(f"a {type(state).__name__} has no static form")


def write_state(into: State, state: State) -> None:
    """Write a state into the memory of another one; `NotStaticError` if they have different shapes."""
    for own, new in zip(tensors(into), tensors(state), strict=True):
        if own.shape != new.shape:
            raise NotStaticError(f"a part of the state changes its shape from {tuple(own.shape)} to {tuple(new.shape)}")
        if own is not new:
            own.copy_(new)


def tensors(state: State) -> Iterator[Tensor]:
    """Iterate over all tensors of a static state."""
    if isinstance(state, Tensor):
        yield state
    elif isinstance(state, StaticCache):
        yield from state.seen
    else:
        for part in state:
            yield from tensors(part)


def position_of(room: int, device: torch.device) -> StaticPosition:
    """Return the position of the first token, in caches with this much room."""
    return StaticPosition(torch.zeros(1, dtype=torch.long, device=device), room)
