"""Feed-forward networks of the Transformer: plain, gated, or a mixture of experts."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
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
    probabilities: Float[Tensor, "positions experts"]  # of the router
    chosen: Int[Tensor, "positions chosen"]  # numbers of experts
    weight: float  # of the balancing loss

    def only(self, counted: Bool[Tensor, " positions"]) -> "Routing":
        """Return the routing of some positions, such as those that are not padding."""
        return self._replace(probabilities=self.probabilities[counted], chosen=self.chosen[counted])

    @property
    def positions(self) -> int:
        """The number of positions."""
        return len(self.probabilities)

    @property
    def load(self) -> Float[Tensor, " experts"]:
        """The share of the positions' choices that each expert got. It sums to 1, or to 0 without positions."""
        counts = self.chosen.flatten().bincount(minlength=self.probabilities.shape[1])
        return (counts / max(1, self.chosen.numel())).to(self.probabilities.dtype)

    @property
    def loss(self) -> Float[Tensor, ""]:
        """The balancing loss, summed over positions: weight * experts * load . mean probability.

        For one position it is `weight` if all experts have the same load, and up to `experts` times that otherwise
        (Fedus et al. 2022, eq. 4).
        """
        load = self.load
        return self.weight * len(load) * (load * self.probabilities.sum(0)).sum()


_ROUTINGS: ContextVar[list[Routing] | None] = ContextVar("recorded_routing", default=None)


@contextmanager
def recorded_routing() -> Iterator[list[Routing]]:
    """Within this context, record how the mixtures of experts of this thread's models route: yields the list.

    A routing has all positions of all groups, padding included. Training adds the `loss` of those that are not padding
    to its own loss. As the list belongs to a thread and a call, micro-batches can be computed on several threads, and
    computing a layer again in the backward pass counts nothing twice.
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
        if (routings := _ROUTINGS.get()) is not None:
            routings.append(Routing(site, probabilities, experts, self.weight))
        mixed = torch.zeros_like(x)
        for number, expert in enumerate(self.experts):
            positions, rank = (experts == number).nonzero(as_tuple=True)
            update = expert(x[positions]) * weights[positions, rank, None]
            mixed = mixed.index_add(0, positions, update.to(mixed.dtype))  # of another type in mixed precision
        return mixed
