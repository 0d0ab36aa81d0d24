"""Feed-forward networks of the Transformer: plain, gated, or a mixture of experts."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from tfstudy.models.parts.layers import Dropout
from tfstudy.models.parts.listening import Site
from tfstudy.models.parts.transformer_config import TransformerConfig

GATES: dict[str, Callable[[Tensor], Tensor]] = {"swiglu": functional.silu, "geglu": functional.gelu}


class Gate(nn.Module):
    """The product g(x) * y of the two halves of a vector (Shazeer 2020, arXiv 2002.05202, eq. 6)."""

    def __init__(self, activation: str) -> None:
        super().__init__()
        self.function = GATES[activation]

    def forward(self, x: Float[Tensor, "*shape twice"]) -> Tensor:
        gate, value = x.chunk(2, -1)
        return self.function(gate) * value


def feedforward(config: TransformerConfig) -> nn.Sequential:
    """Return W2 g(W1 x + b1) + b2, with dropout behind the activation g. Gated ones have a second matrix beside W1."""
    gated = config.activation in GATES
    inner = nn.Linear(config.dim, config.feedforward * (2 if gated else 1))
    outer = nn.Linear(config.feedforward, config.dim)
    activation = Gate(config.activation) if gated else nn.GELU() if config.activation == "gelu" else nn.ReLU()
    dropout = config.dropout if config.activation_dropout is None else config.activation_dropout
    for weight in (*inner.weight.chunk(2 if gated else 1), outer.weight):
        nn.init.xavier_uniform_(weight)
    for layer in (inner, outer):
        nn.init.zeros_(layer.bias)
    return nn.Sequential(inner, activation, Dropout(dropout), outer)


class Routing(NamedTuple):
    """How one mixture of experts distributed the positions of one call."""

    site: Site
    load: Float[Tensor, " experts"]  # share of the positions' choices that each expert got; sums to 1
    probability: Float[Tensor, " experts"]  # of the router, averaged over the positions; sums to 1
    positions: int
    weight: float  # of the balancing loss

    @property
    def loss(self) -> Float[Tensor, ""]:
        """The balancing loss, summed over positions: weight * experts * load . probability (Fedus et al. 2022, eq. 4).

        For one position it is `weight` if all experts have the same load, and up to `experts` times that otherwise.
        """
        return self.weight * self.positions * len(self.load) * (self.load @ self.probability)


_ROUTINGS: ContextVar[list[Routing] | None] = ContextVar("recorded_routing", default=None)


@contextmanager
def recorded_routing() -> Iterator[list[Routing]]:
    """Within this context, record how the mixtures of experts of this thread's models route: yields the list.

    Training adds the `loss` of each to its own loss. As the list belongs to a thread and a call, micro-batches can be
    computed on several threads, and computing a layer again in the backward pass counts nothing twice.
    """
    routings: list[Routing] = []
    token = _ROUTINGS.set(routings)
    try:
        yield routings
    finally:
        _ROUTINGS.reset(token)


class MixtureOfExperts(nn.Module):
    """The sum of the k most probable experts' outputs, weighted by p = softmax(router x) (Shazeer et al. 2017).

    The weights are not normalised over the k experts, so that the router learns with k = 1 too (Switch Transformer,
    Fedus et al. 2022, arXiv 2101.03961, eq. 2). An expert has no capacity: with one, what a position gets would depend
    on the other positions of the batch, later ones included.
    """

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.chosen, self.weight = config.experts_per_token, config.expert_balance
        self.router = nn.Linear(config.dim, config.experts, bias=False)
        self.experts = nn.ModuleList(feedforward(config) for _ in range(config.experts))

    def forward(self, x: Float[Tensor, "positions dim"], site: Site) -> Float[Tensor, "positions dim"]:
        probabilities = self.router(x).softmax(-1)
        weights, experts = probabilities.topk(self.chosen, -1)
        self._record(probabilities, experts, site)
        mixed = torch.zeros_like(x)
        for number, expert in enumerate(self.experts):
            positions, rank = (experts == number).nonzero(as_tuple=True)
            mixed = mixed.index_add(0, positions, expert(x[positions]) * weights[positions, rank, None])
        return mixed

    def _record(self, probabilities: Tensor, experts: Tensor, site: Site) -> None:
        routings = _ROUTINGS.get()
        if routings is not None:
            load = experts.flatten().bincount(minlength=probabilities.shape[1]) / max(1, experts.numel())
            mean = probabilities.mean(0)
            routings.append(Routing(site, load.to(mean.dtype), mean, len(probabilities), self.weight))
