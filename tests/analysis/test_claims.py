"""How claims are judged, from example records."""

import json
from collections import Counter

import numpy as np
import pytest

from tests.example_claims import NEAR_HALF, judged, values
from tests.example_records import result, write
from tfstudy.analysis.claims import measure_difference, measure_mean
from tfstudy.analysis.condition_selection import preset_settings
from tfstudy.analysis.significance import holm
from tfstudy.config.trees import unflatten
from tfstudy.report.claims import markdown


@pytest.mark.parametrize(
    ("part", "verdict"),
    [
        ({"is": 50, "within": 5}, "supported"),
        ({"is": 60, "within": 5}, "refuted"),
        ({"is": 51, "within": 1}, "undecided"),
        ({"above": 45}, "supported"),
        ({"above": 55}, "refuted"),
        ({"above": 50.2}, "undecided"),
        ({"below": 55}, "supported"),
        ({"below": 45}, "refuted"),
        ({"below": 49.8}, "undecided"),
    ],
)
def test_a_mean_is_judged_by_its_whole_interval(tmp_path, part, verdict):
    found = judged(values(tmp_path, "lstm", *NEAR_HALF), {"of": {"arch": "lstm"}, **part})
    assert found.verdict == verdict
    assert (verdict == "undecided") == ("includes" in found.reason)


@pytest.mark.parametrize(
    ("part", "verdict"),
    [
        ({"above": 0}, "supported"),
        ({"above": 20}, "supported"),
        ({"above": 30}, "undecided"),  # higher, but by how much is unknown
        ({"above": 55}, "refuted"),  # the claimed margin is excluded
        ({"below": 0}, "refuted"),  # significant in the other direction
        ({"is": 30, "within": 5}, "supported"),
        ({"is": 0, "within": 5}, "refuted"),
    ],
)
def test_a_difference_is_judged_by_its_margin(tmp_path, part, verdict):
    values(tmp_path, "lstm", 0.79, 0.8, 0.81, 0.8, 0.8)
    values(tmp_path, "cnn", 0.49, 0.52, 0.5, 0.51, 0.48)
    found = judged(tmp_path, {"of": {"arch": "lstm"}, "minus": {"arch": "cnn"}, **part})
    assert found.verdict == verdict
    assert found.statements[0].measurement.interval.mean == pytest.approx(30)


@pytest.mark.parametrize("seeds", [1, 2, 3, 4])
@pytest.mark.parametrize("bounds", [{"is": 50, "within": 5}, {"is": 90, "within": 5}])
def test_too_few_seeds_decide_nothing(tmp_path, seeds, bounds):
    study = values(tmp_path, "lstm", *(0.5 + 0.001 * seed for seed in range(seeds)))
    found = judged(study, {"of": {"arch": "lstm"}, **bounds}, seeds=5)
    assert found.verdict == "undecided"
    assert found.reason.startswith(f"{seeds} of at least 5 seeds; about {5 - seeds} more")


def test_seeds_with_equal_results_are_judged_by_the_interval_within_a_run(tmp_path):
    values(tmp_path, "lstm", 0, 0, 0)
    found = judged(tmp_path, {"of": {"arch": "lstm"}, "below": 5})
    assert (found.verdict, found.statements[0].measurement.test) == ("supported", "")
    assert "0.0 [0.0, 0.1] within a run (n = 3);" in markdown([found])
    assert judged(tmp_path, {"of": {"arch": "lstm"}, "above": 0}).verdict == "undecided"  # it touches 0
    values(tmp_path, "cnn", 0, 0, 0)
    part = {"of": {"arch": "lstm"}, "minus": {"arch": "cnn"}, "above": 0}
    assert judged(tmp_path, part).verdict == "undecided"


def test_all_statements_must_hold_and_one_refutes(tmp_path):
    values(tmp_path, "lstm", *NEAR_HALF)
    true, false = {"of": {"arch": "lstm"}, "above": 20}, {"of": {"arch": "lstm"}, "above": 80}
    open_, missing = {"of": {"arch": "lstm"}, "above": 50}, {"of": {"arch": "cnn"}, "above": 0}
    found = [judged(tmp_path, *parts)[1:3] for parts in ([true] * 2, [true, false], [true, open_], [true, missing])]
    assert [verdict for verdict, _ in found] == ["supported", "refuted", "undecided", "undecided"]
    assert found[3][1] == "supported: statement 1; not run: statement 2"
    found = judged(tmp_path, missing, missing)
    assert (found.verdict, found.reason) == ("not run", "no finished run of this kind")


def test_p_is_corrected_over_the_statements_of_a_claim(tmp_path):
    values(tmp_path, "lstm", 0.5, 0.54, 0.58, 0.53, 0.55)
    part = {"of": {"arch": "lstm"}, "above": 50}
    alone, both = judged(tmp_path, part), judged(tmp_path, part, part)
    assert 0.025 < alone.statements[0].p < 0.05
    assert both.statements[0].p == pytest.approx(2 * alone.statements[0].p)
    assert (alone.verdict, both.verdict) == ("supported", "undecided")
    assert "after correction" in both.statements[0].reason


