"""What an architecture is: `encode` a source, `decode` any number of tokens from a state that is a value."""

import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from tfstudy.models.config import ModelConfig
from tfstudy.models.ragged import Block, joined

State = Any  # a NamedTuple of batch-first tensors, or of tuples of them


class Model(nn.Module, ABC):
    """An encoder-decoder over token ids. One subclass a file; `Config` is nested in it.

    No part of a model sees PAD ids: the source's padding is masked, the target's lies behind all that is scored.
    """

    version: ClassVar[int] = 1  # raise it when the same config and weights give other numbers
    # True: nothing but `Dropout` draws random numbers, so that the parts of a batch may be computed side by side
    parallel: ClassVar[bool] = False
    Config: ClassVar[type[ModelConfig]] = ModelConfig

    def __init__(self, config: ModelConfig, source_vocab: int, target_vocab: int) -> None:
        super().__init__()

    @property
    def max_positions(self) -> int | None:
        """The most positions that the model has learned places for; None is no bound."""
        return None

    @abstractmethod
    def encode(self, source: Int[Tensor, "batch source"], source_mask: Bool[Tensor, "batch source"]) -> State:
        """The state from which decoding starts. The mask is True where there is a token."""

    @abstractmethod
    def decode(
        self, tokens: Int[Tensor, "batch length"], state: State
    ) -> tuple[Float[Tensor, "batch length target_vocab"], State]:
        """Logits of the token after each of `tokens`, which follow those already in the state, and the new state."""

    def forward(
        self,
        source: Int[Tensor, "batch source"],
        source_mask: Bool[Tensor, "batch source"],
        tokens: Int[Tensor, "batch length"],
    ) -> Float[Tensor, "batch length target_vocab"]:
        """Teacher forcing: the logits after each of `tokens`, which start with BOS."""
        logits: Tensor = self.decode(tokens, self.encode(source, source_mask))[0]
        return logits

    def forward_blocks(self, blocks: Sequence[Block]) -> Float[Tensor, "positions target_vocab"]:
        """Teacher forcing of several blocks: the logits of `forward` for each, one block's positions after the other's.

        An architecture whose layers act on each token by itself, for the most part, may compute all blocks together:
        see `blocks.Blockwise`.
        """
        return joined([self(*block) for block in blocks])

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if any(Model in base.__mro__ and base is not Model for base in cls.__bases__):
            raise TypeError(f"{cls.__name__} must be a direct subclass of Model: architectures are final")


def select_rows(state: Any, rows: Int[Tensor, " rows"]) -> Any:
    """The state of these rows of the batch, in this order; rows may repeat (beams) or be missing (finished)."""
    if isinstance(state, Tensor):
        return state.index_select(0, rows)
    if isinstance(state, tuple):
        parts = [select_rows(part, rows) for part in state]
        return type(state)(*parts) if hasattr(state, "_fields") else tuple(parts)
    raise TypeError(f"a state must be made of tensors and tuples, but has a {type(state).__name__}")


def parameter_count(model: nn.Module) -> int:
    """The number of trained scalars."""
    return sum(p.numel() for p in model.parameters() if p.requires_grad)


class _Own(threading.local):
    """What `Dropout` draws from in this thread; None is torch's global generator."""

    generator: torch.Generator | None = None


_OWN = _Own()


@contextmanager
def dropout_seed(seed: int) -> Iterator[None]:
    """Within it, `Dropout` on a CPU draws from a generator of this thread alone, which starts from `seed`."""
    before, _OWN.generator = _OWN.generator, torch.Generator().manual_seed(seed)
    try:
        yield
    finally:
        _OWN.generator = before


class Dropout(nn.Module):
    """`nn.Dropout`, but on a CPU faster at drawing: 16 random bits an element, four elements from one draw.

    The probability is rounded to a multiple of 2^-16, and kept activations are scaled by what was really kept.
    """

    def __init__(self, probability: float) -> None:
        super().__init__()
        self.probability = probability
        self._dropped = min(round(probability * 2**16), 2**16 - 1)

    def forward(self, x: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
        if not self.training or not self._dropped:
            return x
        if x.device.type != "cpu":
            return nn.functional.dropout(x, self.probability)
        bits = torch.empty((x.numel() + 3) // 4, dtype=torch.int64)
        bits = bits.random_(-(2**63), None, generator=_OWN.generator).view(torch.int16)
        kept = torch.empty(x.shape, dtype=x.dtype)
        torch.ge(bits[: x.numel()].view(x.shape), self._dropped - 2**15, out=kept)
        return x * kept.mul_(1 / (1 - self._dropped / 2**16))
