"""Position schemes by their formulas: on embeddings, on queries and keys, and as biases of attention scores."""

import math
from abc import abstractmethod
from collections.abc import Iterator

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from tfstudy.models.positions.base import Bias, Keys, Places, PositionScheme, Queries, Setup

CLIPPED = 16  # of Shaw et al.: distance from which on all are the same; section 4.3 finds no gain beyond 2
BUCKETS, FARTHEST = 32, 128  # of T5: the number of its buckets, and the distance from which on all share the last one
SMALLEST = 0.01  # initial value of a parameter of Kerple, which must be positive
WIDTH, THRESHOLD = 32, 512.0  # of FIRE: hidden units of the network, and the initial value of L
LAST = 63  # the largest position of CoPE; section 4 of the paper has 64 positions


def sinusoids(positions: Int[Tensor, "*shape"], dim: int) -> Float[Tensor, "*shape {dim}"]:
    """Return sin(pos / 10000^(2i/dim)) at index 2i and the cosine at 2i+1 (Vaswani et al. 2017, section 3.5)."""
    rates = torch.exp(torch.arange(0, dim, 2, device=positions.device) * (-math.log(10000.0) / dim))
    angles = positions[..., None] * rates
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(-2)[..., :dim]


class Sinusoidal(PositionScheme):
    """Sinusoids (Vaswani et al. 2017, section 3.5)."""

    acts_on = "embeddings"

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self.dim = setup.dim

    def embed(self, x: Float[Tensor, "tokens dim"], at: Int[Tensor, " tokens"], end: int) -> Tensor:
        table = sinusoids(torch.arange(end, device=at.device), self.dim)  # sines are expensive, and positions repeat
        return x + table[at].to(x.dtype)


class Learned(PositionScheme):
    """A learned embedding for each position below `setup.positions`; others raise an IndexError."""

    acts_on = "embeddings"

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self.weight = nn.Embedding(setup.positions, setup.dim).weight
        nn.init.normal_(self.weight, std=setup.std)

    def embed(self, x: Float[Tensor, "tokens dim"], at: Int[Tensor, " tokens"], end: int) -> Tensor:
        return x + nn.functional.embedding(at, self.weight)


class Rotary(PositionScheme):
    """Queries and keys whose pairs of features are rotated by angles proportional to their positions.

    Features 2i and 2i+1 of a head are rotated by pos / 10000^(2i / head_dim) (Su et al. 2021, eq. 15 and 34), so that
    the product of a query and a key depends on the distance only.
    """

    acts_on = "attention"

    def rotate(self, x: Float[Tensor, "batch heads length head_dim"], at: Int[Tensor, "rows length"]) -> Tensor:
        dim = x.shape[-1]
        rates = torch.exp(torch.arange(0, dim, 2, device=x.device) * (-math.log(10000.0) / dim))
        angles = at[:, None, :, None] * rates
        sin, cos = angles.sin().to(x.dtype), angles.cos().to(x.dtype)
        even, odd = x[..., ::2], x[..., 1::2]
        return torch.stack([even * cos - odd * sin, even * sin + odd * cos], dim=-1).flatten(-2)


def by_index(
    values: Float[Tensor, "batch heads queries values"], index: Int[Tensor, "rows #heads queries keys"]
) -> Float[Tensor, "batch heads queries keys"]:
    """Return the value of each query that the index selects for each key, with rows 1 or batch."""
    chosen: Tensor = values.gather(-1, index.expand(*values.shape[:3], index.shape[-1]))
    return chosen


