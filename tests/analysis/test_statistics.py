"""Statistics against published worked examples, in the limits, and theorems on them."""

import math
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats as scipy_stats

from tfstudy.analysis.stats import (
    ALPHA,
    FEWEST_VALUES,
    compare,
    letter_groups,
    log_slope,
    median_interval,
    power_of_t,
    q_values,
    score_test,
    seeds_needed,
    sign_test,
    welch,
)
from tfstudy.tasks.scoring import wilson

# Student 1908, The probable error of a mean: hours of sleep gained with two drugs, ten patients
DEXTRO = [0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0]
LAEVO = [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4]


def test_students_sleep_in_pairs():
    """t = -4.0621 with 9 degrees of freedom, interval -2.4599 to -0.7001 (R, t.test of sleep, paired)."""
    found = compare(DEXTRO, LAEVO, paired=True)
    assert (found.mean, found.n, found.method) == (pytest.approx(-1.58), 10, "paired t")
    assert found.effect == pytest.approx(-4.0621 / math.sqrt(10) * (1 - 3 / 35), abs=1e-4)
    assert (found.low, found.high) == pytest.approx((-2.4598858, -0.7001142), abs=1e-6)
    assert found.p == pytest.approx(0.002833, abs=1e-6)


def test_welchs_test_of_students_sleep():
    """t = -1.8608, 17.776 degrees of freedom, p = 0.07939, interval -3.3655 to 0.2055 (R, t.test of sleep)."""
    found = compare(DEXTRO, LAEVO, paired=False)
    assert (found.mean, found.p, found.method) == (pytest.approx(-1.58), pytest.approx(0.07939, abs=1e-5), "Welch")
    assert (found.low, found.high) == pytest.approx((-3.3654832, 0.2054832), abs=1e-6)
    assert welch(np.var(DEXTRO, ddof=1), 10, np.var(LAEVO, ddof=1), 10)[1] == pytest.approx(17.776, abs=1e-3)


@pytest.mark.parametrize(
    ("effect", "n", "paired"), [(0.2, 393, False), (0.5, 64, False), (0.8, 26, False), (0.5, 34, True)]
)
def test_the_tables_of_sample_sizes_of_cohen_and_gpower(effect, n, paired):
    """A power of .80 at two-sided .05: Cohen 1988, table 2.4.1, values in each group; G*Power's manual, pairs."""
    assert power_of_t(effect, n, paired) >= 0.7995
    assert power_of_t(effect, n - 2, paired) < 0.8
    assert power_of_t(500.0, 5, paired) == pytest.approx(1)


def test_a_line_on_logarithms():
    assert log_slope([10, 100, 1000, 10000], [1.0, 3.0, 5.0, 7.0])[:3] == pytest.approx((2.0, 2.0, 2.0))
    assert math.isnan(log_slope([1, 10], [0, 1]).low)


def test_equal_results_have_the_spread_of_rounding():
    """With 5 pairs and 100 examples a constant difference of 5 points has the interval [4.5, 5.5]."""
    found = compare([45.0] * 5, [40.0] * 5, True, resolution=1.0)
    half = scipy_stats.t.ppf(0.975, 4) / math.sqrt(6) / math.sqrt(5)
    assert (found.low, found.high) == pytest.approx((5 - half, 5 + half))
    assert compare([50.0] * 6, [50.0] * 6, True, resolution=0.1).p == 1


@pytest.mark.parametrize("paired", [True, False])
@pytest.mark.parametrize(("x", "y"), [([100.0] * 5, [0.0] * 5), ([3.0], [1.0])])
def test_differences_without_spread_and_single_seeds_have_no_test(x, y, paired):
    found = compare(x, y, paired)
    assert (found.mean, math.isnan(found.p)) == (x[0] - y[0], True)
    assert seeds_needed(found.effect, paired) is None


@given(st.integers(0, 40))
def test_the_interval_of_a_median_has_at_least_95_percent_and_is_the_narrowest_such(n):
    found = median_interval(range(n))
    if n < FEWEST_VALUES:
        assert math.isnan(found.low)
        return

    def coverage(k):
        return 1 - 2 * sum(math.comb(n, i) for i in range(k)) / 2**n

    assert coverage(int(found.low) + 1) >= 0.95 > coverage(int(found.low) + 2)


NAMES = list("pqrstu")


@given(st.sets(st.sampled_from(list(combinations(NAMES, 2)))))
def test_names_share_a_letter_exactly_if_they_do_not_differ(pairs):
    found = letter_groups(NAMES, sorted(pairs))
    for one, other in combinations(NAMES, 2):
        assert bool(set(found[one]) & set(found[other])) == ((one, other) not in pairs)
    assert found[NAMES[0]].startswith("a")


VALUES = st.lists(st.integers(0, 1000).map(lambda value: value / 10), min_size=2, max_size=12)


@given(VALUES, VALUES, st.booleans(), st.sampled_from([0.0, 0.1, 1.0]))
def test_an_interval_excludes_0_exactly_where_p_is_below_05(x, y, paired, resolution):
    found = compare(x, y, paired and len(x) == len(y), resolution)
    if not math.isnan(found.p) and not math.isclose(found.p, ALPHA, rel_tol=1e-9):
        assert (found.low > 0 or found.high < 0) == (found.p < ALPHA)
        assert found.low - 1e-6 <= found.mean <= found.high + 1e-6


@given(st.integers(1, 400), st.data())
def test_a_share_is_told_from_a_bound_exactly_where_wilsons_interval_excludes_it(n, data):
    right, bound = data.draw(st.integers(0, n)), data.draw(st.integers(0, 100)) / 100
    low, high = wilson(right, n)
    if min(abs(bound - low), abs(bound - high)) > 1e-3:
        assert (score_test(right / n, n, bound) < ALPHA) == (not low <= bound <= high)


@given(st.lists(st.integers(1, 999), min_size=1, max_size=30, unique=True), st.integers(0, 1000))
def test_signs_tell_a_median_from_a_bound_exactly_where_its_interval_excludes_it(values, bound):
    found = median_interval(values)
    if bound not in values:
        outside = bound < found.low or bound > found.high  # never if the ends are unknown
        assert (sign_test(values, bound) <= ALPHA) == outside


@given(st.lists(st.floats(0, 1), min_size=1, max_size=40))
def test_q_is_p_in_order_adjusted_for_its_rank(p):
    """q of the k-th smallest p is the smallest m p / rank of it and of all larger ones (Benjamini & Hochberg 1995)."""
    m, ordered = len(p), sorted(p)
    expected = [min([1.0, *(m * own / (k + 1) for k, own in enumerate(ordered) if own >= one)]) for one in p]
    assert q_values([*p, math.nan])[:-1] == pytest.approx(expected), "nan does not count"
