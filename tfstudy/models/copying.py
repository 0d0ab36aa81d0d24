"""Copying tokens of the source: an output that mixes a vocabulary with pointers into the source."""

import math
from collections.abc import Sequence
from typing import cast

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import log_softmax, logsigmoid

from tfstudy.models.source_attention import Source, dot_product
from tfstudy.models.tokens import Shapes, flat, per_source, rectangles


class CopyOutput(nn.Module):
    """Mixes the distribution of the output layer with an attention of its own over the source tokens.

    The mixture is that of the pointer-generator (See et al. 2017, arXiv 1704.04368, eq. 9):

        P(w) = p softmax(logits)_w + (1 - p) sum of the weights of the source positions with token w

    The probability p = sigmoid(v x + b) of generating is computed from the vector x that the output layer reads. The
    weights are the softmax of (W x) . h / sqrt(width) over the encoded source tokens h: a score for copying alone, as
    in CopyNet (Gu et al. 2016, arXiv 1603.06393, eq. 8), so that a decoder without attention can copy too. A source
    token that the target vocabulary lacks counts as its unknown token. Before `match_tokens`, each source id is taken
    for the same target id.
    """

    target_ids: Tensor

    def __init__(self, width: int, encoded: int, source_vocab: int, target_vocab: int) -> None:
        super().__init__()
        self.query, self.generate = nn.Linear(width, encoded, bias=False), nn.Linear(width, 1)
        for linear in (self.query, self.generate):
            nn.init.xavier_uniform_(linear.weight)
        nn.init.zeros_(self.generate.bias)
        same = torch.arange(source_vocab).clamp(max=target_vocab - 1)
        self.register_buffer("target_ids", same, persistent=False)

    def forward(
        self,
        features: Float[Tensor, "tokens width"],
        logits: Float[Tensor, "tokens target_vocab"],
        shapes: Shapes,
        sources: Sequence[Source],
    ) -> Float[Tensor, "tokens target_vocab"]:
        """Return the logarithms of the mixed distribution, which are logits as well.

        `features` is what the output layer read for the tokens of rectangles of these shapes, and `sources` are those
        of `source_attention.encoded`, with the target ids of their tokens.
        """
        copied = []
        queries = rectangles(per_source(shapes, [len(source.mask) for source in sources]), self.query(features))
        for (query,), source in zip(queries, sources, strict=True):
            scores = dot_product(query, source.values) / math.sqrt(source.values.shape[2])
            weights = scores.masked_fill(~source.mask[:, None], float("-inf")).softmax(-1)
            ids = cast("Tensor", source.target_ids)
            empty = weights.new_zeros(*weights.shape[:2], logits.shape[1])
            copied.append(empty.scatter_add(2, ids[:, None].expand_as(weights), weights))
        sums = flat(copied)
        copying = sums.clamp(min=torch.finfo(sums.dtype).tiny).log()  # the gradient at 0 is 0
        gate = self.generate(features)
        return torch.logaddexp(logsigmoid(gate) + log_softmax(logits, -1), logsigmoid(-gate) + copying)


def match_tokens(model: nn.Module, target_ids: Sequence[int]) -> None:
    """Set the target id to which a model copies each source id. Does nothing to a model that does not copy."""
    for module in model.modules():
        if isinstance(module, CopyOutput):
            module.target_ids.copy_(torch.tensor(target_ids))
