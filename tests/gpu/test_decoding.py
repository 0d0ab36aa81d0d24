"""Decoding on a GPU gives what decoding on a CPU gives, for many rows at once."""

import pytest
import torch

from tfstudy import models
from tfstudy.evaluation.decoding import beam, greedy_both
from tfstudy.models.tokens import Tokens


@pytest.mark.parametrize("arch", models.built_in())
def test_many_rows_are_decoded_as_on_a_cpu(arch):
    """Rounding may decide between two words that are almost equally probable, so a few outputs may differ."""
    torch.manual_seed(1)
    cls, rows = models.find(arch), 1000
    model = cls(cls.Config(**cls.small), 12, 12).eval()
    for parameter in model.parameters():
        if parameter.ndim > 1:
            parameter.data.mul_(2)  # outputs of many lengths
    mask = torch.arange(9) < torch.randint(1, 10, (rows, 1))
    source, limits, lengths = torch.randint(4, 12, (rows, 9)) * mask, *torch.randint(0, 16, (2, rows))

    def outputs(source, limits, lengths):
        tokens = Tokens.of(source)
        return *greedy_both(model, tokens, limits, lengths), beam(model, tokens, limits, 3, 0.6)

    expected = outputs(source, limits, lengths)
    model.cuda()
    found = outputs(source.cuda(), limits.cuda(), lengths.cuda())
    for own, other in zip(found, expected, strict=True):
        assert sum(a != b for a, b in zip(own, other, strict=True)) <= 10
