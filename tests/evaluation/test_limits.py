"""Generation limits follow the longest target or the source; positions are enough for both."""

import pytest
import torch

from tfstudy.config.schema import DecodeConfig
from tfstudy.evaluation.decoding import generation_limit, length_ratio, limits_of, needed_positions
from tfstudy.runs.schema import GenerationLimit
from tfstudy.tasks.base import Example, Splits, Task


class Lengths(Task):
    """Examples of given lengths."""

    def __init__(self, train, test=((3, 3),)):
        self.pairs = {"train": train, "test": test}

    @classmethod
    def split_schemes(cls):
        return {"only": "the only one"}

    def splits(self):
        return Splits("train", None, ("test",))

    def examples(self, split):
        return [Example(("a",) * source, ("b",) * target, {}) for source, target in self.pairs[split]]


def test_by_default_the_longest_target_decides():
    task = Lengths([(2, 9), (5, 1)], [(4, 11)])
    assert generation_limit(task, DecodeConfig()) == GenerationLimit(0.0, 27)
    longer = [Example(("a",), ("b",) * 40, {})]
    assert generation_limit(task, DecodeConfig(), longer) == GenerationLimit(0.0, 56)


def test_a_single_long_pair_does_not_change_the_limit_by_source():
    train = [(10, 15)] * 199
    decode = DecodeConfig(limit="source")
    for outlier in ((10, 15), (1, 1284), (1284, 1300)):
        assert generation_limit(Lengths([*train, outlier]), decode) == GenerationLimit(1.5, 16)


def test_the_limit_by_source_is_at_least_the_length_of_the_source():
    assert length_ratio(Lengths([(10, 2)] * 5)) == 1.0
    assert generation_limit(Lengths([(10, 2)] * 5), DecodeConfig(limit="source")) == GenerationLimit(1.0, 16)


def test_more_than_one_per_cent_of_the_pairs_count():
    assert length_ratio(Lengths([(10, 10)] * 98 + [(10, 30)] * 2)) == 3.0
    assert length_ratio(Lengths([(10, 10)] * 99 + [(10, 30)])) == 1.0


def test_a_given_length_comes_first():
    task = Lengths([(2, 9)])
    assert generation_limit(task, DecodeConfig(max_length=12, limit="source")) == GenerationLimit(0.0, 12)


@pytest.mark.parametrize(
    ("ratio", "constant", "expected"), [(0.0, 7, [7, 7, 7]), (1.1, 16, [18, 27, 126]), (1.5, 0, [2, 15, 150])]
)
def test_limits_are_rounded_up(ratio, constant, expected):
    assert limits_of(GenerationLimit(ratio, constant), torch.tensor([1, 10, 100])).tolist() == expected


def test_positions_are_enough_for_sources_targets_and_both_limits():
    assert needed_positions(Lengths([(2, 2)], [(300, 2)])) == 1 + 300 + 16
    assert needed_positions(Lengths([(2, 2)], [(2, 300)])) == 1 + 300 + 16
    assert needed_positions(Lengths([(10, 20)], [(100, 2)])) == 1 + 200 + 16
