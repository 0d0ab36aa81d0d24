"""Multi-head attention. Keys and values are passed in, so a cache is a value and not a state of the layer."""

import math
from collections.abc import Sequence

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention

from tfstudy.models.cache import KeyValue
from tfstudy.models.chunks import in_chunks
from tfstudy.models.layers import Dropout
from tfstudy.models.listening import Site, is_recorded, record
from tfstudy.models.positions import RelativePositions
from tfstudy.models.ragged import Shapes, flatten_groups, split_groups


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
        site: Site | None = None,
    ) -> Float[Tensor, "positions dim"]:
        """Attend from `x` to the keys and values `seen`, group by group.

        A mask (batch, 1 or heads, 1 or query, keys) is True where a key is visible. With `causal` no masks are allowed:
        the last query of a group is at the position of the last key, and no query sees a later key. The weights can be
        recorded at `site`.
        """
        if causal and masks is not None:
            raise ValueError("masks must be None if causal is True")
        attended = [
            self._attend(self._split(query), key_value, mask, causal, site)
            for query, key_value, mask in zip(
                split_groups(self.query(x), shapes), seen, masks or [None] * len(shapes), strict=True
            )
        ]
        projected: Tensor = self.out(flatten_groups([heads.transpose(1, 2).flatten(2) for heads in attended]))
        return projected

    def _split(self, x: Tensor) -> Tensor:
        return x.view(*x.shape[:2], self.heads, x.shape[2] // self.heads).transpose(1, 2)

    def _attend(self, query: Tensor, seen: KeyValue, mask: Tensor | None, causal: bool, site: Site | None) -> Tensor:
        """Return one group's attended values (batch, heads, query, head_dim)."""
        batch, _, length, _ = query.shape
        keys = seen.keys.shape[2]
        positions = range(keys - length, keys) if causal else range(length)
        causal = causal and length > 1  # a single query sees all keys
        if is_recorded(site):
            mask = visible(positions, keys, query.device) if causal else mask
            return self._explicit(query, seen, mask, positions.start, site)
        if self.relative is None and not self._drops:
            if causal and keys > length:
                mask, causal = visible(positions, keys, query.device), False
            return scaled_dot_product_attention(query, seen.keys, seen.values, attn_mask=mask, is_causal=causal)

        def compute(rows: slice, queries: slice) -> Tensor:
            part = visible(positions[queries], keys, query.device) if causal else mask_part(mask, rows, queries)
            key_value = KeyValue(seen.keys[rows], seen.values[rows])
            return self._explicit(query[rows, :, queries], key_value, part, positions[queries].start)

        return in_chunks(compute, batch, length, self.heads * keys * (1 if self.relative is None else 2))

    @property
    def _drops(self) -> bool:
        return self.training and self.dropout.probability > 0

    def _explicit(
        self, query: Tensor, seen: KeyValue, mask: Tensor | None, start: int, site: Site | None = None
    ) -> Tensor:
        """Attend with relative positions, the first query's being `start`, with dropout on the weights, or recorded."""
        if self.relative is not None:
            query, bias = self.relative(query, seen.keys.shape[2], start)
            bias = bias / math.sqrt(query.shape[-1])
            mask = bias if mask is None else bias.masked_fill(~mask, float("-inf"))
        if not (self._drops or is_recorded(site)):  # with dropout, the kernel would draw from the global generator
            return scaled_dot_product_attention(query, seen.keys, seen.values, attn_mask=mask)
        scores = query @ seen.keys.transpose(-1, -2) / math.sqrt(query.shape[-1])
        if mask is not None:
            scores = scores.masked_fill(~mask, float("-inf")) if mask.dtype == torch.bool else scores + mask
        weights = scores.softmax(-1)
        record(site, weights)
        attended: Tensor = self.dropout(weights) @ seen.values
        return attended


def visible(positions: range, keys: int, device: torch.device) -> Bool[Tensor, "queries keys"]:
    """Return which keys, at positions 0 to `keys` - 1, are not after the queries at `positions`."""
    return torch.ones(len(positions), keys, dtype=torch.bool, device=device).tril(positions.start)


def mask_part(mask: Tensor | None, rows: slice, queries: slice) -> Tensor | None:
    """Return a mask (batch, 1 or heads, 1 or query, keys) for some rows and queries."""
    if mask is None:
        return None
    return mask[rows] if mask.shape[2] == 1 else mask[rows, :, queries]
