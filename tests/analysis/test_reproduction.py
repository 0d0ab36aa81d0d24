"""Published figures beside ours: which runs they are compared with, and the verdict."""

import json

import numpy as np
import pytest
from scipy import stats

from tests.example_records import result, write
from tests.example_reproductions import judged, runs
from tfstudy.analysis.collection import read_study
from tfstudy.analysis.conditions import conditions
from tfstudy.analysis.counterparts import command, counts, has_preset, missing_counterpart
from tfstudy.analysis.published import all_figures, figure_of, figures_of, papers
from tfstudy.analysis.reproduction import (
    AGREES,
    DIFFERS,
    NO_COUNTERPART,
    NOT_RUN,
    OTHER_SETTINGS,
    UNDECIDED,
    VERDICTS,
    compare_paper,
    decide,
    family_size,
    judge_figure,
)
from tfstudy.grids.spec import grid_names

# Which runs a figure is compared with

LENGTH = "lake-2018-09"  # 13.8 on length, 5 seeds, no spread, the preset lake-2018


@pytest.mark.parametrize(
    ("shares", "verdict"),
    [
        ((0.135, 0.145, 0.14, 0.13), AGREES),
        ((0.235, 0.245, 0.24, 0.23), DIFFERS),
        ((0.02, 0.14, 0.25), UNDECIDED),
        ((0.138, 0.137), UNDECIDED),
    ],
)
def test_a_figure_is_compared_with_runs_of_its_own_settings(tmp_path, shares, verdict):
    found = judged(runs(tmp_path, "lake-2018", *shares), LENGTH)
    assert (found.verdict, found.unlike, found.conditions[0].preset) == (verdict, "", "lake-2018")
    assert found.difference.mean == pytest.approx(100 * np.mean(shares) - 13.8)


def test_runs_of_another_preset_neither_agree_nor_differ(tmp_path):
    study = runs(tmp_path, "default", 0.135, 0.145, 0.14, 0.13)
    found = judged(study, LENGTH)
    assert (found.verdict, found.difference) == (OTHER_SETTINGS, None)
    assert found.ours.mean == pytest.approx(13.75)
    assert "with attention, theirs without" in found.unlike
    assert "preset default" in found.unlike
    assert "2 layers of 200" in found.unlike
    runs(study, "lake-2018", 0.3, 0.31, 0.32)
    assert judged(study, LENGTH).ours.mean == pytest.approx(31)


def test_a_single_changed_setting_makes_other_settings(tmp_path):
    study = runs(tmp_path, "lake-2018", 0.135, 0.145, 0.14, 0.13, changes={"train": {"steps": 50000}})
    found = judged(study, LENGTH)
    assert found.verdict == OTHER_SETTINGS
    assert "steps=50000" in found.unlike


def test_a_gru_is_only_shown_beside_an_lstm(tmp_path):
    study = runs(tmp_path, "lake-2018", 0.2, 0.21, 0.205)
    found = judged(study, "lake-2018-08")  # 20.8 on length, a GRU with attention
    assert found.verdict == OTHER_SETTINGS
    assert "an LSTM, theirs a GRU; without attention, theirs with" in found.unlike


@pytest.mark.parametrize(
    ("id_", "reason"),
    [
        ("lake-2018-03", "simple recurrent network"),
        ("dessi-2019-08", "the highest of 580 settings"),
        ("dessi-2019-37", "modified network"),
        ("csordas-2021-02", "no such test set"),
        ("hupkes-2020-01", "no split scheme iid"),
        ("akyurek-2022-04", "pre-training"),
        ("kim-2020-01", "no task cogs"),
    ],
)
def test_a_figure_that_tfstudy_cannot_run_has_no_counterpart(id_, reason):
    found = judge_figure(figure_of(id_), [])
    assert found.verdict == NO_COUNTERPART
    assert reason in found.reason


def test_a_figure_without_any_run_on_its_test_set_was_not_run(tmp_path):
    study = runs(tmp_path, "lake-2018", 0.1, 0.2, 0.3)
    assert judged(study, "lake-2018-13").verdict == NOT_RUN
    assert judged(study, "lake-2018-14").verdict == NOT_RUN
    assert "preset lake-2018" in judged(study, "lake-2018-13").reason


