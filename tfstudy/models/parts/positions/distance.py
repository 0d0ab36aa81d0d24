"""Biases of attention scores that are a function of the distance between a query and a key."""

import math
from abc import abstractmethod
from collections.abc import Iterator

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from tfstudy.models.parts.positions.base import Places, PositionScheme, Setup

BUCKETS, FARTHEST = 32, 128  # of T5: the number of its buckets, and the distance from which on all share the last one
SMALLEST = 0.01  # initial value of a parameter of Kerple, which must be positive


class DistanceBias(PositionScheme):
    """A bias for each head that depends on the distance only; each subclass is one function of it.

    It is added to the scaled scores. Each layer has its own parameters.
    """

    acts_on = "attention"
    scaled = False

    @abstractmethod
    def of_distances(self, distances: Int[Tensor, " distances"]) -> Float[Tensor, "distances heads"]:
        """Return the bias of each distance (position of the query minus that of the key)."""

    def bias(
        self,
        queries: Float[Tensor, "batch heads queries head_dim"],
        keys: Float[Tensor, "batch heads keys head_dim"],
        places: Places,
    ) -> Float[Tensor, "rows heads queries keys"]:
        distances = torch.arange(places.lowest, places.highest + 1, device=queries.device)
        table = self.of_distances(distances).to(queries.dtype)
        return nn.functional.embedding(places.distances - places.lowest, table).permute(0, 3, 1, 2)


class ALiBi(DistanceBias):
    """Minus the absolute distance, times a fixed slope for each head (Press et al. 2022, arXiv 2108.12409, section 3).

    Without causality, it is the same in both directions.
    """

    slopes: Tensor

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self.register_buffer("slopes", torch.tensor(alibi_slopes(setup.heads)), persistent=False)

    def of_distances(self, distances: Int[Tensor, " distances"]) -> Float[Tensor, "distances heads"]:
        return -distances.abs()[:, None] * self.slopes

    def keep_heads(self, heads: list[int]) -> None:
        self.slopes = self.slopes[heads]


def alibi_slopes(heads: int) -> list[float]:
    """Return 2^(-8/n), 2^(-16/n), ..., 2^-8 for n heads, if n is a power of two (Press et al. 2022, section 3).

    Otherwise the slopes of the power of two below n come first, then every other slope of the one above, as in the code
    of the paper.
    """
    below = 2 ** int(math.log2(heads))
    slopes = [2 ** (-8 * i / below) for i in range(1, below + 1)]
    return slopes + [2 ** (-4 * i / below) for i in range(1, 2 * (heads - below), 2)]


class T5Buckets(DistanceBias):
    """A learned bias for each bucket of distances (Raffel et al. 2020, arXiv 1910.10683, section 2.1).

    There are 32 buckets: half of them for one distance each, the others for ranges that grow logarithmically up to a
    distance of 128. Without causality, each direction has half of the buckets. In T5, all layers share the biases, and
    scores are not scaled.
    """

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self.causal = setup.causal
        self.biases = nn.Parameter(torch.empty(BUCKETS, setup.heads))
        nn.init.normal_(self.biases, std=setup.dim**-0.5)

    def of_distances(self, distances: Int[Tensor, " distances"]) -> Float[Tensor, "distances heads"]:
        return nn.functional.embedding(self.buckets(distances), self.biases)

    def buckets(self, distances: Int[Tensor, " distances"]) -> Int[Tensor, " distances"]:
        """Return the bucket of each distance."""
        if self.causal:
            return _buckets(distances.clamp(min=0), BUCKETS)
        after = (distances < 0).long() * (BUCKETS // 2)  # keys after the query
        return after + _buckets(distances.abs(), BUCKETS // 2)

    def keep_heads(self, heads: list[int]) -> None:
        self.biases = nn.Parameter(self.biases[:, heads])

    def parameters_without_decay(self) -> Iterator[nn.Parameter]:
        yield self.biases


def _buckets(distances: Tensor, number: int) -> Tensor:
    """Return the bucket below `number` of each distance, which must not be negative."""
    exact = number // 2
    growth = (distances.clamp(min=1).double() / exact).log() / math.log(FARTHEST / exact)
    logarithmic = exact + (growth * (number - exact)).long()
    return torch.where(distances < exact, distances, logarithmic.clamp(max=number - 1))


class Kerple(DistanceBias):
    """A kernel of the distance with learned r1 and r2 for each head (Chi et al. 2022, arXiv 2205.09921, eq. 5).

    Parameters are unbounded, and r1 and r2 are functions of them, so that a gradient reaches them everywhere. (The code
    of the paper sets r1 and r2 to a bound once they cross it.) r1 is a softplus and starts uniform in [0, 2].
    """

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self.unbounded_r1 = nn.Parameter(inverse_softplus(2 * torch.rand(setup.heads)))
        self.unbounded_r2 = nn.Parameter(self.start_of_r2(torch.rand(setup.heads)))

    @property
    def r1(self) -> Float[Tensor, " heads"]:
        """The factor of each head, above 0."""
        return nn.functional.softplus(self.unbounded_r1)

    def keep_heads(self, heads: list[int]) -> None:
        self.unbounded_r1 = nn.Parameter(self.unbounded_r1[heads])
        self.unbounded_r2 = nn.Parameter(self.unbounded_r2[heads])

    @abstractmethod
    def start_of_r2(self, random: Float[Tensor, " heads"]) -> Float[Tensor, " heads"]:
        """Return the initial parameters of r2, from numbers in [0, 1)."""


class KerpleLog(Kerple):
    """-r1 log(1 + r2 |distance|), with r1, r2 > 0. r2 is a softplus too, and starts uniform in [0, 1]."""

    def start_of_r2(self, random: Float[Tensor, " heads"]) -> Float[Tensor, " heads"]:
        return inverse_softplus(random)

    @property
    def r2(self) -> Float[Tensor, " heads"]:
        """The factor of the distance, above 0."""
        return nn.functional.softplus(self.unbounded_r2)

    def of_distances(self, distances: Int[Tensor, " distances"]) -> Float[Tensor, "distances heads"]:
        return -self.r1 * torch.log1p(self.r2 * distances.abs()[:, None])


class KerplePower(Kerple):
    """-r1 |distance|^r2, with r1 > 0 and 0 < r2 < 2. r2 is twice a sigmoid, and starts uniform in [0, 2].

    For r2 = 1 it is ALiBi with learned slopes.
    """

    def start_of_r2(self, random: Float[Tensor, " heads"]) -> Float[Tensor, " heads"]:
        return random.logit(SMALLEST)

    @property
    def r2(self) -> Float[Tensor, " heads"]:
        """The power of the distance, between 0 and 2."""
        return 2 * self.unbounded_r2.sigmoid()

    def of_distances(self, distances: Int[Tensor, " distances"]) -> Float[Tensor, "distances heads"]:
        powers: Tensor = distances.abs().clamp(min=1)[:, None] ** self.r2  # 0^r2 has no gradient with respect to r2
        return -self.r1 * powers * (distances != 0)[:, None]


def inverse_softplus(values: Tensor) -> Tensor:
    """Return where softplus has these values, which are raised to `SMALLEST` at least."""
    return values.clamp(min=SMALLEST).expm1().log()
