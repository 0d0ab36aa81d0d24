"""Copying tokens of the source: the output layer mixed with the attention weights over the source."""

from collections.abc import Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.functional import log_softmax, logsigmoid

from tfstudy.models.tokens import Tokens, flat


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
        self, weights: Sequence[Tensor], ids: Sequence[Int[Tensor, "sources source"]]
    ) -> Float[Tensor, "tokens target_vocab"]:
        """Return the sums of the attention weights for each target token.

        Each rectangle has weights (sources, queries, source), of which each query's sum to 1, and the ids of
        `copied_ids`.
        """
        sums = []
        for of_queries, of_source in zip(weights, ids, strict=True):
            empty = of_queries.new_zeros(*of_queries.shape[:2], self.target_vocab)
            sums.append(empty.scatter_add(2, of_source[:, None].expand_as(of_queries), of_queries))
        return flat(sums)

    def forward(
        self,
        features: Float[Tensor, "tokens width"],
        logits: Float[Tensor, "tokens target_vocab"],
        copied: Float[Tensor, "tokens target_vocab"],
    ) -> Float[Tensor, "tokens target_vocab"]:
        """Return the logarithms of the mixed distribution, which are logits as well.

        `features` is what the output layer read, and `copied` comes from the method of this name.
        """
        gate = self.generate(features)
        copying = copied.clamp(min=torch.finfo(copied.dtype).tiny).log()  # the gradient at 0 is 0
        return torch.logaddexp(logsigmoid(gate) + log_softmax(logits, -1), logsigmoid(-gate) + copying)


def copies(model: nn.Module) -> bool:
    """Return whether a model copies from the source."""
    return any(isinstance(module, CopyOutput) for module in model.modules())


def copied_ids(copy: CopyOutput | None, source: Tokens) -> tuple[Int[Tensor, "sources source"], ...]:
    """Return the target ids of each rectangle's source tokens, as a state keeps them; nothing without copying."""
    return () if copy is None else tuple(ids for (ids,) in source.rectangles(copy.target_ids[source.ids]))


def match_tokens(model: nn.Module, target_ids: Sequence[int]) -> None:
    """Set the target id to which a model copies each source id. Does nothing to a model that does not copy."""
    for module in model.modules():
        if isinstance(module, CopyOutput):
            module.target_ids.copy_(torch.tensor(target_ids))
