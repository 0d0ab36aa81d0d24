"""Multi-head attention over keys and values that are passed in, so that a cache is a value."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention

from tfstudy.models.base import Dropout
from tfstudy.models.positions import RelativePositions
from tfstudy.models.ragged import Shapes, joined, parted


class KeyValue(NamedTuple):
    """Projected keys and values of the tokens seen so far."""

    keys: Float[Tensor, "batch heads length head"]
    values: Float[Tensor, "batch heads length head"]

    def append(self, other: "KeyValue") -> "KeyValue":
        """Both, one after the other in time."""
        if self.keys.shape[2] == 0:
            return other
        return KeyValue(torch.cat([self.keys, other.keys], 2), torch.cat([self.values, other.values], 2))


class MultiHeadAttention(nn.Module):
    """softmax(Q K^T / sqrt(dim / heads)) V, heads side by side (Vaswani et al. 2017, section 3.2)."""

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

    def project(self, x: Float[Tensor, "positions dim"], places: Shapes) -> list[KeyValue]:
        """Keys and values of these inputs, a `KeyValue` for each block."""
        keys, values = (parted(half, places) for half in self.key_value(x).chunk(2, dim=-1))
        return [KeyValue(self._split(k), self._split(v)) for k, v in zip(keys, values, strict=True)]

    def forward(
        self,
        x: Float[Tensor, "positions dim"],
        places: Shapes,
        seen: Sequence[KeyValue],
        masks: Sequence[Tensor | None] | None = None,
        causal: bool = False,
    ) -> Float[Tensor, "positions dim"]:
        """Attention of `x` to `seen`, block by block. With `causal` a block's last query is the newest of its `seen`.

        A mask (batch, 1 or heads, 1 or query, keys) is True where a query may look. With `causal` there is none, and no
        query looks ahead.
        """
        if causal and masks is not None:
            raise ValueError("masks must be None with causal, but are given")
        attended = [
            self._attend(self._split(query), known, mask, causal)
            for query, known, mask in zip(
                parted(self.query(x), places), seen, masks or [None] * len(places), strict=True
            )
        ]
        projected: Tensor = self.out(joined([heads.transpose(1, 2).flatten(2) for heads in attended]))
        return projected

    def _split(self, x: Tensor) -> Tensor:
        return x.view(*x.shape[:2], self.heads, x.shape[2] // self.heads).transpose(1, 2)

    def _attend(self, query: Tensor, seen: KeyValue, mask: Tensor | None, causal: bool) -> Tensor:
        """One block's weighted values (batch, heads, query, head)."""
        length, keys = query.shape[2], seen.keys.shape[2]
        bias: Tensor | None = None
        if causal and length > 1 and (keys > length or self.relative):
            mask = torch.ones(length, keys, dtype=torch.bool, device=query.device).tril(keys - length)
        if self.relative:
            query, bias = self.relative(query, keys, keys - length if causal else 0)
            bias = bias / math.sqrt(query.shape[-1])
            if mask is not None:
                bias = bias.masked_fill(~mask, float("-inf"))
        dropped = self.training and self.dropout.probability > 0
        masked = mask if bias is None else bias
        whole = causal and length > 1 and masked is None
        if dropped:  # the fused kernel would draw from the global generator
            if whole:
                masked = torch.ones(length, keys, dtype=torch.bool, device=query.device).tril()
            return self._explicit(query, seen, masked)
        return scaled_dot_product_attention(query, seen.keys, seen.values, attn_mask=masked, is_causal=whole)

    def _explicit(self, query: Tensor, seen: KeyValue, mask: Tensor | None) -> Tensor:
        scores = query @ seen.keys.transpose(-1, -2) / math.sqrt(query.shape[-1])
        if mask is not None:
            scores = scores.masked_fill(~mask, float("-inf")) if mask.dtype == torch.bool else scores + mask
        weights: Tensor = self.dropout(scores.softmax(-1))
        return weights @ seen.values
