"""The variance of attention scores by the width of a head d_k, before and after scaling, and what the softmax does.

Vaswani et al. 2017 (arXiv 1706.03762, section 3.2.1 and footnote 4): if queries and keys have components with mean 0
and variance 1, then q k has the variance d_k; large scores saturate the softmax, so that its gradient vanishes.
Dividing by sqrt(d_k) makes the variance 1; dividing by d_k makes it 1 / d_k, and attention almost uniform.

The gradient is that with respect to the scores after scaling, which are what the softmax reads. The one with respect to
the products q k is smaller by the factor of the scale.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
from pydantic import Field
from torch import Tensor

from tfstudy.instruments.base import Chart, Instrument, Row, Subject
from tfstudy.instruments.entropy import entropy_share
from tfstudy.instruments.examples import ExampleSettings, in_batches, no_attention
from tfstudy.instruments.head_importance import attention_modules
from tfstudy.models.base import Model
from tfstudy.models.parts.attention import KeyValue, MultiHeadAttention
from tfstudy.models.parts.observing import Site
from tfstudy.models.parts.positions.base import Places, consecutive

WIDTHS = (4, 16, 64, 256, 1024)  # of heads, for random queries and keys
CHUNK = 100  # random queries that are computed at once
GRADIENT = "gradient after scaling"
SCALES = {"no scaling": 0.0, "/ sqrt(d_k)": 0.5, "/ d_k": 1.0}  # what products are divided by, as a power of d_k


class ScoreVarianceConfig(ExampleSettings):
    """The settings of `score_variance`."""

    keys: int = Field(64, ge=2, le=4096, description="random keys of each random query")
    queries: int = Field(2000, ge=1, le=100_000, description="random queries for each width")


class ScoreVariance(Instrument):
    """Variance over all keys of a query, entropy as a share of log T, and gradient after scaling, for each scale.

    `random` has queries and keys with independent normal components of variance 1, for several d_k. `model` has those
    of the trained model, as a mean over layers: with a norm or rotation, but without the bias of a position scheme.
    Causal queries see all keys here. The gradient after scaling is the Frobenius norm of diag(w) - w w^T, the Jacobian
    of the softmax with respect to the scores after scaling.
    """

    summary = "variance of scores, entropy and gradient of the softmax, by d_k and scaling"
    chart = Chart(
        "line", x="d_k", y="value", hue="scores", facet="quantity", log_x=True, log_y=True, x_label="d_k",
        y_label="value of the quantity",
    )  # fmt: skip
    Config = ScoreVarianceConfig
    config: ScoreVarianceConfig

    def measure(self, subject: Subject) -> list[Row]:
        modules = with_scores(subject.model)  # fails before the random part if there are none
        rows = [row for width in WIDTHS for row in _rows("random", "", 0, width, self._random(width))]
        sums: dict[tuple[Site, int], Quantities] = {}
        count = 0
        for batch in in_batches(subject, self.config):
            count += len(batch.examples)
            with torch.no_grad(), queries_and_keys(modules) as pairs:
                subject.model(batch.source, batch.mask, batch.tokens)
            for site, queries, keys in pairs:
                if keys.shape[2] > 1:
                    own = sums.setdefault((site, queries.shape[-1]), {})
                    _add(own, quantities(queries, keys), len(batch.examples))
        for (site, width), totals in sorted(sums.items()):
            means = {key: total / count for key, total in totals.items()}
            rows += _rows("model", site.kind, site.layer, width, means)
        return rows

    def _random(self, width: int) -> "Quantities":
        generator = torch.Generator().manual_seed(0)
        queries = torch.randn(self.config.queries, 1, 1, width, generator=generator)
        sums: Quantities = {}
        for part in torch.split(queries, CHUNK):
            keys = torch.randn(len(part), 1, self.config.keys, width, generator=generator)
            _add(sums, quantities(part, keys), len(part))
        return {key: total / len(queries) for key, total in sums.items()}


Quantities = dict[tuple[str, str], float]  # by scale and quantity


def quantities(queries: Tensor, keys: Tensor) -> Quantities:
    """Return each quantity for each scale, as a mean over examples, heads and queries.

    The queries are (batch, heads, queries, d_k) and the keys (batch, heads, keys, d_k), at least two of them.
    """
    found: Quantities = {}
    products = queries.double() @ keys.double().transpose(-1, -2)
    for scale, power in SCALES.items():
        scores = products / queries.shape[-1] ** power
        weights = scores.softmax(-1)
        found[scale, "variance"] = float(scores.var(-1).mean())
        found[scale, "entropy share"] = float(entropy_share(weights, torch.ones_like(weights, dtype=torch.bool)).mean())
        found[scale, GRADIENT] = float(jacobian_norm(weights).mean())
    return found


def jacobian_norm(weights: Tensor) -> Tensor:
    """Return the Frobenius norm of diag(w) - w w^T for weights w (..., keys)."""
    squares = weights.square().sum(-1)
    return (squares - 2 * weights.pow(3).sum(-1) + squares.square()).clamp(min=0).sqrt()


def with_scores(model: Model) -> list[MultiHeadAttention]:
    """Return the multi-head attention that computes scores; `UserError` if there is none."""
    found = [module for module in attention_modules(model).values() if type(module) is MultiHeadAttention]
    if not found:
        raise no_attention(model)
    return found


@contextmanager
def queries_and_keys(modules: Sequence[MultiHeadAttention]) -> Iterator[list[tuple[Site, Tensor, Tensor]]]:
    """Within this context, record the queries and keys of each head where scores are computed: yields their list.

    They are rotated if the position scheme does so.
    """
    pairs: list[tuple[Site, Tensor, Tensor]] = []
    for module in modules:

        def attend(
            query: Tensor,
            seen: KeyValue,
            mask: Tensor | None,
            causal: bool,
            site: Site,
            places: Places | None,
            module: MultiHeadAttention = module,
        ) -> Tensor:
            rotated = query
            if module.relative is not None:
                at = places or consecutive(seen.keys.shape[2], query.shape[2], query.device)
                rotated = module.relative.rotate_queries(query, at.queries)
            pairs.append((site, rotated, seen.keys))
            return MultiHeadAttention._attend(module, query, seen, mask, causal, site, places)

        module._attend = attend  # type: ignore[method-assign, assignment]
    try:
        yield pairs
    finally:
        for module in modules:
            del module._attend


def _add(sums: Quantities, found: Quantities, count: int) -> None:
    for key, value in found.items():
        sums[key] = sums.get(key, 0.0) + count * value


def _rows(source: str, kind: str, layer: int, width: int, found: Quantities) -> list[Row]:
    return [
        {
            "source": source, "kind": kind, "layer": layer, "d_k": width, "scale": scale,
            "scores": f"{source}, {scale}", "quantity": quantity, "value": value,
        }
        for (scale, quantity), value in found.items()
    ]  # fmt: skip
