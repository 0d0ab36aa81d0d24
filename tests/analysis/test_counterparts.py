"""Published figures beside ours: which runs they are compared with, the verdict, and how many more seeds decide."""

import numpy as np
import pytest
import yaml
from scipy import stats

from tests.example_claims import values
from tests.example_records import ENVIRONMENT, edit_result, put, set_environments
from tests.example_tables import rows
from tfstudy.analysis.published import (
    AGREES,
    DIFFERS,
    NOT_RUN,
    UNDECIDED,
    Gap,
    decide,
    figure_of,
    gap_between,
    judge_figure,
    more_seeds,
)
from tfstudy.config.presets import preset
from tfstudy.config.resolve import resolve
from tfstudy.config.trees import flatten, merge

LENGTH = "lake-2018-09"  # 13.8 on length, 5 seeds, no spread, the preset lake-2018
NEAR = (0.135, 0.145, 0.14, 0.13)


def runs(study, name, *shares, arch="lstm", split="length", changes=None, **more):
    """Write runs of a preset, with all their settings; `changes` are settings that differ from it."""
    tree = {"task": "scan", "arch": arch, "data": {"split": split}}
    config = resolve(merge(merge(preset("scan", arch, name), tree), changes or {}))
    settings = config.model_dump(mode="json", exclude_defaults=True)
    label = f"{arch}-{name}-{split}-{'-'.join(flatten(changes or {}))}"
    values(study, arch, *shares, name=label, preset=name, split=split, **more)
    for path in study.glob(f"*/*/s*-{label}*"):
        put(path, "config.yaml", yaml.safe_dump(config.model_dump(mode="json")))
        set_environments(path, ENVIRONMENT | {"settings": settings})
    return study


def judged(study, id_=LENGTH):
    return judge_figure(figure_of(id_), rows(study))


# Which runs a figure is compared with


@pytest.mark.parametrize(
    ("shares", "verdict"),
    [
        (NEAR, AGREES),
        ((0.235, 0.245, 0.24, 0.23), DIFFERS),
        ((0.02, 0.14, 0.25), UNDECIDED),
        ((0.138, 0.137), UNDECIDED),
    ],
)
def test_a_figure_is_compared_with_runs_of_its_own_settings(tmp_path, shares, verdict):
    found = judged(runs(tmp_path, "lake-2018", *shares))
    assert (found.verdict, found.condition.preset) == (verdict, "lake-2018")
    assert found.difference.mean == pytest.approx(100 * np.mean(shares) - 13.8)


@pytest.mark.parametrize(("name", "changes"), [("default", {}), ("lake-2018", {"train": {"steps": 50000}})])
def test_runs_of_another_preset_or_of_one_changed_setting_neither_agree_nor_differ(tmp_path, name, changes):
    study = runs(tmp_path, name, *NEAR, changes=changes)
    found = judged(study)
    assert (found.verdict, found.condition, found.difference) == (NOT_RUN, None, None)
    assert found.reason == "no run with the settings of the preset lake-2018"
    assert judged(study, "lake-2018-13").reason.endswith("; no other run on this test set")
    runs(study, "lake-2018", 0.3, 0.31, 0.32)
    assert judged(study).ours.mean == pytest.approx(31)


def test_a_diverged_run_of_the_same_settings_leaves_a_figure_undecided(tmp_path):
    study = runs(tmp_path, "lake-2018", *NEAR)
    edit_result(next(study.glob("*/*/s3-*")), status="diverged", reason="nan", splits={})
    found = judged(study)
    assert found.verdict == UNDECIDED
    assert found.reason.startswith("1 diverged, and the mean would only be over the other runs")


# The verdict

JUMP = (0.31, 0.58, 0.4, 0.46, 0.61)


def test_a_standard_deviation_makes_welchs_interval(tmp_path):
    found = judged(runs(tmp_path, "dessi-2019", *JUMP, arch="cnn", split="addprim_jump"), "dessi-2019-02")
    ours, theirs = 100 * np.array(JUMP), 8.2 * np.sqrt(5 / 4)  # 69.2 ± 8.2, a population SD of 5 seeds
    test = stats.ttest_ind_from_stats(ours.mean(), ours.std(ddof=1), 5, 69.2, theirs, 5, equal_var=False)
    a, b = ours.var(ddof=1) / 5, theirs**2 / 5
    degrees = (a + b) ** 2 / (a**2 / 4 + b**2 / 4)
    ends = stats.t.interval(0.95, degrees, ours.mean() - 69.2, np.sqrt(a + b))
    assert found.difference[:3] == pytest.approx((ours.mean() - 69.2, *ends))
    assert (test.pvalue < 0.05) == (found.verdict == DIFFERS)
    assert "it can differ but not agree: the published mean is uncertain by 11.4 points" in found.reason


