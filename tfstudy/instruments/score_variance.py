"""The variance of attention scores by the width of a head d_k, before and after scaling, and what the softmax does.

Vaswani et al. 2017 (arXiv 1706.03762, section 3.2.1 and footnote 4): if queries and keys have components with mean 0
and variance 1, then q k has the variance d_k; large scores saturate the softmax, so that its gradient vanishes.
Dividing by sqrt(d_k) makes the variance 1; dividing by d_k makes it 1 / d_k, and attention almost uniform.

The gradient is that with respect to the scores after scaling, which are what the softmax reads. The one with respect to
the products q k is smaller by the factor of the scale.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from pydantic import Field
from torch import Tensor

from tfstudy.instruments.base import Chart, Instrument, Row, Subject
from tfstudy.instruments.entropy import entropy_share
from tfstudy.instruments.examples import ExampleSettings, in_batches
from tfstudy.instruments.head_importance import attention_modules
from tfstudy.instruments.hooks import Site, layers_of_calls, logits_of
from tfstudy.models.attention import MultiHeadAttention
from tfstudy.models.base import Model
from tfstudy.models.tokens import rectangles

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
        attention_modules(subject.model)  # fails before the random part if there are none
        rows = [row for width in WIDTHS for row in _rows("random", "", 0, width, self._random(width))]
        sums: dict[tuple[Site, int], Quantities] = {}
        count = 0
        for batch in in_batches(subject, self.config):
            count += len(batch.examples)
            with torch.no_grad(), queries_and_keys(subject.model) as pairs:
                logits_of(subject.model, batch.source, batch.tokens)
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


@contextmanager
def queries_and_keys(model: Model) -> Iterator[list[tuple[Site, Tensor, Tensor]]]:
    """Within this context, record the queries and keys of each head of multi-head attention: yields their list.

    They are rotated if the position scheme does so. `UserError` if the model has no such attention.
    """
    pairs: list[tuple[Site, Tensor, Tensor]] = []
    with ExitStack() as stack:
        for name, module in attention_modules(model).items():
            layers = layers_of_calls(model, name)

            def hook(
                module: MultiHeadAttention, inputs: tuple[Any, ...], _: Any, layers: Iterator[int] = layers
            ) -> None:
                x, sight, [seen] = inputs[:3]  # there is one rectangle
                [(query,)], [at], relative = rectangles(sight.shapes, module.query(x)), sight.places, module.relative
                query = module.query_norm(module.split(query))
                rotated = query if relative is None else relative.rotate_queries(query, at.queries)
                pairs.append((Site(sight.kind, next(layers)), rotated, seen.keys))

            stack.callback(module.register_forward_hook(hook).remove)
        yield pairs


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
