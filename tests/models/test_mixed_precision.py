"""Mixed precision on a CPU: outputs are those of float32 up to rounding, and gradients are finite."""

import pytest
import torch

from tests.conftest import VARIANTS, perturbed


@pytest.mark.parametrize("name", VARIANTS)
def test_outputs_in_bfloat16_are_close_to_those_in_float32(build, name, source, tokens):
    model, mask = perturbed(build(name)), source > 0
    expected = model(source, mask, tokens)
    with torch.autocast("cpu", torch.bfloat16):
        found = model(source, mask, tokens)
    found.float().logsumexp(-1).sum().backward()
    assert (found.float() - expected).abs().mean() < 0.05 * expected.std()
    assert all(one.grad.isfinite().all() for one in model.parameters() if one.grad is not None)
