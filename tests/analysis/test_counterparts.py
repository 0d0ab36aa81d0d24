"""Published figures beside ours: which runs they are compared with, the verdict, and how many more seeds decide."""

import json
from statistics import variance

import numpy as np
import pytest
import yaml
from scipy import stats

from tests.example_claims import values
from tests.example_records import ENVIRONMENT
from tests.example_tables import rows
from tfstudy.analysis.published import (
    AGREES,
    DIFFERS,
    NOT_RUN,
    UNDECIDED,
    Gap,
    decide,
    family_size,
    figure_of,
    figures_of,
    gap_between,
    judge_figure,
    more_seeds,
    unlike,
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
        (path / "config.yaml").write_text(yaml.safe_dump(config.model_dump(mode="json")))
        (path / "env.json").write_text(json.dumps([ENVIRONMENT | {"settings": settings}]))
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


def test_how_other_settings_differ_is_said_in_words(tmp_path):
    [condition] = rows(runs(tmp_path, "default", 0.1, 0.2))
    text = unlike(figure_of(LENGTH), condition)
    assert text.startswith(
        "with attention, theirs without; ours: preset default; theirs: overall best: 2 layers of 200"
    )


def test_a_diverged_run_of_the_same_settings_leaves_a_figure_undecided(tmp_path):
    study = runs(tmp_path, "lake-2018", *NEAR)
    path = next(study.glob("*/*/s3-*/result.json"))
    path.write_text(json.dumps(json.loads(path.read_text()) | {"status": "diverged", "reason": "nan", "splits": {}}))
    found = judged(study)
    assert found.verdict == UNDECIDED
    assert found.reason.startswith("1 diverged, and the mean would only be over the other runs")


# The verdict

JUMP = (0.31, 0.58, 0.4, 0.46, 0.61)


def test_a_standard_deviation_makes_welchs_interval_of_the_level_of_the_papers_family(tmp_path):
    found = judged(runs(tmp_path, "dessi-2019", *JUMP, arch="cnn", split="addprim_jump"), "dessi-2019-02")
    ours, theirs = 100 * np.array(JUMP), 8.2 * np.sqrt(5 / 4)  # 69.2 ± 8.2, a population SD of 5 seeds
    a, b = ours.var(ddof=1) / 5, theirs**2 / 5
    degrees = (a + b) ** 2 / (a**2 / 4 + b**2 / 4)
    m = len([figure for figure in figures_of("dessi-2019") if figure.preset])
    ends = stats.t.interval(1 - 0.05 / m, degrees, ours.mean() - 69.2, np.sqrt(a + b))
    assert m >= 4
    assert found.difference[:3] == pytest.approx((ours.mean() - 69.2, *ends))
    test = stats.ttest_ind_from_stats(ours.mean(), ours.std(ddof=1), 5, 69.2, theirs, 5, equal_var=False)
    assert (test.pvalue * m < 0.05) == (found.difference.high < 0)
    assert "it can differ but not agree: the published mean is uncertain by 20.8 points" in found.reason


def test_the_family_of_a_paper_does_not_depend_on_what_was_run(tmp_path):
    alone = runs(tmp_path / "one", "lake-2018", 0.135, 0.145, 0.14)
    both = runs(tmp_path / "two", "lake-2018", 0.135, 0.145, 0.14)
    runs(both, "lake-2018", 0.9, 0.91, 0.92, split="simple")
    assert judged(alone).difference == judged(both).difference
    assert (family_size("lake-2018"), family_size("bastings-2018")) == (8, 1)


@pytest.mark.parametrize(
    ("shares", "id_", "split", "phrase"),
    [
        ((0.0, 0.001, 0.0, 0.002, 0.0), "lake-2018-15", "addprim_jump", "both near 0: this says little"),
        ((1.0, 0.999, 1.0), "lake-2018-02", "simple", "both near 100: this says little"),
        (NEAR, LENGTH, "length", "within 5 points"),
    ],
)
def test_agreement_at_the_floor_or_the_ceiling_says_so(tmp_path, shares, id_, split, phrase):
    found = judged(runs(tmp_path, "lake-2018", *shares, split=split), id_)
    assert found.verdict == AGREES
    assert phrase in found.reason
    assert ("says little" in found.reason) == ("says little" in phrase)


@pytest.mark.parametrize(
    ("id_", "phrase"),
    [("lake-2018-05", "approximate"), ("dessi-2019-11", "one run"), ("lake-2018-09", "no standard error")],
)
def test_a_value_without_a_standard_error_is_taken_as_it_stands_and_the_reason_says_so(tmp_path, id_, phrase):
    figure = figure_of(id_)
    share = figure.value / 100
    shares = (share + 0.001, share, share - 0.001)
    found = judged(runs(tmp_path, figure.preset, *shares, arch=figure.family, split=figure.split), id_)
    half = 100 * stats.sem(shares) * stats.t.ppf(1 - 0.025 / family_size(figure.paper), 2)
    assert (found.verdict, found.difference.method) == (AGREES, "t")
    assert found.difference.high - found.difference.mean == pytest.approx(half)
    assert phrase in found.reason
    assert "as if exact" in found.reason


def test_seeds_with_the_same_result_still_have_an_interval_that_counts_rounding(tmp_path):
    found = judged(runs(tmp_path, "lake-2018", 0.14, 0.14, 0.14))  # 1,000 examples: 0.1 points each
    half = 0.1 / np.sqrt(12) / np.sqrt(3) * stats.t.ppf(1 - 0.025 / 8, 2)
    assert found.difference.high - found.difference.mean == pytest.approx(half)


@pytest.mark.parametrize(
    ("excess", "half", "verdict"), [(4, 1, AGREES), (4, 1.01, UNDECIDED), (6, 1, UNDECIDED), (6.5, 1, DIFFERS)]
)
def test_the_whole_interval_must_lie_within_the_tolerance_or_outside(excess, half, verdict):
    assert decide(excess, half) == verdict


# More seeds

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
    assert decide(gap.excess, gap.half_width) == UNDECIDED
    assert more_seeds(gap) == more
    # one more seed, or a few, would make the gap larger than half its interval, which does not decide
    assert any(gap.excess > gap._replace(n=gap.n + one).half_width for one in range(1, 6))
    if more:
        assert decide(gap.excess, gap._replace(n=gap.n + more - 1).half_width) == UNDECIDED


@pytest.mark.parametrize(("excess", "deviation", "error"), [(12.0, 12.0, 0.0), (2.0, 6.0, 0.0), (22.0, 12.0, 4.1)])
def test_about_every_second_study_with_the_promised_seeds_is_decided(excess, deviation, error):
    gap = Gap(excess, deviation**2, 5, error, 5 if error else 0)
    more = more_seeds(gap)
    assert more
    draws = np.random.default_rng(0).normal(excess, deviation, (400, gap.n + more))
    decided = [
        decide(abs(x.mean()), gap._replace(n=len(x), variance=variance(x.tolist())).half_width) != UNDECIDED
        for x in draws
    ]
    assert 0.4 < np.mean(decided) < 0.68
