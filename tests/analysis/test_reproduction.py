"""Published results beside ours."""

import numpy as np
import pytest

from tests.example_claims import values
from tests.example_records import result, write
from tfstudy.analysis import reproduction
from tfstudy.analysis.collection import read_study
from tfstudy.analysis.conditions import conditions
from tfstudy.grids.spec import grid_names
from tfstudy.report.markup import MINUS
from tfstudy.report.reproduction import markdown


def beside(study, paper, tolerance=5.0, **figure):
    [found] = [
        one
        for one in reproduction.compare_paper(paper, conditions(read_study(study).runs), tolerance)
        if all(one.published[key] == value for key, value in figure.items())
    ]
    return found


LAKE = {"split": "length", "arch": "LSTM", "metric": "exact match"}  # 13.8, without a spread


@pytest.mark.parametrize(
    ("shares", "verdict"),
    [
        ((0.135, 0.145, 0.14, 0.13), "agrees"),
        ((0.235, 0.245, 0.24, 0.23), "differs"),
        ((0.02, 0.14, 0.25), "underpowered"),
        ((0.138, 0.137), "underpowered"),
        ((), "not run"),
    ],
)
def test_a_result_without_spread_is_compared_with_our_interval(tmp_path, shares, verdict):
    values(tmp_path, "lstm", *shares)
    compared = beside(tmp_path, "lake-2018", **LAKE)
    assert compared.verdict == verdict
    assert beside(tmp_path, "lake-2018", split="simple", arch="SRN").verdict == "no counterpart"


def test_a_result_with_a_standard_deviation_is_compared_by_welch(tmp_path):
    from scipy import stats

    shares = (0.4, 0.45, 0.38, 0.5, 0.41)
    values(tmp_path, "cnn", *shares, split="addprim_jump", preset="dessi-2019")
    compared = beside(tmp_path, "dessi-2019", split="addprim_jump", value="69.2")
    ours = 100 * np.array(shares)
    expected = stats.ttest_ind_from_stats(ours.mean(), ours.std(ddof=1), 5, 69.2, 8.2, 5, equal_var=False)
    ends = stats.t.interval(0.95, stats_degrees(ours, 8.2, 5), ours.mean() - 69.2, standard_error(ours, 8.2, 5))
    assert compared.difference[:3] == pytest.approx((ours.mean() - 69.2, *ends))
    assert (compared.verdict, expected.pvalue < 0.05, compared.unlike) == ("differs", True, "")
    other = beside(tmp_path, "dessi-2019", split="addprim_jump", value="60.67")
    assert other.unlike == "the paper's settings, but not those of this result"


def standard_error(x, sd, n):
    return np.sqrt(x.var(ddof=1) / len(x) + sd**2 / n)


def stats_degrees(x, sd, n):
    a, b = x.var(ddof=1) / len(x), sd**2 / n
    return (a + b) ** 2 / (a**2 / (len(x) - 1) + b**2 / (n - 1))


def test_the_papers_preset_comes_first_and_differences_of_settings_are_reported(tmp_path):
    values(tmp_path, "lstm", 0.3, 0.31, 0.32)
    assert "not the paper's settings" in beside(tmp_path, "lake-2018", **LAKE).unlike
    values(tmp_path, "lstm", 0.14, 0.15, 0.13, name="theirs", preset="lake-2018")
    compared = beside(tmp_path, "lake-2018", **LAKE)
    assert (compared.conditions[0].preset, compared.unlike, compared.verdict) == ("lake-2018", "", "agrees")
    text = markdown([compared, beside(tmp_path, "lake-2018", **(LAKE | {"arch": "GRU+attention"}))], 5, "")
    assert "| 14.0 [11.5, 16.5] | 3 | lstm lake-2018 | +0.2 [-2.3, +2.7] | agrees |" in text.replace(MINUS, "-")
    assert "without attention, theirs with; an LSTM, theirs a GRU" in text
    assert "underpowered, unlike" in text  # -6.8 [-9.3, -4.3] is neither within 5 points nor outside


@pytest.mark.parametrize(("seeds", "verdict"), [(9, "underpowered"), (10, "agrees")])
def test_the_best_of_ten_seeds_is_compared_with_our_best_of_ten_on_the_same_lengths(tmp_path, seeds, verdict):
    for test in ("test_41_500", "test_41_60"):
        for seed in range(seeds):
            part = result(seed)["splits"]["test"] | {"mean_over_lengths": {"token_accuracy": 0.05 * seed + 0.1}}
            one = {"task": "chomsky", "split": "parity", "splits": {test: part}, "experiment": test}
            write(tmp_path, result(seed, run=f"{test}{seed}", **one))
    compared = beside(tmp_path, "deletang-2022", split="parity", arch="LSTM")
    assert [one.test_set for one in compared.conditions] == ["test_41_500"]
    assert compared.ours.mean == pytest.approx(5 * (seeds - 1) + 10)
    assert beside(tmp_path, "deletang-2022", 50.0, split="parity", arch="LSTM").verdict == verdict


def test_every_paper_has_a_command_or_no_counterpart():
    for name in reproduction.papers():
        command = reproduction.command(name)
        assert command.startswith("tfstudy grid") or all(reproduction._missing(one) for one in reproduction.paper(name))
    assert {"lake-2018", "dessi-2019", "csordas-2021", "deletang-2022"} <= set(grid_names())