def test_a_mean_over_surviving_runs_decides_nothing_but_divergence_is_counted(tmp_path):
    values(tmp_path, "lstm", *NEAR_HALF[:4])
    lost = result(4, arch="lstm", experiment="lstm", run="l4", status="diverged")
    write(tmp_path, {k: v for k, v in lost.items() if k != "splits"})
    found = judged(tmp_path, {"of": {"arch": "lstm"}, "above": 20})
    assert (found.verdict, found.reason[:10]) == ("undecided", "1 diverged")
    found = judged(tmp_path, {"of": {"arch": "lstm"}, "metric": "diverged", "below": 90})
    assert (found.verdict, found.statements[0].measurement.interval.mean) == ("supported", 20)


def test_of_several_conditions_the_closest_to_its_preset_is_judged_then_the_one_with_most_seeds(tmp_path):
    usual = dict(preset_settings("scan", "length", "lstm", "default"))
    for name, config, seeds in (("few", {}, 1), ("usual", {}, 3), ("other", {"train.steps": 7}, 5)):
        values(tmp_path, "lstm", *(0.5 + 0.01 * seed for seed in range(seeds)), name=name)
        for folder in tmp_path.glob(f"*/*/s*-{name}*"):
            (folder / "config.yaml").write_text(json.dumps(unflatten(usual | config)))
    [statement] = judged(tmp_path, {"of": {"arch": "lstm"}, "above": 20}).statements
    assert [run.result.run for run in statement.conditions[0].runs] == ["usual0", "usual1", "usual2"]
    assert statement.unused == 2
    [statement] = judged(tmp_path, {"of": {"arch": "lstm", "train.steps": 7}, "above": 20}).statements
    assert len(statement.conditions[0].runs) == 5


def test_conditions_with_different_data_are_not_compared(tmp_path):
    for arch, pairs in (("lstm", 1), ("cnn", 2)):
        values(tmp_path, arch, *NEAR_HALF)
        for folder in tmp_path.glob(f"*/{arch}/s*"):
            (folder / "config.yaml").write_text(json.dumps({"data": {"train_pairs": pairs}}))
    part = {"of": {"arch": "lstm"}, "minus": {"arch": "cnn"}, "above": 0}
    assert judged(tmp_path, part)[1:3] == ("not run", "no two runs share data and settings")


def shares(draws, test):
    """How often a test on drawn figures comes out in each way."""
    random = np.random.default_rng(0)
    counts = Counter(test(random) for _ in range(draws))
    return {side: count / draws for side, count in counts.items()}


@pytest.mark.parametrize("seeds", [3, 5, 8])
def test_a_truth_on_the_bound_is_rarely_decided(seeds):
    """The truth lies on a bound, where `supported` and `refuted` are both errors: .025 each is what is promised."""

    def side(random):
        first = dict(enumerate(55 + 2 * random.standard_normal(seeds)))
        found = measure_mean((45, 55), first)
        return found.side if not found.p >= 0.05 else "across"

    def direction(random):
        first, second = (dict(enumerate(50 + 2 * random.standard_normal(seeds))) for _ in range(2))
        found = measure_difference((0, np.inf), first, second, paired=False)
        return found.side if not found.p >= 0.05 else "across"

    for test in (side, direction):
        found = shares(400, test)
        assert found["across"] > 0.9
        assert max(found.get(wrong, 0) for wrong in ("within", "above", "below")) <= 0.045


def test_of_many_true_statements_one_is_rarely_refuted(tmp_path):
    """Four statements whose truth is on the bound: refuted falsely, over all of them, in .025 of cases."""

    def any_refuted(random):
        found = [measure_mean((50, np.inf), dict(enumerate(50 + 2 * random.standard_normal(5)))) for _ in range(4)]
        corrected = holm([one.p for one in found])
        return any(one.side == "below" and p < 0.05 for one, p in zip(found, corrected, strict=True))

    assert shares(300, any_refuted).get(True, 0) <= 0.05


def test_two_presets_may_hold_out_different_fractions_for_validation(tmp_path):
    for arch, preset, share in (("lstm", "default", 0.05), ("cnn", "dessi-2019", 0)):
        values(tmp_path, arch, *NEAR_HALF, preset=preset)
        for folder in tmp_path.glob(f"*/{arch}/s*"):
            (folder / "config.yaml").write_text(json.dumps({"data": {"validation_fraction": share}}))
    part = {"of": {"arch": "cnn", "preset": "dessi-2019"}, "minus": {"arch": "lstm"}, "below": 5}
    assert judged(tmp_path, part).statements[0].measurement.interval.method == "Welch"
