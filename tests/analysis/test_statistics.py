"""Statistics against published worked examples, theorems, and studies whose truth is known."""

import math
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfstudy.analysis import stats
from tfstudy.analysis.stats import (
    ALPHA,
    against,
    compare,
    corrected,
    interval,
    label_permutation,
    letter_groups,
    log_fit,
    median_length,
    power_of_t,
    seeds_needed,
    sign_permutation,
    welch,
)

# Student 1908, The probable error of a mean: hours of sleep gained with two drugs, ten patients
DEXTRO = [0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0]
LAEVO = [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4]
# Darwin 1876: height of crossed less that of self-fertilised maize, in eighths of an inch, as Fisher 1935 has them
MAIZE = [49, -67, 8, 16, 6, 23, 28, 41, 14, 29, 56, 24, 75, 60, -48]


# Worked examples


def test_fishers_permutation_of_darwins_maize():
    """1,726 of the 32,768 signs give a sum as large: 5.267 per cent (The Design of Experiments, section 21)."""
    assert sign_permutation(MAIZE) == 1726 / 32768


def test_students_sleep_in_pairs():
    """t = -4.0621 with 9 degrees of freedom, interval -2.4599 to -0.7001 (R, t.test of sleep, paired)."""
    found = compare(DEXTRO, LAEVO, paired=True)
    assert found.mean == pytest.approx(-1.58)
    assert found.effect == pytest.approx(-4.0621 / math.sqrt(10) * (1 - 3 / 35), abs=1e-4)
    assert (found.method, found.p) == ("sign permutation", sign_permutation(np.subtract(DEXTRO, LAEVO)))
    by_t = against(np.subtract(DEXTRO, LAEVO), 0)
    assert (by_t.low, by_t.high) == pytest.approx((-2.4598858, -0.7001142), abs=1e-6)
    few = compare(DEXTRO[:7], LAEVO[:7], paired=True)
    assert few.method == "paired t"


def test_welchs_test_of_students_sleep():
    """t = -1.8608, 17.776 degrees of freedom, p = 0.07939, interval -3.3655 to 0.2055 (R, t.test of sleep)."""
    few = compare(DEXTRO[:7], LAEVO[:7], paired=False)
    assert few.method == "Welch"
    whole = compare(DEXTRO, LAEVO, paired=False, tests=10**6)  # too many for a permutation test
    assert (whole.mean, whole.p, whole.method) == (pytest.approx(-1.58), pytest.approx(0.07939, abs=1e-5), "Welch")
    assert welch(np.var(DEXTRO, ddof=1), 10, np.var(LAEVO, ddof=1), 10)[1] == pytest.approx(17.776, abs=1e-3)
    whole = compare(DEXTRO, LAEVO, paired=False)
    assert whole.method == "label permutation"
    assert whole.p == pytest.approx(0.0794, abs=0.005)


def test_a_p_value_is_multiplied_by_the_number_of_tests():
    assert [corrected(p, 4) for p in (0.01, 0.04, 0.4)] == pytest.approx([0.04, 0.16, 1.0])
    assert math.isnan(corrected(math.nan, 4))


@pytest.mark.parametrize(("effect", "n"), [(0.2, 393), (0.5, 64), (0.8, 26)])
def test_cohens_table_of_sample_sizes(effect, n):
    """Cohen 1988, table 2.4.1: values in each of two groups for a power of .80 at two-sided .05."""
    assert power_of_t(effect, n, paired=False) >= 0.7995
    assert power_of_t(effect, n - 2, paired=False) < 0.8


def test_pairs_for_a_medium_effect():
    """34 pairs (G*Power's manual: an effect of 0.5, power .80)."""
    assert power_of_t(0.5, 34, paired=True) >= 0.8 > power_of_t(0.5, 33, paired=True)


def test_a_line_on_logarithms():
    found = log_fit([10, 100, 1000, 10000], [1.0, 3.0, 5.0, 7.0])
    assert (found.intercept, found.slope) == pytest.approx((-1.0, 2.0))
    assert math.isnan(log_fit([1, 10], [0, 1]).low)


# Limits


def test_five_pairs_can_not_go_below_a_sixteenth_without_assumptions():
    found = compare([90.0, 91, 92, 93, 95], [10.0, 12, 11, 15, 14], paired=True)
    assert found.p < 0.001
    assert found.note == "5 pairs: a test without distributional assumptions can't go below p = 0.062"
    assert sign_permutation([1, 2, 3, 4, 5]) == 2 / 2**5


def test_differences_without_spread_are_not_infinitely_certain():
    found = compare([100.0] * 5, [0.0] * 5, paired=True)
    assert (found.p, found.low, found.high) == pytest.approx((2 / 252, 100.0, 100.0))  # 2 of 252 labels
    assert found == compare([100.0] * 5, [0.0] * 5, paired=False)
    assert math.isnan(found.effect)
    assert seeds_needed(found.effect, found.paired) is None
    same = compare([1.0, 2.0, 3.0, 4.0, 5.0], [0.0, 1.0, 2.0, 3.0, 4.0], paired=True)
    assert (same.mean, same.p, same.method) == (1.0, 0.0625, "sign permutation")


