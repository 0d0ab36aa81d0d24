"""Multi-head attention over keys and values that are passed in, so that a cache is a value."""

import math
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention

from tfstudy.models.base import Dropout
from tfstudy.models.positions import RelativePositions


class KeyValue(NamedTuple):
    """Projected keys and values of the tokens seen so far."""

    keys: Float[Tensor, "batch heads length head"]
    values: Float[Tensor, "batch heads length head"]

    def append(self, other: "KeyValue") -> "KeyValue":
        """Both, one after the other in time."""
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

    def _split(self, x: Tensor) -> Tensor:
        return x.view(*x.shape[:2], self.heads, x.shape[2] // self.heads).transpose(1, 2)

    def _explicit(self, query: Tensor, seen: KeyValue, mask: Tensor | None) -> Tensor:
        scores = query @ seen.keys.transpose(-1, -2) / math.sqrt(query.shape[-1])
        if mask is not None:
            scores = scores.masked_fill(~mask, float("-inf")) if mask.dtype == torch.bool else scores + mask
        weights: Tensor = self.dropout(scores.softmax(-1))
        return weights @ seen.values

    def project(self, x: Float[Tensor, "batch length dim"]) -> KeyValue:
        """Keys and values of these inputs."""
        keys, values = self.key_value(x).chunk(2, dim=-1)
        return KeyValue(self._split(keys), self._split(values))

    def forward(
        self,
        x: Float[Tensor, "batch query dim"],
        seen: KeyValue,
        mask: Bool[Tensor, "batch #heads #query keys"] | None = None,
        causal: bool = False,
    ) -> Float[Tensor, "batch query dim"]:
        """Attention of `x` to `seen`. With `causal` the last query is the newest of `seen`, and none looks ahead."""
        if causal and mask is not None:
            raise ValueError("mask must be None with causal, but is given")
        query, keys = self._split(self.query(x)), seen.keys.shape[2]
        length = query.shape[2]
        bias: Tensor | None = None
        if causal and length > 1 and (keys > length or self.relative):
            mask = torch.ones(length, keys, dtype=torch.bool, device=x.device).tril(keys - length)
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
                masked = torch.ones(length, keys, dtype=torch.bool, device=x.device).tril()
            attended = self._explicit(query, seen, masked)
        else:
            attended = scaled_dot_product_attention(query, seen.keys, seen.values, attn_mask=masked, is_causal=whole)
        projected: Tensor = self.out(attended.transpose(1, 2).flatten(2))
        return projected
