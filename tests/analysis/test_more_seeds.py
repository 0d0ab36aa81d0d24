"""How many more seeds decide on a published figure: by the rule of the verdict, and in simulated studies."""

from statistics import variance

import numpy as np
import pytest

from tfstudy.analysis.published import figure_of
from tfstudy.analysis.reproduction import UNDECIDED, Gap, decide, gap_between, more_seeds

SEEN = {  # results of committed runs, in percent
    "turn left, CNN": ("dessi-2019-09", (93.874, 93.957, 96.192, 96.854, 95.861)),
    "jump, CNN": ("dessi-2019-02", (30.742, 58.072, 40.475, 46.263, 60.537)),
    "jump, CNN, another figure": ("dessi-2019-05", (30.742, 58.072, 40.475, 46.263, 60.537)),
    "jump, LSTM beside a GRU": ("bastings-2018-02", (0.013, 0.0, 0.013, 0.052, 0.0)),
}


@pytest.mark.parametrize(
    ("name", "level", "more"),
    [("turn left, CNN", 0.95, 56), ("jump, CNN", 0.9875, 6), ("jump, CNN, another figure", 0.95, None),
     ("jump, LSTM beside a GRU", 0.95, None)],
)  # fmt: skip
def test_seeds_are_promised_only_if_they_decide_by_the_rule_of_the_verdict(name, level, more):
    id_, results = SEEN[name]
    gap = gap_between(figure_of(id_), results)._replace(level=level)
    assert decide(gap.excess, gap.half_width, 5.0) == UNDECIDED
    assert more_seeds(gap, 5.0) == more
    # one more seed, or a few, would make the gap larger than half its interval, which does not decide
    assert any(gap.excess > gap._replace(n=gap.n + one).half_width for one in range(1, 6))


GAPS = [
    Gap(excess, spread**2, n, error, 5 if error else 0, level)
    for excess in (0.0, 2.0, 4.6, 5.5, 8.0, 22.0)
    for spread in (1.0, 12.0)
    for n in (3, 5, 10)
    for error in (0.0, 1.5, 4.1)
    for level in (0.95, 0.99)
]


def test_the_promised_number_of_seeds_decides_and_one_seed_less_does_not():
    promised = 0
    for gap in GAPS:
        if decide(gap.excess, gap.half_width, 5.0) != UNDECIDED:
            continue
        more = more_seeds(gap, 5.0)
        if more is None:
            assert decide(gap.excess, gap._replace(n=1000).half_width, 5.0) == UNDECIDED
            continue
        promised += 1
        n = gap.n + more
        assert decide(gap.excess, gap._replace(n=n).half_width, 5.0) != UNDECIDED
        assert decide(gap.excess, gap._replace(n=n - 1).half_width, 5.0) == UNDECIDED
    assert promised > 20


@pytest.mark.parametrize(("excess", "deviation", "error"), [(12.0, 12.0, 0.0), (2.0, 6.0, 0.0), (22.0, 12.0, 4.1)])
def test_about_every_second_study_with_the_promised_seeds_is_decided(excess, deviation, error):
    gap = Gap(excess, deviation**2, 5, error, 5 if error else 0)
    more = more_seeds(gap, 5.0)
    assert more
    draws = np.random.default_rng(0).normal(excess, deviation, (400, gap.n + more))
    decided = [
        decide(abs(x.mean()), gap._replace(n=len(x), variance=variance(x.tolist())).half_width, 5.0) != UNDECIDED
        for x in draws
    ]
    assert 0.4 < np.mean(decided) < 0.68
