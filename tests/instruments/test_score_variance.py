"""Why attention scores are divided by sqrt(d_k) (Vaswani et al. 2017, section 3.2.1), on random queries and keys."""

import pytest
import torch

from tfstudy.instruments.entropy import entropy_share

WIDTHS, KEYS, QUERIES = (4, 16, 64, 256, 1024), 32, 1000


def of_random_scores(width: int, power: float) -> tuple[float, float, float]:
    """The variance of products of normal vectors, divided by a power of d_k, and what their softmax has of them.

    That is its entropy as a share of log T, and the Frobenius norm of its Jacobian diag(w) - w w^T, as means.
    """
    generator = torch.Generator().manual_seed(0)
    queries = torch.randn(QUERIES, 1, width, generator=generator, dtype=torch.double)
    scores = (queries @ torch.randn(QUERIES, width, KEYS, generator=generator, dtype=torch.double)) / width**power
    weights = scores.softmax(-1)
    jacobians = torch.diag_embed(weights[:, 0]) - weights.mT @ weights
    shares = entropy_share(weights[:, None], torch.ones_like(weights[:, None], dtype=torch.bool))
    return float(scores.var(-1).mean()), float(shares.mean()), float(jacobians.norm(dim=(1, 2)).mean())


def test_random_scores_saturate_the_softmax_unless_they_are_scaled():
    for width in WIDTHS[1:]:
        for power in (0, 0.5, 1):
            assert of_random_scores(width, power)[0] == pytest.approx(width ** (1 - 2 * power), rel=0.05)
    _, entropies, gradients = zip(*(of_random_scores(width, 0) for width in WIDTHS), strict=True)
    _, scaled_entropies, scaled_gradients = zip(*(of_random_scores(width, 0.5) for width in WIDTHS), strict=True)
    for values, scaled in ((entropies, scaled_entropies), (gradients, scaled_gradients)):
        assert max(scaled) < 1.1 * min(scaled)
        assert values[-1] < 0.5 * scaled[-1]
    assert list(entropies) == sorted(entropies, reverse=True)
    assert entropies[-1] < 0.1 * entropies[0]
    assert gradients[0] > scaled_gradients[0], "it vanishes at large widths only"