class Shaw(PositionScheme):
    """A learned vector for each distance clipped to [-16, 16], added to the keys: q_i (k_j + a_{i-j}).

    Shaw et al. 2018, eq. 4 and 5. Heads share the vectors, layers do not. The vectors for values are left out: they
    changed nothing (table 3).
    """

    acts_on = "attention"

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self.first = 0 if setup.causal else -CLIPPED
        self.vectors = nn.Parameter(torch.empty(CLIPPED - self.first + 1, setup.dim // setup.heads))
        nn.init.xavier_uniform_(self.vectors)

    def bias(self, queries: Queries, keys: Keys, places: Places) -> Bias:
        index = places.distances.clamp(self.first, CLIPPED) - self.first
        return by_index(queries @ self.vectors.T, index[:, None])


class TransformerXL(PositionScheme):
    """Terms of attention scores that depend on the distance i - j (Dai et al. 2019, section 3.3).

    Scores are (q_i + u) k_j + (q_i + v) W r_{i-j}, with sinusoids r.
    """

    acts_on = "attention"

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        dim, heads = setup.dim, setup.heads
        self.dim = dim
        self.project = nn.Linear(dim, dim, bias=False)
        self.content_bias = nn.Parameter(torch.zeros(heads, 1, dim // heads))
        self.position_bias = nn.Parameter(torch.zeros(heads, 1, dim // heads))

    def rotate_queries(self, queries: Float[Tensor, "batch heads length head_dim"], at: Tensor) -> Tensor:
        return queries + self.content_bias

    def bias(self, queries: Queries, keys: Keys, places: Places) -> Bias:
        heads, head_dim = queries.shape[1], queries.shape[3]
        distances = torch.arange(places.lowest, places.highest + 1, device=queries.device)
        encoded = sinusoids(distances, self.dim).to(queries.dtype)
        encoded = self.project(encoded).view(len(distances), heads, head_dim).permute(1, 2, 0)
        by_distance = (queries + self.position_bias) @ encoded  # batch heads queries distances
        return by_index(by_distance, (places.distances - places.lowest)[:, None])

    def keep_heads(self, heads: list[int]) -> None:
        rows = torch.arange(self.project.out_features).view(len(self.content_bias), -1)[heads].flatten()
        self.project.weight, self.project.out_features = nn.Parameter(self.project.weight[rows]), len(rows)
        self.content_bias = nn.Parameter(self.content_bias[heads])
        self.position_bias = nn.Parameter(self.position_bias[heads])

    def parameters_without_decay(self) -> Iterator[nn.Parameter]:
        yield from (self.content_bias, self.position_bias)


class DistanceBias(PositionScheme):
    """A bias for each head that depends on the distance only; each subclass is one function of it.

    It is added to the scaled scores. Each layer has its own parameters.
    """

    acts_on = "attention"
    scaled = False

    @abstractmethod
    def of_distances(self, distances: Int[Tensor, " distances"]) -> Float[Tensor, "distances heads"]:
        """Return the bias of each distance (position of the query minus that of the key)."""

    def bias(self, queries: Queries, keys: Keys, places: Places) -> Bias:
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
    """-r1 log(1 + r2 |distance|), with learned r1, r2 > 0 for each head (Chi et al. 2022, arXiv 2205.09921, eq. 5).

    Both are a softplus of a parameter, so that a gradient reaches it everywhere. (The code of the paper sets r1 and r2
    to a bound once they cross it.) r1 starts uniform in [0, 2], r2 in [0, 1].
    """

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self.unbounded_r1 = nn.Parameter(inverse_softplus(2 * torch.rand(setup.heads)))
        self.unbounded_r2 = nn.Parameter(inverse_softplus(torch.rand(setup.heads)))

    @property
    def r1(self) -> Float[Tensor, " heads"]:
        """The factor of each head."""
        return nn.functional.softplus(self.unbounded_r1)

    @property
    def r2(self) -> Float[Tensor, " heads"]:
        """The factor of the distance."""
        return nn.functional.softplus(self.unbounded_r2)

    def of_distances(self, distances: Int[Tensor, " distances"]) -> Float[Tensor, "distances heads"]:
        return -self.r1 * torch.log1p(self.r2 * distances.abs()[:, None])

    def keep_heads(self, heads: list[int]) -> None:
        self.unbounded_r1 = nn.Parameter(self.unbounded_r1[heads])
        self.unbounded_r2 = nn.Parameter(self.unbounded_r2[heads])


def inverse_softplus(values: Tensor) -> Tensor:
    """Return where softplus has these values, which are raised to `SMALLEST` at least."""
    return values.clamp(min=SMALLEST).expm1().log()


class FIRE(PositionScheme):
    """A learned function of the distance relative to the position of the query, for each head (Li et al. 2023, eq. 4).

    f(psi(i - j) / psi(max(L, i))) with psi(x) = log(c x + 1), a network f with one hidden layer, and learned c and L.
    It is added to the scaled scores. The paper has keys before the query only; here those after it have negative
    values, and the later of both positions takes the place of i, which is the same for keys before the query.

    L starts at 512. As long as it is above all positions, the input of f depends on the distance alone.
    """

    acts_on = "attention"
    scaled = False

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self.network = nn.Sequential(nn.Linear(1, WIDTH), nn.ReLU(), nn.Linear(WIDTH, setup.heads))
        self.c = nn.Parameter(torch.tensor(0.1))
        self.threshold = nn.Parameter(torch.tensor(1.0))  # L as a multiple of its initial value

    def bias(self, queries: Queries, keys: Keys, places: Places) -> Bias:
        interpolated: Tensor = self.network(self.interpolated(places)[..., None])
        return interpolated.permute(0, 3, 1, 2).to(queries.dtype)

    def interpolated(self, places: Places) -> Float[Tensor, "rows queries keys"]:
        """Return the input of the network, in [-1, 1]."""
        distances = places.distances.to(self.c.dtype)
        later = torch.maximum(places.queries[:, :, None], places.keys[:, None])
        end = torch.maximum(later, (THRESHOLD * self.threshold).abs())
        return distances.sign() * self._psi(distances) / self._psi(end)

    def keep_heads(self, heads: list[int]) -> None:
        last = self.network[-1]
        assert isinstance(last, nn.Linear)  # noqa: S101 - always true; for the type checker
        last.weight, last.bias = nn.Parameter(last.weight[heads]), nn.Parameter(last.bias[heads])
        last.out_features = len(heads)

    def _psi(self, x: Tensor) -> Tensor:
        return torch.log1p((self.c * x).abs())


class Contextual(PositionScheme):
    """Positions that count tokens selected by the query: q_i e[p_ij], with p_ij = g_ij + ... + g_ii.

    Golovneva et al. 2024, eq. 3 to 7. The gate g_ij is the logistic function of the scaled product of query i and key
    j. Fractional positions interpolate between the embeddings e, which all heads share; larger ones than 63 are 63. As
    in the code of the paper, the bias is added to the scaled scores. The paper has keys before the query only; here
    those after it are at p_ij = g_ii + ... + g_ij, with embeddings of their own.
    """

    acts_on = "attention"
    scaled = False

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        directions, self.causal = 1 if setup.causal else 2, setup.causal
        self.embeddings = nn.Parameter(torch.zeros(directions * (LAST + 1), setup.dim // setup.heads))

    def bias(self, queries: Queries, keys: Keys, places: Places) -> Bias:
        gates = (queries @ keys.transpose(-1, -2) / math.sqrt(queries.shape[-1])).sigmoid()
        gates = gates.to(torch.promote_types(gates.dtype, torch.float32))  # 16 bits are not enough for a sum
        positions = counted(gates, places).clamp(max=LAST)
        below = positions.detach().long()
        weight, above = positions - below, (below + 1).clamp(max=LAST)
        values = queries @ self.embeddings.T
        first = 0 if self.causal else (places.distances < 0).long()[:, None] * (LAST + 1)
        return torch.lerp(by_index(values, below + first), by_index(values, above + first), weight.to(values.dtype))


def counted(gates: Float[Tensor, "batch heads queries keys"], places: Places) -> Tensor:
    """Return the sum of each query's gates from the key to the query's own token, both included."""
    distances, sums = places.distances[:, None], gates.cumsum(-1)
    own_gate, own_sum = ((x * (distances == 0)).sum(-1, keepdim=True) for x in (gates, sums))
    return (sums - own_sum).abs() + torch.where(distances > 0, gates, own_gate)


SCHEMES: dict[str, type[PositionScheme]] = {
    "sinusoidal": Sinusoidal,
    "learned": Learned,
    "relative": TransformerXL,
    "shaw": Shaw,
    "rotary": Rotary,
    "t5": T5Buckets,
    "alibi": ALiBi,
    "kerple": Kerple,
    "fire": FIRE,
    "contextual": Contextual,
    "none": PositionScheme,
}


def acts_on_attention(name: str) -> bool:
    """Whether attention with this scheme depends on positions."""
    return SCHEMES[name].acts_on == "attention"


def embedded(name: str, setup: Setup) -> PositionScheme:
    """Return the scheme if it acts on embeddings; otherwise one that does nothing."""
    scheme = SCHEMES[name]
    return scheme(setup) if scheme.acts_on == "embeddings" else PositionScheme(setup)


def on_attention(name: str, setup: Setup) -> PositionScheme | None:
    """Return the scheme if it acts on attention, for one layer; otherwise None."""
    return SCHEMES[name](setup) if acts_on_attention(name) else None
