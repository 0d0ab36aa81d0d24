"""Published figures beside ours: which runs they are compared with, and the verdict."""

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
    OPEN,
    decide,
    figure_of,
    judge_figure,
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
        ((0.02, 0.14, 0.25), OPEN),
        ((0.138, 0.137), OPEN),
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
    assert found.reason == "no run with the preset lake-2018"
    runs(study, "lake-2018", 0.3, 0.31, 0.32)
    assert judged(study).ours.mean == pytest.approx(31)
    edit_result(next(study.glob("*/*/s2-lstm-lake-2018-length-[0-9]")), status="diverged", reason="nan", splits={})
    found = judged(study)
    assert (found.verdict, found.reason[:10]) == (OPEN, "1 diverged")


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


@pytest.mark.parametrize(
    ("id_", "phrase", "spread"),
    [("lake-2018-05", "approximate", 0.1), ("dessi-2019-11", "one run", 0.1), ("lake-2018-09", "no standard error", 0)],
)
def test_a_value_without_a_standard_error_is_taken_as_a_mean_with_our_spread(tmp_path, id_, phrase, spread):
    """The spread of equal results is that of rounding: 1,000 examples, 0.1 points each."""
    figure = figure_of(id_)
    shares = [figure.value / 100 + step * spread / 100 for step in (-1, 0, 1)]
    found = judged(runs(tmp_path, figure.preset, *shares, arch=figure.family, split=figure.split), id_)
    deviation = spread or 0.1 / np.sqrt(12)
    half = deviation * np.sqrt(1 / 3 + 1 / (figure.n or 1)) * stats.t.ppf(0.975, 2)
    assert (found.verdict, found.difference.method) == (AGREES, "t")
    assert found.difference.high - found.difference.mean == pytest.approx(half)
    assert phrase in found.reason


@pytest.mark.parametrize(
    ("excess", "half", "verdict"),
    [(4, 1, AGREES), (4, 5.01, OPEN), (5.5, 6, OPEN), (5.5, 1, DIFFERS), (6.5, 6, DIFFERS)],
)
def test_ours_agrees_within_the_tolerance_and_differs_outside_it_and_the_prediction_interval(excess, half, verdict):
    assert decide(excess, half) == verdict
