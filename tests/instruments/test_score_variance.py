"""The variance of scores, and the gradient of the softmax, by independent computations."""

import pytest
import torch

from tfstudy.instruments.score_variance import GRADIENT, jacobian_norm, quantities


def test_random_scores_saturate_the_softmax_unless_they_are_scaled(subject, measure):
    rows = measure("score_variance", subject("transformer"), examples=4, queries=1000, keys=32)
    found = {(r["d_k"], r["scale"]): r["value"] for r in rows if (r["source"], r["quantity"]) == ("random", "variance")}
    for width in (16, 64, 256, 1024):
        assert found[width, "no scaling"] == pytest.approx(width, rel=0.05)
        assert found[width, "/ sqrt(d_k)"] == pytest.approx(1, rel=0.05)
        assert found[width, "/ d_k"] == pytest.approx(1 / width, rel=0.05)
    of_scale = {
        (quantity, scale): [
            r["value"] for r in rows if (r["source"], r["quantity"], r["scale"]) == ("random", quantity, scale)
        ]
        for quantity in ("entropy share", GRADIENT)
        for scale in ("no scaling", "/ sqrt(d_k)")
    }
    for quantity in ("entropy share", GRADIENT):
        scaled = of_scale[quantity, "/ sqrt(d_k)"]
        assert max(scaled) < 1.1 * min(scaled)
        assert of_scale[quantity, "no scaling"][-1] < 0.5 * scaled[-1]
    entropy, gradient = (of_scale[quantity, "no scaling"] for quantity in ("entropy share", GRADIENT))
    assert entropy == sorted(entropy, reverse=True)
    assert entropy[-1] < 0.1 * entropy[0]
    assert gradient[0] > of_scale[GRADIENT, "/ sqrt(d_k)"][0]  # it vanishes at large widths only


def test_scores_of_the_model_are_those_of_its_queries_and_keys(subject, measure):
    one = subject("transformer")
    rows = [row for row in measure("score_variance", one, examples=3, queries=10) if row["source"] == "model"]
    assert {(row["kind"], row["layer"]) for row in rows} == {
        (k, n) for k in ("encoder", "decoder", "cross") for n in (1, 2)
    }
    assert {row["d_k"] for row in rows} == {8}
    variance = {row["scale"]: row["value"] for row in rows if row["quantity"] == "variance" and row["kind"] == "cross"}
    assert variance["no scaling"] == pytest.approx(8 * variance["/ sqrt(d_k)"]) == pytest.approx(64 * variance["/ d_k"])


def test_quantities_are_means_over_queries_of_what_torch_computes():
    queries, keys = torch.randn(2, 3, 4, 5), torch.randn(2, 3, 6, 5)
    found = quantities(queries, keys)
    scores = (queries @ keys.transpose(-1, -2) / 5**0.5).double().flatten(0, 2)
    assert found["/ sqrt(d_k)", "variance"] == pytest.approx(
        float(torch.stack([s.var() for s in scores]).mean()), rel=1e-4
    )
    norms = [torch.autograd.functional.jacobian(lambda s: s.softmax(0), s).norm() for s in scores]
    assert found["/ sqrt(d_k)", GRADIENT] == pytest.approx(float(torch.stack(norms).mean()), rel=1e-4)
    assert jacobian_norm(torch.tensor([0.0, 1.0, 0.0])).item() == 0.0
