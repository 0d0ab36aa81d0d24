"""Linear attention: softmax is replaced by a product of features, so that decoding needs a state of constant size."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn.functional import pad

from tfstudy.models.parts.attention import MultiHeadAttention
from tfstudy.models.parts.cache import KeyValue
from tfstudy.models.parts.listening import Site
from tfstudy.models.parts.positions.base import Places
from tfstudy.models.parts.ragged import Shapes, flatten_groups, split_groups

CHUNK = 64  # queries that are computed at once: larger ones need more arithmetic, smaller ones more steps


class LinearState(NamedTuple):
    """The sum of phi(k) [v, 1] over the tokens so far (Katharopoulos et al. 2020, eq. 10 and 11)."""

    sums: Float[Tensor, "batch heads head_dim head_dim+1"]
    tokens: Float[Tensor, "batch length 0"]  # no data: its shape counts the tokens, without a number on the device

    @property
    def length(self) -> int:
        """The number of tokens."""
        return self.tokens.shape[1]


class LinearAttention(MultiHeadAttention):
    """Attention with weights phi(q) phi(k) over their sum, phi(x) = elu(x) + 1 (Katharopoulos et al. 2020, eq. 4-7).

    Time and memory grow linearly with the length (arXiv 2006.16236). Causal attention adds the features of a chunk of
    keys to a state, and computes the weights within the chunk only. They can't be recorded.
    """

    def empty(self, x: Tensor, batch: int) -> LinearState:  # type: ignore[override]
        sums = x.new_zeros(batch, self.heads, self.head_dim, self.head_dim + 1)
        return LinearState(sums, x.new_zeros(batch, 0, 0))

    def attend_causally(  # type: ignore[override]
        self,
        x: Float[Tensor, "positions dim"],
        shapes: Shapes,
        past: Sequence[LinearState],
        site: Site | None = None,
        places: Sequence[Places | None] | None = None,
        masks: Sequence[Tensor] | None = None,
    ) -> tuple[Float[Tensor, "positions dim"], list[LinearState]]:
        queries = [self.query_norm(self._split(query)) for query in split_groups(self.query(x), shapes)]
        groups = zip(queries, self.project(x, shapes), past, strict=True)
        attended, after = zip(*(self._continue(query, new, before) for query, new, before in groups), strict=True)
        out: Tensor = self.out(flatten_groups([heads.transpose(1, 2).flatten(2) for heads in attended]))
        return out, list(after)

    def past(self, seen: KeyValue, mask: Bool[Tensor, "batch keys"]) -> LinearState:  # type: ignore[override]
        keys = features(seen.keys) * mask[:, None, :, None]
        return LinearState(keys.transpose(-1, -2) @ with_one(seen.values), keys.new_zeros(*mask.shape, 0))

    def _continue(self, query: Tensor, new: KeyValue, past: LinearState) -> tuple[Tensor, LinearState]:
        """Return one group's attended values (batch, heads, query, head_dim) and the state after them."""
        sums, attended = past.sums, []
        chunks = zip(
            *(torch.split(x, CHUNK, 2) for x in (features(query), features(new.keys), new.values)), strict=True
        )
        for q, k, v in chunks:
            v = with_one(v)
            attended.append(normalised(q @ sums + (q @ k.transpose(-1, -2)).tril() @ v))
            sums = sums + k.transpose(-1, -2) @ v
        return torch.cat(attended, 2), LinearState(sums, pad(past.tokens, (0, 0, 0, query.shape[2])))

    def _attend(
        self,
        query: Tensor,
        seen: KeyValue,
        mask: Tensor | None,
        causal: bool,
        site: Site | None,
        places: Places | None,
    ) -> Tensor:
        keys = features(seen.keys)
        if mask is not None:
            keys = keys * mask.transpose(-1, -2)
        return normalised(features(query) @ (keys.transpose(-1, -2) @ with_one(seen.values)))


def features(x: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """Return the positive features elu(x) + 1 of queries or keys."""
    return torch.where(x > 0, x + 1, x.clamp(max=0).exp())  # elu(x) + 1 would round to 0 for x < -17


def with_one(values: Float[Tensor, "*shape head_dim"]) -> Tensor:
    """Return the values with a 1 behind each, of which a weighted sum is the sum of the weights."""
    return pad(values, (0, 1), value=1.0)


def normalised(summed: Tensor) -> Tensor:
    """Return sums of weighted values, divided by the sum of the weights in their last column."""
    return summed[..., :-1] / summed[..., -1:]
