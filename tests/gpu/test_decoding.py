"""Graphed decoding equals decoding with growing caches on a GPU."""

import pytest
import torch

from tests.evaluation.test_static_decoding import CASES, batch, made
from tfstudy import models
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


@pytest.mark.parametrize("arch", ["lstm", "cnn", "transformer"])
def test_graphs_decode_many_rows_after_other_work_as_they_did_before_it(arch):
    """Once, replays of cuDNN's recurrent layers left the states of some of the rows as they were."""
    torch.manual_seed(1)
    cls, inputs = models.find(arch), [x.cuda() for x in batch(500)]
    model = cls(cls.Config(), 500, 500).cuda().eval()
    decoder, memory = StaticDecoder(model, CudaGraphs()), []
    before = decoder.greedy_both(*inputs), decoder.beam(*inputs[:3], 4, 1.0)
    for rows in (300, 60, 5):  # other shapes, and other work without graphs
        other = [x.cuda() for x in batch(rows)]
        decoder.beam(*other[:3], 4, 1.0)
        greedy_both(model, *other)
        memory += [list(range(rows * n)) for n in range(20)]  # the CPU's freed memory is used again
    assert (decoder.greedy_both(*inputs), decoder.beam(*inputs[:3], 4, 1.0)) == before
    usual = greedy_both(model, *inputs)[0]
    assert sum(a != b for a, b in zip(before[0][0], usual, strict=True)) <= 10


def test_other_weights_are_decoded_by_the_same_graphs():
    model, inputs = made("cnn").cuda(), [x.cuda() for x in batch(100)]
    decoder = StaticDecoder(model, CudaGraphs())
    decoder.greedy_both(*inputs)
    torch.manual_seed(2)
    model.load_state_dict({name: torch.randn_like(value) for name, value in model.state_dict().items()})
    graphed, usual = decoder.greedy_both(*inputs), greedy_both(model, *inputs)
    assert sum(a != b for a, b in zip(graphed[0], usual[0], strict=True)) <= 2
