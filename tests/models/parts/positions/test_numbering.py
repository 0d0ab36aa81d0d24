"""The numbers of positions: consecutive ones, and random ones of a larger range."""

import pytest
import torch
from torch.testing import assert_close

from tests.models.reference import CLOSE
from tfstudy.models.parts.layers import dropout_seed
from tfstudy.models.parts.positions.numbering import Numbering, places
from tfstudy.models.parts.tokens import RaggedGroup
from tfstudy.models.transformer import Transformer

CPU = torch.device("cpu")
SOURCE, TOKENS = torch.tensor([[4, 5, 6, 7, 2]]), torch.tensor([[1, 5, 4, 6]])
GROUP = RaggedGroup(SOURCE, SOURCE > 0, TOKENS)


def test_positions_are_consecutive_by_default():
    numbers = Numbering(0, 8)(3, 2, CPU)
    assert numbers.all.tolist() == [[0, 1, 2, 3, 4]]
    assert numbers.new.tolist() == [[3, 4]]


def test_places_have_bounds_of_all_distances():
    numbering = Numbering(0, 8)
    place = places(numbering(3, 2, CPU), numbering(0, 6, CPU), repeated=2)
    assert place.queries.tolist() == [[3, 4, 3, 4]]
    assert (place.lowest, place.highest) == (3 - 5, 4)
    assert (place.lowest, place.highest) == (place.distances.min(), place.distances.max())


@pytest.mark.parametrize("length", [3, 7, 30])
def test_random_positions_are_distinct_sorted_and_in_range(length):
    torch.manual_seed(0)
    numbering = Numbering(50, 30)
    drawn = [numbering.sample(length, CPU)[0].tolist() for _ in range(300)]
    for positions in drawn:
        assert len(positions) == length
        assert positions == sorted(set(positions))
        assert positions[0] >= 0
        assert positions[-1] < 50
    assert max(positions[-1] for positions in drawn) > 40


def test_the_sample_of_a_longest_sequence_is_uniform():
    torch.manual_seed(0)
    numbering = Numbering(20, 5)
    counts = sum(torch.bincount(numbering.drawn(5, CPU), minlength=20) for _ in range(2000))
    assert_close(counts / 2000, torch.full((20,), 5 / 20), atol=0.04, rtol=0)


def test_random_positions_are_drawn_with_the_seed_of_dropout():
    numbering = Numbering(1000, 10)
    with dropout_seed(3):
        first, second = numbering.sample(10, CPU), numbering.sample(10, CPU)
    with dropout_seed(3):
        assert torch.equal(numbering.sample(10, CPU), first)
    assert not torch.equal(first, second)


def test_in_evaluation_a_token_has_the_same_position_in_a_sequence_of_any_length():
    numbering = Numbering(1000, 10).eval()
    whole = numbering(0, 10, CPU).all
    assert not torch.equal(whole, torch.arange(10)[None])
    assert torch.equal(Numbering(1000, 10).eval()(0, 4, CPU).all, whole[:, :4])
    assert torch.equal(numbering(3, 2, CPU).new, whole[:, 3:5])


def test_without_a_sample_positions_are_fixed_in_training_too():
    numbering = Numbering(1000, 10)
    assert torch.equal(numbering(0, 1, CPU).all, numbering.fixed[None, :1])
    assert torch.equal(numbering(2, 3, CPU).all, numbering.fixed[None, :5])


def test_more_tokens_than_random_positions_are_refused():
    with pytest.raises(IndexError, match=r"10.*11"):
        Numbering(1000, 10)(0, 11, CPU)


def model(**config):
    torch.manual_seed(0)
    return Transformer(Transformer.Config(**{**Transformer.small, "dropout": 0, **config}), 9, 9)


@pytest.mark.parametrize("positions", ["sinusoidal", "learned", "rotary"])
def test_random_positions_change_each_pass_of_training_and_none_of_evaluation(positions):
    changed = model(positions=positions, randomised_positions=100)
    first, second = (changed.forward_groups([GROUP]) for _ in range(2))
    assert (first - second).abs().max() > 1e-3
    changed.eval()
    assert torch.equal(changed.forward_groups([GROUP]), changed.forward_groups([GROUP]))


@pytest.mark.parametrize("longer", ["source", "target"])
@pytest.mark.parametrize("positions", ["sinusoidal", "rotary"])
def test_in_training_source_and_target_of_a_group_have_the_first_positions_of_one_sample(positions, longer):
    changed = model(positions=positions, cross_positions="rotary", randomised_positions=100)
    group = GROUP if longer == "source" else RaggedGroup(TOKENS, TOKENS > 0, SOURCE)
    with dropout_seed(3):
        sample = changed.numbering.sample(5, CPU)[0]
    with dropout_seed(3):
        logits = changed.forward_groups([group])
    changed.eval()
    assert (changed.forward_groups([group]) - logits).abs().max() > 1e-3
    changed.numbering.fixed = sample
    assert_close(changed.forward_groups([group]), logits, **CLOSE)


def test_a_model_with_random_positions_embeds_tokens_at_them():
    random, plain = model(randomised_positions=64), model()  # 64 of 64 positions: none is left out
    assert torch.equal(random.eval()(SOURCE, SOURCE > 0, TOKENS), plain.eval()(SOURCE, SOURCE > 0, TOKENS))
    wide = model(randomised_positions=640).eval()
    wide.numbering.fixed = torch.arange(64) * 2
    wide.source_embedding.tokens.weight.data.zero_()
    assert_close(
        wide._embed(wide.source_embedding, [SOURCE], wide._numbers([SOURCE], [0], [None])),
        wide.source_embedding.positions.embed(torch.zeros(5, 16), torch.arange(5) * 2),
        **CLOSE,
    )


def test_a_model_with_random_or_learned_positions_limits_the_length():
    assert model(randomised_positions=100).max_positions == 64
    assert model(positions="rotary", decoder_positions="learned").max_positions == 64
    assert model(positions="rotary", cross_positions="alibi").max_positions is None
