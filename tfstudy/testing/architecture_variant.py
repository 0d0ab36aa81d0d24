"""A variant of an architecture, and the small inputs with which its properties are checked."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.testing import assert_close

from tfstudy.data.encoding import PAD
from tfstudy.models.base import Model
from tfstudy.models.parts.attention import Cache

SOURCE_VOCAB, TARGET_VOCAB = 11, 9
# Ids of sources of unequal lengths (6, 3 and 5), ended by EOS and padded; decoder inputs, which start with BOS
SOURCE = torch.tensor([[4, 5, 6, 7, 8, 2], [8, 4, 2, 0, 0, 0], [5, 8, 6, 4, 2, 0]])
TOKENS = torch.tensor([[1, 4, 5, 6, 7, 8, 4], [1, 8, 7, 6, 5, 4, 5], [1, 6, 6, 4, 8, 5, 7]])
MASK = SOURCE != PAD


class ArchitectureVariant(NamedTuple):
    """A variant of an architecture; "" is its config `small`."""

    cls: type[Model]
    name: str

    def __str__(self) -> str:
        return f", variant {self.name}" if self.name else ""

    def build(self, **changes: Any) -> Model:
        """A small model with its initial weights, in training mode."""
        torch.manual_seed(0)
        config = self.cls.Config(**{**self.cls.small, **self.cls.variants.get(self.name, {}), **changes})
        return self.cls(config, TARGET_VOCAB if config.needs_one_vocabulary else SOURCE_VOCAB, TARGET_VOCAB)

    def perturbed(self) -> Model:
        """A small model in eval mode with noise on every parameter, so that initial zeros do not hide an error."""
        model = self.build()
        torch.manual_seed(1)
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(0.2 * torch.randn_like(parameter))
        return model.eval()


def architecture_variants(cls: type[Model]) -> list[ArchitectureVariant]:
    """Return an architecture with its config `small` and in each of its variants."""
    return [ArchitectureVariant(cls, name) for name in ("", *cls.variants)]


def decoded(model: Model, tokens: Tensor, state: Any, sizes: Sequence[int]) -> Tensor:
    """Return the logits after all tokens, decoded in pieces of these sizes."""
    out = []
    for piece in torch.split(tokens, list(sizes), 1):
        logits, state = model.decode(piece, state)
        out.append(logits)
    return torch.cat(out, 1)


def leaves(state: Any) -> list[Tensor]:
    """Return the tensors of a state."""
    if isinstance(state, Cache):
        return leaves(state.seen)
    return [state] if isinstance(state, Tensor) else [leaf for part in state for leaf in leaves(part)]


def check_close(found: Any, expected: Any) -> None:
    """`AssertionError` unless the tensors are equal up to the rounding of float32 in another order of addition."""
    assert_close(found, expected, atol=3e-5, rtol=1e-4)
