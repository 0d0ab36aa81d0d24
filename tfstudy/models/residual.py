"""Residual connections and where their normalisation stands."""

from typing import Literal, NamedTuple

from torch import Tensor, nn


class Residual(NamedTuple):
    """A residual connection around a sublayer: a value, without parameters.

    With `pre` the normalisation is before the sublayer (Xiong et al. 2020, arXiv 2002.04745), with `post` behind the
    sum (Vaswani et al. 2017).
    """

    placement: Literal["pre", "post"] = "pre"

    def before(self, norm: nn.Module, x: Tensor) -> Tensor:
        """Return what the sublayer reads."""
        normed: Tensor = norm(x) if self.placement == "pre" else x
        return normed

    def after(self, norm: nn.Module, x: Tensor, update: Tensor) -> Tensor:
        """Return the sum of `x` and what the sublayer returns."""
        added: Tensor = x + update if self.placement == "pre" else norm(x + update)
        return added