def test_two_pairs_tell_no_effect():
    found = compare([60.0, 62.0], [20.0, 21.0], paired=True)
    assert found.p < 0.05
    assert math.isnan(found.effect)
    assert seeds_needed(found.effect, found.paired) is None


def test_the_power_of_an_effect_beyond_all_measure_is_1():
    assert power_of_t(500.0, 5, paired=True) == pytest.approx(1)


def test_equal_figures_do_not_differ():
    assert compare([50.0] * 6, [50.0] * 6, paired=True).p == 1
    assert compare([50.0] * 6, [50.0] * 6, paired=False).p == 1


@pytest.mark.parametrize("paired", [True, False])
def test_one_seed_has_no_test(paired):
    found = compare([3.0], [1.0], paired)
    assert found.mean == 2.0
    assert math.isnan(found.p)
    assert found.note == "1 seed: a test needs at least 2"


def test_figures_that_are_none_are_refused():
    with pytest.raises(ValueError, match="must be finite"):
        interval([1.0, math.nan])


def test_a_median_length_may_only_be_a_lower_bound():
    assert median_length([(10, False), (12, False), (60, True)]) == (12, False)
    assert median_length([(10, False), (60, True), (60, True)]) == (60, True)
    assert median_length([(10, False), (60, True)]) == (10, False)


# Theorems

NAMES = list("pqrstu")


@given(st.sets(st.sampled_from(list(combinations(NAMES, 2)))))
def test_names_share_a_letter_exactly_if_they_do_not_differ(pairs):
    found = letter_groups(NAMES, sorted(pairs))
    for one, other in combinations(NAMES, 2):
        assert bool(set(found[one]) & set(found[other])) == ((one, other) not in pairs)
    assert found[NAMES[0]].startswith("a")


VALUES = st.lists(st.integers(0, 1000).map(lambda value: value / 10), min_size=2, max_size=12)


@given(VALUES, VALUES, st.booleans(), st.integers(1, 40), st.sampled_from([0.0, 0.1, 1.0]))
def test_an_interval_excludes_0_exactly_where_the_corrected_p_is_below_05(x, y, paired, tests, resolution):
    found = compare(x, y, paired and len(x) == len(y), tests, resolution)
    if found.low == found.low and not math.isclose(corrected(found.p, tests), ALPHA, rel_tol=1e-9):
        assert (found.low > 0 or found.high < 0) == (corrected(found.p, tests) < ALPHA)
        assert found.low - 1e-6 <= found.mean <= found.high + 1e-6


@given(VALUES, st.integers(0, 100), st.integers(1, 40))
def test_the_interval_of_a_mean_excludes_a_bound_exactly_where_p_is_below_05(x, bound, tests):
    found = against(x, bound, tests, 0.1)
    if not math.isclose(corrected(found.p, tests), ALPHA, rel_tol=1e-9):
        assert (found.low > 0 or found.high < 0) == (corrected(found.p, tests) < ALPHA)


@pytest.mark.parametrize("paired", [True, False])
def test_the_interval_of_a_permutation_test_holds_the_shifts_that_it_does_not_reject(paired):
    draw = np.random.default_rng(1)
    for n in (8, 9, 12):
        x, y = (np.round(draw.normal(mean, 5, n), 1) for mean in (50, 45))
        found = compare(x, y, paired, 3)
        assert found.method.endswith("permutation")
        for end, step in ((found.low, -1e-5), (found.high, 1e-5)):
            inside, outside = (compare(x - end + s, y, paired, 3).p for s in (step, -step))
            assert outside < ALPHA / 3 <= inside


@given(st.lists(st.integers(-50, 50), min_size=2, max_size=9), st.integers(1, 1000))
def test_signs_count_alike_in_any_order_unit_and_direction(x, unit):
    p = sign_permutation(x)
    assert 2 / 2 ** len(x) <= p <= 1
    assert sign_permutation([-unit * value for value in reversed(x)]) == p


@given(st.lists(st.integers(0, 100), min_size=2, max_size=5), st.lists(st.integers(0, 100), min_size=2, max_size=5))
def test_labels_count_as_by_hand(x, y):
    both, seen = x + y, abs(np.mean(x) - np.mean(y))
    sums = [sum(chosen) for chosen in combinations(both, len(x))]
    means = [abs(total / len(x) - (sum(both) - total) / len(y)) for total in sums]
    as_large = np.mean([mean >= seen - 1e-9 for mean in means])
    assert label_permutation(x, y) == pytest.approx(as_large)


def test_drawn_labels_and_signs_agree_with_all_of_them(monkeypatch):
    x, y = DEXTRO[:8], LAEVO[:8]
    exact = label_permutation(x, y), sign_permutation(MAIZE)
    monkeypatch.setattr(stats, "ENUMERATED", 5)
    assert sign_permutation(MAIZE) == pytest.approx(exact[1], abs=0.007)
    monkeypatch.setattr(stats, "DRAWS", 10_000)
    assert label_permutation(x, y) == pytest.approx(exact[0], abs=0.02)