def test_the_tables_of_other_test_sets_are_not_taken(tmp_path):
    part = result(0, 0.9)["splits"]["test"] | {"mean_over_lengths": {"token_accuracy": 0.9}}
    for test in ("test_41_500", "test_41_60"):
        one = {"task": "chomsky", "split": "parity", "splits": {test: part}, "experiment": test}
        write(tmp_path, result(0, run=f"{test}0", **one))
    found = judged(tmp_path, "deletang-2022-10")  # best of 10 seeds on 41-500; no preset
    assert (found.verdict, found.conditions[0].test_set) == (OTHER_SETTINGS, "test_41_500")


def test_a_diverged_run_of_the_same_settings_leaves_a_figure_undecided(tmp_path):
    study = runs(tmp_path, "lake-2018", 0.135, 0.145, 0.14, 0.13)
    path = next(study.glob("*/*/s3-*/result.json"))
    path.write_text(json.dumps(json.loads(path.read_text()) | {"status": "diverged", "reason": "nan", "splits": {}}))
    found = judged(study, LENGTH)
    assert found.verdict == UNDECIDED
    assert found.reason.startswith("1 diverged, and the mean would only be over the other runs")


def test_every_figure_has_a_verdict_without_any_run_and_none_agrees():
    for name in papers():
        for found in compare_paper(name, []):
            assert found.verdict in VERDICTS
            assert (found.verdict == NO_COUNTERPART) == bool(missing_counterpart(found.figure))
            assert found.verdict in (NO_COUNTERPART, NOT_RUN)


def test_figures_are_counted_by_what_they_can_be_compared_with():
    for name in papers():
        assert sum(counts(figures_of(name))) == len(figures_of(name))
    assert counts(figures_of("csordas-2021")) == (1, 0, 5)
    assert all(has_preset(figure) for figure in all_figures() if figure.preset)


# The verdict

JUMP = (0.31, 0.58, 0.4, 0.46, 0.61)


def test_a_standard_deviation_makes_welchs_interval_of_the_level_of_the_papers_family(tmp_path):
    study = runs(tmp_path, "dessi-2019", *JUMP, arch="cnn", split="addprim_jump")
    found = judged(study, "dessi-2019-02")  # 69.2 ± 8.2, a population SD of 5 seeds
    ours, theirs = 100 * np.array(JUMP), 8.2 * np.sqrt(5 / 4)
    a, b = ours.var(ddof=1) / 5, theirs**2 / 5
    degrees = (a + b) ** 2 / (a**2 / 4 + b**2 / 4)
    m = len([figure for figure in figures_of("dessi-2019") if figure.preset])
    ends = stats.t.interval(1 - 0.05 / m, degrees, ours.mean() - 69.2, np.sqrt(a + b))
    assert m >= 4
    assert found.difference[:3] == pytest.approx((ours.mean() - 69.2, *ends))
    test = stats.ttest_ind_from_stats(ours.mean(), ours.std(ddof=1), 5, 69.2, theirs, 5, equal_var=False)
    assert (test.pvalue * m < 0.05) == (found.difference.high < 0)


def test_the_family_of_a_paper_does_not_depend_on_what_was_run(tmp_path):
    alone = runs(tmp_path / "one", "lake-2018", 0.135, 0.145, 0.14)
    both = runs(tmp_path / "two", "lake-2018", 0.135, 0.145, 0.14)
    runs(both, "lake-2018", 0.9, 0.91, 0.92, split="simple")
    assert judged(alone, LENGTH).difference == judged(both, LENGTH).difference
    assert family_size("lake-2018") == 8
    assert family_size("bastings-2018") == 1


