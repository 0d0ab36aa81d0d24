"""Graphed decoding equals decoding with growing caches on a GPU."""

import pytest
import torch

from tests.evaluation.test_static_decoding import CASES, batch, made
from tfstudy.evaluation.decoding import beam, greedy_both
from tfstudy.evaluation.static_decoding import StaticDecoder
from tfstudy.training.graphs import CudaGraphs


@pytest.mark.parametrize(("arch", "changes"), CASES)
def test_graphed_decoding_equals_decoding_with_growing_caches(arch, changes):
    """Rounding may decide between two words that are almost equally probable, so a few outputs may differ."""
    lines = []
    model, inputs = made(arch, **changes).cuda(), [x.cuda() for x in batch(100)]
    decoder = StaticDecoder(model, CudaGraphs(), lines.append)
    for _ in range(2):  # the second time all shapes are captured
        graphed, usual = decoder.greedy_both(*inputs), greedy_both(model, *inputs)
        assert sum(a != b for a, b in zip(graphed[0] + graphed[1], usual[0] + usual[1], strict=True)) <= 4
        searched, expected = decoder.beam(*inputs[:3], 3, 0.6), beam(model, *inputs[:3], 3, 0.6)
        assert sum(a != b for a, b in zip(searched, expected, strict=True)) <= 3
    assert not lines


def test_other_weights_are_decoded_by_the_same_graphs():
    model, inputs = made("cnn").cuda(), [x.cuda() for x in batch(100)]
    decoder = StaticDecoder(model, CudaGraphs())
    decoder.greedy_both(*inputs)
    torch.manual_seed(2)
    model.load_state_dict({name: torch.randn_like(value) for name, value in model.state_dict().items()})
    graphed, usual = decoder.greedy_both(*inputs), greedy_both(model, *inputs)
    assert sum(a != b for a, b in zip(graphed[0], usual[0], strict=True)) <= 2
