"""The load of experts, against a count of the router's choices."""

from collections import Counter

import pytest

from tfstudy.errors import UserError


def test_the_load_is_the_share_of_the_choices_of_the_router(subject, measure):
    one = subject("transformer-experts")
    counts = Counter()

    def count(router, inputs, scores):
        counts.update(scores.topk(2, -1).indices.flatten().tolist())

    one.model.encoder.layers[1].feedforward.router.register_forward_hook(count)
    rows = [row for row in measure("expert_load", one) if (row["kind"], row["layer"]) == ("encoder", 2)]
    assert [row["expert"] for row in rows] == [1, 2, 3]
    total = sum(counts.values())
    assert [row["load"] for row in rows] == pytest.approx([counts[expert] / total for expert in range(3)])
    assert total > 20


def test_it_needs_a_mixture_of_experts(subject, measure):
    with pytest.raises(UserError, match="mixture of experts"):
        measure("expert_load", subject("transformer"))