def test_nine_of_ten_replications_of_the_same_experiment_do_not_differ_and_a_prediction_interval_holds_95_percent():
    """Means of 5 seeds around means of 5 seeds, whose standard deviation a paper gives or not."""
    draw, inside = np.random.default_rng(0), {True: 0, False: 0}
    for _ in range(1000):
        ours, theirs = draw.normal(60, 8, (2, 5))
        for known in inside:
            gap = Gap(abs(ours.mean() - theirs.mean()), ours.var(ddof=1), 5, stats.sem(theirs) if known else 0.0, 5)
            inside[known] += gap.excess <= gap.half_width
    assert inside[True] / 1000 == pytest.approx(0.95, abs=0.03)
    assert inside[False] / 1000 == pytest.approx(0.95, abs=0.03)


@pytest.mark.parametrize(
    ("id_", "phrase", "seeds"),
    [("lake-2018-05", "approximate", 5), ("dessi-2019-11", "one run", 1), ("lake-2018-09", "no standard error", 5)],
)
def test_a_value_without_a_standard_error_is_taken_as_a_mean_of_its_seeds_with_our_spread(tmp_path, id_, phrase, seeds):
    figure = figure_of(id_)
    share = figure.value / 100
    shares = (share + 0.001, share, share - 0.001)
    found = judged(runs(tmp_path, figure.preset, *shares, arch=figure.family, split=figure.split), id_)
    half = 0.1 * np.sqrt(1 / 3 + 1 / (figure.n or 1)) * stats.t.ppf(0.975, 2)
    assert (found.verdict, found.difference.method) == (AGREES, "t")
    assert found.difference.high - found.difference.mean == pytest.approx(half)
    assert phrase in found.reason


def test_seeds_with_the_same_result_still_have_an_interval_that_counts_rounding(tmp_path):
    found = judged(runs(tmp_path, "lake-2018", 0.14, 0.14, 0.14))  # 1,000 examples: 0.1 points each
    half = 0.1 / np.sqrt(12) * np.sqrt(1 / 3 + 1 / (figure_of(LENGTH).n or 1)) * stats.t.ppf(0.975, 2)
    assert found.difference.high - found.difference.mean == pytest.approx(half)


@pytest.mark.parametrize(
    ("excess", "half", "verdict"),
    [(4, 1, AGREES), (4, 5.01, UNDECIDED), (5.5, 6, UNDECIDED), (5.5, 1, DIFFERS), (6.5, 6, DIFFERS), (3, 2, AGREES)],
)
def test_ours_agrees_within_the_tolerance_and_differs_outside_it_and_the_prediction_interval(excess, half, verdict):
    assert decide(excess, half) == verdict


# More seeds

SEEN = {  # results of committed runs, in percent
    "turn left, CNN": ("dessi-2019-09", (93.874, 93.957, 96.192, 96.854, 95.861)),
    "jump, CNN": ("dessi-2019-02", (30.742, 58.072, 40.475, 46.263, 60.537)),
    "jump, CNN, another figure": ("dessi-2019-05", (30.742, 58.072, 40.475, 46.263, 60.537)),
    "jump, LSTM beside a GRU": ("bastings-2018-02", (0.013, 0.0, 0.013, 0.052, 0.0)),
}


@pytest.mark.parametrize("name", SEEN)
def test_seeds_are_promised_only_if_they_decide_by_the_rule_of_the_verdict(name):
    id_, results = SEEN[name]
    gap = gap_between(figure_of(id_), results)
    more = more_seeds(gap)
    if decide(gap.excess, gap.half_width) == UNDECIDED and more:
        assert decide(gap.excess, gap._replace(n=gap.n + more).half_width) != UNDECIDED
        assert decide(gap.excess, gap._replace(n=gap.n + more - 1).half_width) == UNDECIDED
