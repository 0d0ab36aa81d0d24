"""What a Transformer with encoder and decoder keeps of the source and of the target tokens so far."""

from typing import NamedTuple

from jaxtyping import Bool, Int
from torch import Tensor

from tfstudy.models.parts.cache import Cache, KeyValue


class TransformerSource(NamedTuple):
    """Keys and values of the source for each decoder layer, and what else attention and copying read of it."""

    memory: tuple[KeyValue, ...]
    mask: Bool[Tensor, "sources source"]
    positions: tuple[Int[Tensor, "sources source"], ...] = ()  # one tensor or none
    copied: tuple[Int[Tensor, "sources source"], ...] = ()  # target ids of the source tokens, if the model copies
    drawn: tuple[Int[Tensor, "sources longest"], ...] = ()  # random positions of training, for the target too


class TransformerState(NamedTuple):
    """The source, and keys and values of the target tokens decoded so far for each decoder layer."""

    source: TransformerSource
    past: tuple[Cache, ...]
    digits: tuple[Tensor, ...] = ()  # a `DigitState`, if there are positions of digits