@pytest.mark.parametrize("paired", [True, False])
@pytest.mark.parametrize("n", range(3, 13))
@pytest.mark.parametrize("noise", [0.0, 1.0])
def test_large_differences_are_found_in_a_table_of_any_size(n, paired, noise):
    """A permutation of few seeds can't go below a floor, which a correction for many tests would lift above .05."""
    draw = np.random.default_rng(n)
    high, low = (mean + noise * draw.normal(0, 1, n) for mean in (90, 10))
    found = [compare(high, low, paired, tests=12, resolution=0.1)] * 12
    assert max(corrected(each.p, 12) for each in found) < 0.05


def test_few_tests_of_eight_seeds_are_permutations():
    draw = np.random.default_rng(0)
    x, y = (draw.normal(mean, 1, 8) for mean in (60, 50))
    assert [compare(x, y, True, tests).method for tests in (1, 6, 7)] == ["sign permutation"] * 2 + ["paired t"]
    assert "before a correction for 7 tests" in compare(x, y, True, 7).note


# Studies whose truth is known

STUDIES = 1000


def within(share: float, truth: float, studies: int = STUDIES) -> bool:
    """Whether a share of simulated studies is within four standard errors of the truth."""
    return abs(share - truth) < 4 * math.sqrt(truth * (1 - truth) / studies)


@pytest.mark.parametrize("n", [2, 3, 5, 8])
def test_a_t_interval_covers_the_mean_as_often_as_it_says(n):
    draw = np.random.default_rng(n)
    found = [interval(x) for x in draw.normal(70, 8, (STUDIES, n))]
    assert within(np.mean([i.low <= 70 <= i.high for i in found]), 0.95)


def test_a_bootstrap_interval_of_skewed_figures_covers_as_often_as_it_says():
    draw = np.random.default_rng(0)
    found = [interval(x) for x in 100 - draw.exponential(10, (500, 12))]
    assert {i.method for i in found} == {"bootstrap"}
    assert within(np.mean([i.low <= 90 <= i.high for i in found]), 0.95, 500)


def test_mostly_equal_values_have_students_interval():
    found = interval([100.0] * 9 + [0.0])
    assert found.method == "t"
    assert (found.mean, found.low < 70, found.high > 100) == (90.0, True, True)


@pytest.mark.parametrize(("paired", "n"), [(True, 3), (True, 5), (True, 9), (False, 3), (False, 5)])
def test_differences_that_are_none_are_found_as_seldom_as_promised(paired, n):
    """Seeds have an effect of their own, which pairing takes out; Welch's test is a little careful with 3."""
    draw = np.random.default_rng(n)
    found = 0
    for _ in range(STUDIES):
        shared = draw.normal(0, 5, n) if paired else np.zeros(n)
        one, other = (60 + shared + draw.normal(0, spread, n) for spread in (3, 3))
        found += compare(one, other, paired).p <= 0.05
    share = found / STUDIES
    most = 0.05 + 4 * math.sqrt(0.05 * 0.95 / STUDIES)
    assert share <= most
    assert share > 0.02


def test_a_family_of_tests_is_wrong_as_seldom_as_one_and_its_intervals_hold_together():
    draw, truths = np.random.default_rng(1), np.array([50.0, 50.0, 60.0, 80.0])
    wrong = missed = 0
    for _ in range(300):
        figures = list(draw.normal(truths[:, None], 4, (4, 5)))
        found = {(a, b): compare(figures[a], figures[b], True, tests=6) for a, b in combinations(range(4), 2)}
        wrong += corrected(found[0, 1].p, 6) < ALPHA
        missed += any(not each.low <= truths[a] - truths[b] <= each.high for (a, b), each in found.items())
    most = 0.05 + 4 * math.sqrt(0.05 * 0.95 / 300)
    assert wrong / 300 < most
    assert 0 < missed / 300 < most


@pytest.mark.parametrize("effect", [1.0, 1.5])
def test_with_the_proposed_number_of_seeds_four_of_five_studies_find_the_difference(effect):
    draw = np.random.default_rng(3)
    needed = seeds_needed(effect, paired=False)
    assert needed is not None
    studies = draw.normal(0, 1, (200, 2, needed)) + np.array([[effect], [0.0]])
    found = np.mean([compare(a, b, paired=False).p <= 0.05 for a, b in studies])
    assert 0.68 < found < 0.92


def test_seeds_needed_from_ten_pairs_is_within_a_factor_of_two_in_most_studies():
    """The effect of a study is itself drawn: with 10 pairs and a true effect of 1.2 half of all are this near."""
    draw, truth = np.random.default_rng(4), 1.2
    right = next(n for n in range(2, 100) if power_of_t(truth, n, paired=True) >= 0.8)
    guesses = [
        seeds_needed(compare(x, np.zeros(10), paired=True).effect, paired=True) or 1000
        for x in draw.normal(truth, 1, (300, 10))
    ]
    near = np.mean([right / 2 <= guess <= 2 * right for guess in guesses])
    assert near > 0.75
