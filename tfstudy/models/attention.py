"""Multi-head attention. Keys and values are passed in, so a cache is a value and not a state of the layer."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention

from tfstudy.models.layers import Dropout
from tfstudy.models.positions import RelativePositions
from tfstudy.models.ragged import Shapes, flatten_groups, split_groups


class KeyValue(NamedTuple):
    """Projected keys and values of the tokens seen so far."""

    keys: Float[Tensor, "batch heads length head_dim"]
    values: Float[Tensor, "batch heads length head_dim"]

    def append(self, other: "KeyValue") -> "KeyValue":
        """Return the keys and values of both, concatenated in time."""
        if self.keys.shape[2] == 0:
            return other
        return KeyValue(torch.cat([self.keys, other.keys], 2), torch.cat([self.values, other.values], 2))


class MultiHeadAttention(nn.Module):
    """Multi-head attention softmax(Q K^T / sqrt(dim / heads)) V (Vaswani et al. 2017, section 3.2)."""

    def __init__(self, dim: int, heads: int, dropout: float = 0.0, relative: bool = False) -> None:
        super().__init__()
        self.heads, self.dropout = heads, Dropout(dropout)
        self.query = nn.Linear(dim, dim)
        self.key_value = nn.Linear(dim, 2 * dim)
        self.out = nn.Linear(dim, dim)
        self.relative = RelativePositions(dim, heads) if relative else None
        for weight in (self.query.weight, *self.key_value.weight.chunk(2), self.out.weight):
            nn.init.xavier_uniform_(weight)
        for layer in (self.query, self.key_value, self.out):
            nn.init.zeros_(layer.bias)

    def project(self, x: Float[Tensor, "positions dim"], shapes: Shapes) -> list[KeyValue]:
        """Project inputs to keys and values, one `KeyValue` for each group."""
        keys, values = (split_groups(half, shapes) for half in self.key_value(x).chunk(2, dim=-1))
        return [KeyValue(self._split(k), self._split(v)) for k, v in zip(keys, values, strict=True)]

    def forward(
        self,
        x: Float[Tensor, "positions dim"],
        shapes: Shapes,
        seen: Sequence[KeyValue],
        masks: Sequence[Tensor | None] | None = None,
        causal: bool = False,
    ) -> Float[Tensor, "positions dim"]:
        """Attend from `x` to the keys and values `seen`, group by group.

        A mask (batch, 1 or heads, 1 or query, keys) is True where a key is visible. With `causal` no masks are allowed:
        the last query of a group is at the position of the last key, and no query sees a later key.
        """
        if causal and masks is not None:
            raise ValueError("masks must be None if causal is True")
        attended = [
            self._attend(self._split(query), key_value, mask, causal)
            for query, key_value, mask in zip(
                split_groups(self.query(x), shapes), seen, masks or [None] * len(shapes), strict=True
            )
        ]
        projected: Tensor = self.out(flatten_groups([heads.transpose(1, 2).flatten(2) for heads in attended]))
        return projected

    def _split(self, x: Tensor) -> Tensor:
        return x.view(*x.shape[:2], self.heads, x.shape[2] // self.heads).transpose(1, 2)

    def _attend(self, query: Tensor, seen: KeyValue, mask: Tensor | None, causal: bool) -> Tensor:
        """Return one group's attended values (batch, heads, query, head_dim)."""
        length, keys = query.shape[2], seen.keys.shape[2]
        bias: Tensor | None = None
        dropped = self.training and self.dropout.probability > 0
        if causal and length > 1 and (keys > length or self.relative or dropped):
            mask = torch.ones(length, keys, dtype=torch.bool, device=query.device).tril(keys - length)
        if self.relative:
            query, bias = self.relative(query, keys, keys - length if causal else 0)
            bias = bias / math.sqrt(query.shape[-1])
            if mask is not None:
                bias = bias.masked_fill(~mask, float("-inf"))
        mask = mask if bias is None else bias
        if dropped:  # the fused kernel would draw from the global generator
            return self._explicit(query, seen, mask)
        is_causal = causal and length > 1 and mask is None
        return scaled_dot_product_attention(query, seen.keys, seen.values, attn_mask=mask, is_causal=is_causal)

    def _explicit(self, query: Tensor, seen: KeyValue, mask: Tensor | None) -> Tensor:
        """Attend with dropout on the weights. A mask that is not boolean is added to the scores."""
        scores = query @ seen.keys.transpose(-1, -2) / math.sqrt(query.shape[-1])
        if mask is not None:
            scores = scores.masked_fill(~mask, float("-inf")) if mask.dtype == torch.bool else scores + mask
        weights: Tensor = self.dropout(scores.softmax(-1))
        return weights @ seen.values
