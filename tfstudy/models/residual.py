"""Residual connections, and the normalisations that stand in them."""

from typing import Literal, NamedTuple

from torch import Tensor, nn


class Residual(NamedTuple):
    """A residual connection around a sublayer f: a value; the parameters are those of the `norm` that it makes.

    With `pre` the normalisation N is before the sublayer, x + f(N(x)) (Xiong et al. 2020, arXiv 2002.04745), with
    `post` behind the sum, N(x + f(x)) (Vaswani et al. 2017), with `sandwich` on both sides of the sublayer,
    x + N(f(N(x))) (Ding et al. 2021, arXiv 2105.13290, section 2.3), and with `none` nowhere. With connection `scaled`
    f is multiplied by `factor` (Noci et al. 2022, arXiv 2206.03126), and with `none` x is left out of the sum. A gate
    would be a further `connection`: computed in `after`, from parameters that `norm` makes beside the normalisation, in
    a list as that of `sandwich`.
    """

    placement: Literal["pre", "post", "sandwich", "none"] = "pre"
    norm_type: Literal["layer", "rms"] = "layer"
    connection: Literal["sum", "scaled", "none"] = "sum"
    factor: float = 1.0

    def norm(self, dim: int) -> nn.Module:
        """Return the normalisation of one sublayer, which the other methods take."""
        if self.placement == "sandwich":
            return nn.ModuleList(norm_layer(self.norm_type, dim) for _ in range(2))
        return nn.Identity() if self.placement == "none" else norm_layer(self.norm_type, dim)

    def final_norm(self, dim: int) -> nn.Module:
        """Return what normalises the output of a stack of layers, where the sum itself is never normalised."""
        return norm_layer(self.norm_type, dim) if self.placement in ("pre", "sandwich") else nn.Identity()

    def before(self, norm: nn.Module, x: Tensor) -> Tensor:
        """Return what the sublayer reads."""
        if self.placement == "sandwich":
            norm = norm[0]  # type: ignore[index]
        normed: Tensor = x if self.placement == "post" else norm(x)
        return normed

    def after(self, norm: nn.Module, x: Tensor, update: Tensor) -> Tensor:
        """Return the sum of `x` and what the sublayer returns."""
        if self.placement == "sandwich":
            update = norm[1](update)  # type: ignore[index]
        if self.connection == "scaled":
            update = self.factor * update
        added = update if self.connection == "none" else x + update
        normed: Tensor = norm(added) if self.placement == "post" else added
        return normed


def norm_layer(norm_type: str, dim: int) -> nn.Module:
    """Return layer normalisation, or with `rms` x / sqrt(mean(x^2)) times a gain (Zhang & Sennrich 2019)."""
    return RMSNorm(dim) if norm_type == "rms" else nn.LayerNorm(dim)


class RMSNorm(nn.RMSNorm):
    """RMSNorm in the precision of its gain, as LayerNorm in mixed precision: its epsilon depends on the precision."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x.to(self.weight.dtype))