@pytest.mark.parametrize(
    ("shares", "id_", "split", "phrase"),
    [
        ((0.0, 0.001, 0.0, 0.002, 0.0), "lake-2018-15", "addprim_jump", "both near 0: this says little"),
        ((1.0, 0.999, 1.0), "lake-2018-02", "simple", "both near 100: this says little"),
        ((0.135, 0.145, 0.14, 0.13), LENGTH, "length", "within 5 points"),
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
    study = runs(tmp_path, figure.preset, *shares, arch=figure.family, split=figure.split)
    found = judged(study, id_)
    half = 100 * stats.sem(shares) * stats.t.ppf(1 - 0.025 / family_size(figure.paper), 2)
    assert (found.verdict, found.difference.method) == (AGREES, "t")
    assert found.difference.high - found.difference.mean == pytest.approx(half)
    assert phrase in found.reason
    assert "as if exact" in found.reason


def figure_like(**changes):
    from msgspec.structs import replace

    return replace(figure_of(LENGTH), **changes)


@pytest.mark.parametrize(
    ("kind", "value", "verdict"),
    [
        ("upper_bound", 20.0, AGREES),
        ("upper_bound", 5.0, DIFFERS),
        ("lower_bound", 5.0, AGREES),
        ("lower_bound", 25.0, DIFFERS),
        ("lower_bound", 19.0, UNDECIDED),
    ],
)
def test_a_bound_is_violated_on_one_side_only(tmp_path, kind, value, verdict):
    study = runs(tmp_path, "lake-2018", 0.135, 0.145, 0.14, 0.14)
    found = judge_figure(figure_like(value_kind=kind, value=value), conditions(read_study(study).runs))
    assert found.verdict == verdict


@pytest.mark.parametrize(("seeds", "verdict", "best"), [(4, UNDECIDED, 40), (5, AGREES, 50), (7, AGREES, 50)])
def test_the_best_of_k_seeds_is_compared_with_our_first_k(tmp_path, seeds, verdict, best):
    study = runs(tmp_path, "lake-2018", *(0.1 * (seed + 1) for seed in range(seeds)))
    figure = figure_like(value_kind="best", best_of=5, value=52.0)
    found = judge_figure(figure, conditions(read_study(study).runs))
    assert (found.verdict, round(found.ours.mean), found.ours.n) == (verdict, best, min(seeds, 5))
    assert np.isnan(found.difference.low)


def test_a_run_that_diverged_is_one_of_the_best_of_k(tmp_path):
    study = runs(tmp_path, "lake-2018", *(0.1 * (seed + 1) for seed in range(6)))
    path = next(study.glob("*/*/s4-*/result.json"))
    lost = {k: v for k, v in json.loads(path.read_text()).items() if k not in ("splits", "digest")}
    path.write_text(json.dumps(lost | {"status": "diverged", "reason": "nan"}))
    found = judge_figure(figure_like(value_kind="best", best_of=5, value=42.0), conditions(read_study(study).runs))
    assert (found.verdict, round(found.ours.mean), found.ours.n) == (AGREES, 40, 5)


def test_seeds_with_the_same_result_still_have_an_interval_that_counts_rounding(tmp_path):
    found = judged(runs(tmp_path, "lake-2018", 0.14, 0.14, 0.14), LENGTH)  # 1,000 examples: 0.1 points each
    half = 0.1 / np.sqrt(12) / np.sqrt(3) * stats.t.ppf(1 - 0.025 / 8, 2)
    assert found.difference.high - found.difference.mean == pytest.approx(half)


@pytest.mark.parametrize(
    ("excess", "half", "verdict"),
    [(4, 1, AGREES), (4, 1.01, UNDECIDED), (6, 1, UNDECIDED), (6.5, 1, DIFFERS), (-20, 24, AGREES)],
)
def test_the_whole_interval_must_lie_within_the_tolerance_or_outside(excess, half, verdict):
    assert decide(excess, half, 5.0) == verdict


# Papers


def test_every_paper_has_a_command_or_no_counterpart():
    for name in papers():
        line = command(name)
        missing = all(missing_counterpart(figure) for figure in figures_of(name))
        assert line.startswith("tfstudy grid") != missing
    assert {"lake-2018", "dessi-2019", "csordas-2021", "deletang-2022"} <= set(grid_names())
    assert "--arch lstm,transformer" in command("li-2023")
