"""Attention over the source for decoders that are recurrent or convolutional, and copying from the source."""

import math
from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn.functional import log_softmax, logsigmoid

from tfstudy.models.parts.layers import ALL, in_chunks
from tfstudy.models.parts.observing import Site, is_recorded, record
from tfstudy.models.parts.tokens import flatten_groups

Score = Literal["multiplicative", "general", "dot", "additive", "none"]
SCORES = (
    "Luong's general score, divided by sqrt(hidden) or not; the dot product without weights; Bahdanau's additive "
    "score; or none"
)


class Source(NamedTuple):
    """The encoded source as attention reads it. The mask is True where there is a token."""

    keys: Float[Tensor, "sources source _"]
    values: Float[Tensor, "sources source encoded"]
    mask: Bool[Tensor, "sources source"]
    copied: tuple[Int[Tensor, "sources source"], ...] = ()  # those of `copied_ids`


class Attended(NamedTuple):
    """The contexts, and the weights if the model copies from the source; otherwise these are empty."""

    contexts: Float[Tensor, "sources length encoded"]
    weights: Float[Tensor, "sources length _"]


def attend(
    query: Float[Tensor, "sources length _"],
    source: Source,
    score: Callable[[Tensor, Tensor], Tensor],
    size: int = 1,
    calls: int = 1,
    site: Site | None = None,
) -> Attended:
    """Return the source's values averaged with softmax(score(query, keys)), in chunks if there are very many scores.

    `score` returns (sources, length, source) and needs `size` elements for each score; for `calls`, see `in_chunks`.
    The weights can be recorded at `site`.
    """

    def compute(rows: slice, queries: slice) -> Tensor:
        scores = score(query[rows, queries], source.keys[rows])
        weights = scores.masked_fill(~source.mask[rows, None], float("-inf")).softmax(-1)
        record(site, weights[:, None], source.mask[rows, None, None])
        contexts = weights @ source.values[rows]
        return torch.cat([contexts, weights], -1) if source.copied else contexts

    rows, queries, keys = *query.shape[:2], source.keys.shape[1]
    found = compute(ALL, ALL) if is_recorded(site) else in_chunks(compute, rows, queries, keys * size, calls)
    width = source.values.shape[2]
    return Attended(found[..., :width] if source.copied else found, found[..., width:])


def dot_product(query: Float[Tensor, "sources length _"], keys: Float[Tensor, "sources source _"]) -> Tensor:
    """Return the dot products of all queries and keys of each source: (sources, length, source)."""
    return query @ keys.transpose(1, 2)


class Attention(nn.Module):
    """Attention over the source: values averaged with the softmax of a score. With kind `none`, contexts are empty."""

    def __init__(self, kind: Score, hidden: int, encoded: int, layer: int = 1) -> None:
        super().__init__()
        self.kind, self.hidden, self.site = kind, hidden, Site("cross", layer)
        self.width = 0 if kind == "none" else encoded
        if kind not in ("dot", "none"):
            self.key = nn.Linear(encoded, hidden, bias=False)
            nn.init.xavier_uniform_(self.key.weight)
        if kind == "additive":
            self.query = nn.Linear(hidden, hidden)
            self.score = nn.Linear(hidden, 1, bias=False)
            for linear in (self.query, self.score):
                nn.init.xavier_uniform_(linear.weight)

    def project(self, encoded: Float[Tensor, "positions encoded"]) -> Float[Tensor, "positions keys"]:
        """Compute the keys: the part of the score that does not depend on the query."""
        if self.kind == "dot":
            return encoded
        projected: Tensor = encoded.new_zeros(len(encoded), 0) if self.kind == "none" else self.key(encoded)
        return projected

    def forward(self, query: Float[Tensor, "sources length hidden"], source: Source, calls: int = 1) -> Attended:
        """Return the contexts (sources, length, width). `calls` is the number of such calls for one target."""
        if self.kind == "none":
            return Attended(query[..., :0], query[..., :0])
        if self.kind == "additive":
            return attend(self.query(query), source, self._additive, self.hidden, calls, self.site)
        return attend(query, source, self._product, 1, calls, self.site)

    def _additive(self, query: Tensor, keys: Tensor) -> Tensor:
        scores: Tensor = self.score((query[:, :, None] + keys[:, None]).tanh_())[..., 0]
        return scores

    def _product(self, query: Tensor, keys: Tensor) -> Tensor:
        scores = dot_product(query, keys)
        return scores / math.sqrt(self.hidden) if self.kind == "multiplicative" else scores


class CopyOutput(nn.Module):
    """Mixes the distribution of the output layer with the attention over the source tokens.

    This is the pointer-generator of See et al. 2017 (arXiv 1704.04368, section 2.2, eq. 9):

        P(w) = p softmax(logits)_w + (1 - p) sum of the attention weights of the source positions with token w

    The probability p = sigmoid(v x + b) of generating is computed from the vector x that the output layer reads, which
    depends on the context, the decoder's state and its input (eq. 8). A source token that the target vocabulary lacks
    counts as its unknown token. Before `match_tokens`, each source id is taken for the same target id.
    """

    target_ids: Tensor

    def __init__(self, width: int, source_vocab: int, target_vocab: int) -> None:
        super().__init__()
        self.target_vocab = target_vocab
        self.generate = nn.Linear(width, 1)
        nn.init.xavier_uniform_(self.generate.weight)
        nn.init.zeros_(self.generate.bias)
        same = torch.arange(source_vocab).clamp(max=target_vocab - 1)
        self.register_buffer("target_ids", same, persistent=False)

    def copied(
        self, weights: Sequence[Tensor], ids: Sequence[tuple[Tensor, ...]]
    ) -> Float[Tensor, "positions target_vocab"]:
        """Return the sums of the attention weights for each target token, flat over all groups.

        A group has weights (sources, queries, source), of which each query's sum to 1, and the ids of `copied_ids`.
        """
        groups = []
        for group, (of_sources,) in zip(weights, ids, strict=True):
            empty = group.new_zeros(*group.shape[:2], self.target_vocab)
            groups.append(empty.scatter_add(2, of_sources[:, None].expand_as(group), group))
        return flatten_groups(groups)

    def forward(
        self,
        features: Float[Tensor, "positions width"],
        logits: Float[Tensor, "positions target_vocab"],
        copied: Float[Tensor, "positions target_vocab"],
    ) -> Float[Tensor, "positions target_vocab"]:
        """Return the logarithms of the mixed distribution, which are logits as well.

        `features` is what the output layer read, and `copied` comes from the method of this name.
        """
        gate = self.generate(features)
        copying = copied.clamp(min=torch.finfo(copied.dtype).tiny).log()  # the gradient at 0 is 0
        return torch.logaddexp(logsigmoid(gate) + log_softmax(logits, -1), logsigmoid(-gate) + copying)


def copies(model: nn.Module) -> bool:
    """Return whether a model copies from the source."""
    return any(isinstance(module, CopyOutput) for module in model.modules())


def copied_ids(copy: CopyOutput | None, sources: Sequence[Int[Tensor, "_ _"]]) -> list[tuple[Int[Tensor, "_ _"], ...]]:
    """Return the target ids of each group's source tokens, as a model's state keeps them; nothing without copying."""
    return [() if copy is None else (copy.target_ids[source],) for source in sources]


def match_tokens(model: nn.Module, target_ids: Sequence[int]) -> None:
    """Set the target id to which a model copies each source id. Does nothing to a model that does not copy."""
    for module in model.modules():
        if isinstance(module, CopyOutput):
            module.target_ids.copy_(torch.tensor(target_ids))
