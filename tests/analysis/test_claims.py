"""How claims are judged, from example records."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.example_claims import NEAR_HALF, claim, judged, values
from tests.example_records import ENVIRONMENT, edit_result, put, result, set_environments, write
from tests.example_tables import compared, text_of
from tfstudy.analysis.claims import gather_evidence, judge
from tfstudy.analysis.estimates import estimate_difference, estimate_mean
from tfstudy.analysis.frame import read_studies
from tfstudy.analysis.summary import rows_of
from tfstudy.config.presets import preset
from tfstudy.config.resolve import resolve
from tfstudy.config.trees import flatten, merge, unflatten
from tfstudy.report.claims import about, listing, markdown, reason
from tfstudy.runs.measurement_record import Chart, Measurement, save_measurement
from tfstudy.tasks.scoring import wilson


@pytest.mark.parametrize(
    ("part", "verdict"),
    [
        ({"is": 50, "within": 5}, "supported"),
        ({"is": 60, "within": 5}, "refuted"),
        ({"is": 51, "within": 1}, "undecided"),
        ({"above": 45}, "supported"),
        ({"above": 50.2}, "undecided"),
        ({"below": 45}, "refuted"),
    ],
)
def test_a_mean_is_judged_by_its_whole_interval(tmp_path, part, verdict):
    found = judged(values(tmp_path, "lstm", *NEAR_HALF), {"of": {"arch": "lstm"}, **part})
    assert found.verdict == verdict
    assert (verdict == "undecided") == ("not told from" in reason(found.statements[0]))


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
    assert found.statements[0].mean == pytest.approx(30)


@pytest.mark.parametrize(("seeds", "claimed"), [(1, 50), (2, 90), (4, 50), (4, 90)])
def test_too_few_seeds_decide_nothing(tmp_path, seeds, claimed):
    study = values(tmp_path, "lstm", *(0.5 + 0.001 * seed for seed in range(seeds)))
    found = judged(study, {"of": {"arch": "lstm"}, "is": claimed, "within": 5}, seeds=5)
    assert found.verdict == "undecided"
    assert reason(found.statements[0]).startswith(f"{seeds} of at least 5 seeds; about ")


def test_seeds_with_equal_results_are_judged_by_the_interval_within_a_run(tmp_path):
    values(tmp_path, "lstm", 0, 0, 0)
    found = judged(tmp_path, {"of": {"arch": "lstm"}, "below": 5})
    assert (found.verdict, found.statements[0].test) == ("supported", "score test")
    [one] = found.statements
    assert (one.mean, one.low, one.high) == pytest.approx((0, 0, 100 * wilson(0, one.conditions[0].count)[1]))
    assert (one.n, one.interval) == (3, "Wilson")
    assert judged(tmp_path, {"of": {"arch": "lstm"}, "above": 0}).verdict == "undecided"  # it touches 0
    values(tmp_path, "cnn", 0, 0, 0)
    part = {"of": {"arch": "lstm"}, "minus": {"arch": "cnn"}, "above": 0}
    assert judged(tmp_path, part).verdict == "undecided"


def test_the_verdict_on_a_claim_is_a_count_of_those_on_its_statements(tmp_path):
    values(tmp_path, "lstm", *NEAR_HALF)
    true, false = {"of": {"arch": "lstm"}, "above": 20}, {"of": {"arch": "lstm"}, "above": 80}
    open_, missing = {"of": {"arch": "lstm"}, "above": 50}, {"of": {"arch": "cnn"}, "above": 0}
    cases = {
        "supported": [true], "undecided": [open_], "2 refuted": [false] * 2, "1 supported, 1 refuted": [true, false],
        "1 supported, 2 open": [true, open_, missing], "not run": [missing] * 2,
    }  # fmt: skip
    assert [judged(tmp_path, *parts).verdict for parts in cases.values()] == [*cases]
    assert reason(judged(tmp_path, missing).statements[0]) == "no finished run of this kind"


def test_q_is_p_adjusted_for_all_statements_that_were_measured_together(tmp_path):
    values(tmp_path, "lstm", 0.5, 0.54, 0.58, 0.53, 0.55)
    part, missing = {"of": {"arch": "lstm"}, "above": 50}, {"of": {"arch": "cnn"}, "above": 50}
    far, near = {"of": {"arch": "lstm"}, "above": 10}, {"of": {"arch": "lstm"}, "above": 53.5}
    for parts, factor in (([part], 1), ([part, missing], 1), ([part, far], 1), ([part, near], 2)):
        found = judged(tmp_path, *parts).statements[0]
        assert 0.025 < found.p < 0.05
        assert found.q == pytest.approx(factor * found.p)
        assert found.verdict == ("supported" if factor == 1 else "undecided")
    assert "not told from 50" in reason(found)


def test_a_claim_that_compares_two_conditions_has_the_p_value_and_interval_of_their_study(tmp_path):
    for arch, shares in (("lstm", (0.6, 0.62, 0.66)), ("cnn", (0.5, 0.55, 0.52)), ("transformer", (0.4, 0.5, 0.45))):
        values(tmp_path / "results" / "one", arch, *shares)
    values(tmp_path / "results" / "two", "lstm", 0.1, 0.2, 0.15, name="other")
    higher = claim({"of": {"arch": "lstm"}, "minus": {"arch": "cnn"}, "above": 0})
    lower = claim({"of": {"arch": "cnn"}, "minus": {"arch": "lstm"}, "below": 0}, id="L2")
    studies = read_studies(tmp_path / "results")
    evidence = gather_evidence([higher], studies)
    statement, opposite = rows_of(judge([higher, lower], evidence))
    [same] = [pair.row for pair in compared(tmp_path / "results" / "one")
              if {pair.first.arch, pair.second.arch} == {"lstm", "cnn"}]  # fmt: skip
    assert (statement.p, statement.q) == (same.p, same.q)
    assert {abs(statement.low), abs(statement.high)} == {abs(same.low), abs(same.high)}
    assert opposite.mean == -statement.mean
    assert (statement.verdict == "supported") == same.significant == (opposite.verdict == "supported")


def test_a_comparison_by_another_metric_than_the_table_has_the_family_of_the_table_by_that_metric(tmp_path):
    own = {"task": "translation", "split": "embedded"}
    for arch, shares in (("lstm", (0.6, 0.62, 0.66)), ("cnn", (0.5, 0.55, 0.52)), ("transformer", (0.4, 0.5, 0.45))):
        values(tmp_path / "one", arch, *shares, **own)
    for path in tmp_path.glob("one/*/*/*/result.json"):
        tree = json.loads(path.read_text())
        tree["splits"]["test"]["metrics"]["bleu"] = 0.3
        edit_result(path.parent, **tree)
    higher = claim({"of": {"arch": "lstm"}, "minus": {"arch": "cnn"}, "above": 0}, where=own)
    [statement] = rows_of(judge([higher], gather_evidence([higher], read_studies(tmp_path))))
    assert statement.test == "Welch"
    assert statement.q > statement.p


def test_a_mean_over_surviving_runs_decides_nothing_but_divergence_is_counted(tmp_path):
    values(tmp_path, "lstm", *NEAR_HALF[:4])
    lost = result(4, arch="lstm", experiment="lstm", run="l4", status="diverged")
    write(tmp_path, {k: v for k, v in lost.items() if k != "splits"})
    found = judged(tmp_path, {"of": {"arch": "lstm"}, "above": 20})
    assert (found.verdict, reason(found.statements[0])[:10]) == ("undecided", "1 diverged")
    found = judged(tmp_path, {"of": {"arch": "lstm"}, "metric": "diverged", "below": 90})
    assert (found.verdict, found.statements[0].mean) == ("supported", 20)


def several_conditions(study, **seeds):
    """Write runs of an LSTM on `length` with these numbers of seeds; all but `usual` differ from the preset."""
    tree = merge(preset("scan", "lstm", "default"), {"task": "scan", "arch": "lstm", "data": {"split": "length"}})
    usual = flatten(resolve(tree).model_dump(mode="json"))
    for name, count in seeds.items():
        values(study, "lstm", *(0.5 + 0.01 * seed for seed in range(count)), name=name)
        changed = {} if name.startswith("usual") else {"train.steps": 7}
        for folder in study.glob(f"*/*/s*-{name}[0-9]"):
            put(folder, "config.yaml", json.dumps(unflatten(usual | changed)))


def test_of_several_conditions_the_closest_to_its_preset_is_judged_then_the_one_with_most_seeds(tmp_path):
    several_conditions(tmp_path, usualfew=1, usual=3, other=5)
    [statement] = judged(tmp_path, {"of": {"arch": "lstm"}, "above": 20}).statements
    assert [run.result.run for run in statement.conditions[0].runs] == ["usual0", "usual1", "usual2"]
    assert statement.unused == 2
    [statement] = judged(tmp_path, {"of": {"arch": "lstm", "train.steps": 7}, "above": 20}).statements
    assert len(statement.conditions[0].runs) == 5


def test_a_condition_of_too_few_seeds_for_a_verdict_hides_no_other(tmp_path):
    several_conditions(tmp_path, usual=2, before=5)
    found = judged(tmp_path, {"of": {"arch": "lstm"}, "above": 20})
    assert found.verdict == "supported"
    assert (len(found.statements[0].conditions[0].runs), found.statements[0].unused) == (5, 1)


def configs(study, **by_arch):
    """Runs of architectures with these configs."""
    for arch, config in by_arch.items():
        for folder in study.glob(f"*/{arch}/s*"):
            put(folder, "config.yaml", json.dumps(config))


@pytest.mark.parametrize(
    ("lstm", "cnn"),
    [
        ({"data": {"train_pairs": 1}}, {"data": {"train_pairs": 2}}),
        ({"train": {"batching": "length"}}, {"train": {"batching": "random"}}),
    ],
    ids=["data", "batches"],
)
def test_conditions_with_different_data_or_batches_are_not_compared(tmp_path, lstm, cnn):
    for arch in ("lstm", "cnn"):
        values(tmp_path, arch, *NEAR_HALF)
    configs(tmp_path, lstm=lstm, cnn=cnn)
    part = {"of": {"arch": "lstm"}, "minus": {"arch": "cnn"}, "above": 0}
    found = judged(tmp_path, part)
    assert (found.verdict, reason(found.statements[0])) == ("not run", "no two runs share data and settings")


@pytest.mark.parametrize(
    ("lstm", "cnn"),
    [
        ({"data": {"validation_fraction": 0.05}}, {"data": {"validation_fraction": 0}}),
        ({"decode": {"method": "greedy", "limit": "longest"}}, {"decode": {"method": "greedy"}}),
    ],
    ids=["the fraction held out for validation", "a setting that an older run lacks had its default"],
)
def test_two_presets_may_differ_in_some_settings(tmp_path, lstm, cnn):
    for arch, name in (("lstm", "default"), ("cnn", "dessi-2019")):
        values(tmp_path, arch, *NEAR_HALF, preset=name)
        for folder in tmp_path.glob(f"*/{arch}/s*"):
            set_environments(folder, ENVIRONMENT | {"settings": {"arch": arch}})
    configs(tmp_path, lstm=lstm, cnn=cnn)
    part = {"of": {"arch": "cnn", "preset": "dessi-2019"}, "minus": {"arch": "lstm"}, "below": 5}
    assert judged(tmp_path, part).statements[0].interval == "Welch"


def test_a_claim_that_compares_two_amounts_of_training_data_is_corrected_like_one_with_a_bound(tmp_path):
    for arch, amount, shift in (("lstm", 100, 0), ("lstm", 1000, 0.2), ("cnn", 100, 0.1), ("cnn", 1000, 0.3)):
        values(tmp_path, arch, *(share + shift for share in NEAR_HALF), name=f"{arch}{amount}-")
        for path in tmp_path.glob(f"*/*/s*-{arch}{amount}-*"):
            put(path, "config.yaml", json.dumps({"data": {"train_examples": amount}}))
    small, large = {"arch": "cnn", "data.train_examples": 100}, {"arch": "lstm", "data.train_examples": 1000}
    [found] = judged(tmp_path, {"of": large, "minus": small, "above": 0}).statements
    assert found.mean == pytest.approx(10)
    assert (found.verdict, found.q) == ("supported", found.p)
    [same] = judged(tmp_path, {"of": small, "minus": small | {"arch": "lstm"}, "above": 0}).statements
    assert same.verdict == "supported"


def test_a_statement_about_a_corpus_is_judged_by_the_runs_on_this_corpus(tmp_path):
    for corpus, arch, shift in (("a", "lstm", 0.2), ("a", "cnn", 0), ("b", "lstm", -0.2), ("b", "cnn", 0)):
        near = [share + shift for share in NEAR_HALF]
        values(tmp_path, arch, *near, name=f"{corpus}{arch}", task="translation", split="corpus", corpus=corpus)
    parts = [
        {"of": {"arch": "lstm", "corpus": corpus}, "minus": {"arch": "cnn", "corpus": corpus}, "above": 0}
        for corpus in ("a", "b", "c")
    ]
    found = judged(tmp_path, *parts, where={"task": "translation", "split": "corpus"})
    assert [one.verdict for one in found.statements] == ["supported", "refuted", "not run"]
    assert about(found.statements[0]) == "lstm minus cnn on translation corpus a"


@pytest.mark.parametrize("seeds", [3, 5, 8])
def test_a_truth_on_the_bound_is_decided_as_rarely_as_promised(seeds):
    """The truth lies on a bound, where `supported` and `refuted` are both errors."""
    random = np.random.default_rng(0)
    one, two = [], []
    for _ in range(400):
        first, second = (55 + 2 * random.standard_normal(seeds) for _ in range(2))
        one.append(estimate_mean((45, 55), first).p < 0.05)
        two.append(estimate_difference((0, np.inf), first, second, paired=False).p < 0.05)
    for decided in (one, two):
        assert np.mean(decided) < 0.05 + 4 * (0.05 * 0.95 / 400) ** 0.5


@given(st.lists(st.integers(300, 700).map(lambda v: v / 10), min_size=3, max_size=8))
def test_p_is_below_05_exactly_where_the_interval_excludes_the_deciding_bound(values):
    found = estimate_mean((45.0, 55.0), values, resolution=0.1)
    low, high = found.interval.low, found.interval.high
    assert (low > found.bound or high < found.bound) == (found.p < 0.05) or abs(found.p - 0.05) < 1e-6
    whole = low >= 45 and high <= 55
    assert found.inside == (45 <= found.interval.mean <= 55)
    assert whole == (found.inside and found.p < 0.05) or abs(found.p - 0.05) < 1e-6


CHART = Chart("bar", x="head", y="score")
ROW = {"role": "next", "head": 1}


def measured(study, *each):
    """Save a measurement `head_roles` with these scores of two heads for each run of a study, by seed."""
    runs = sorted(study.glob("*/lstm/s*"))
    for run, scores in zip(runs, each, strict=True):
        rows = [{"role": "next", "head": head, "score": score} for head, score in enumerate(scores, 1)]
        digest = json.loads((run / "result.json").read_text())["run"]
        save_measurement(run, Measurement.of(digest, "head_roles", 1, {}, CHART, rows))


def test_what_an_instrument_measured_is_judged_by_the_rows_that_a_statement_selects(tmp_path):
    measured(values(tmp_path, "lstm", *NEAR_HALF), (0.1, 0.91), (0.12, 0.9), (0.09, 0.92), (0.1, 0.9), (0.11, 0.89))
    rows = {"arch": "lstm", "rows.role": "next"}
    parts = [{"of": rows | {"rows.take": take}} for take in ("mean", "max", "min")]
    for part, mean in zip(parts, (0.504, 0.904, 0.104), strict=True):
        found = judged(tmp_path, part | {"is": mean, "within": 0.1}, metric="head_roles")
        assert found.verdict == "supported"
        assert found.statements[0].mean == pytest.approx(mean)
    first, second = ({"arch": "lstm", "rows.head": head} for head in (1, 2))
    difference = judged(tmp_path, {"of": second, "minus": first, "above": 0.5}, metric="head_roles")
    assert difference.statements[0].mean == pytest.approx(0.8)
    row = "| lstm head 2 minus head 1 on scan length (measured by head_roles) | above 0.5 | +0.800 [+0.774, +0.826] |"
    assert row in markdown([difference])


def undecided(study, **rows):
    """The reason why a statement about rows of head_roles can't be decided; all texts can be written."""
    part = {"of": {"arch": "lstm"} | {f"rows.{key}": value for key, value in rows.items()}, "above": 0}
    found = judged(study, part, metric="head_roles")
    why = reason(found.statements[0])
    assert f"undecided ({why})" in markdown([found])
    assert f"; {why}" in text_of(listing([found], [], details=True))
    assert found.verdict == "undecided"
    return why


def test_a_claim_about_an_instrument_is_not_run_until_it_was_measured(tmp_path):
    values(tmp_path, "lstm", *NEAR_HALF)
    found = judged(tmp_path, {"of": {"arch": "lstm", "rows.head": 1}, "above": 0}, metric="head_roles")
    missing = f"not measured: `tfstudy measure {tmp_path} head_roles --save`"
    assert (found.verdict, reason(found.statements[0])) == ("not run", missing)
    assert f"| not run | It is so. | {missing} |" in markdown([found])


def test_measurements_that_can_not_be_used_decide_nothing_and_the_reason_says_why(tmp_path):
    measured(values(tmp_path, "lstm", *NEAR_HALF), *[range(12)] * 5)
    assert undecided(tmp_path, roll="next") == "head_roles has no column 'roll'; its columns are role, head, score"
    assert undecided(tmp_path, role="nxt") == "head_roles has no role 'nxt', only next"
    assert undecided(tmp_path, head=13) == "head_roles has no head '13', only 1, 2, 3, 4, 5, 6, 7, 8, ..."
    file = next(tmp_path.glob("*/lstm/s0*/instruments/head_roles.json"))
    whole = file.read_text()
    other = Measurement.of(json.loads(whole)["run"], "head_roles", 1, {"examples": 5}, CHART, [ROW | {"score": 0.5}])
    save_measurement(file.parents[1], other)
    assert undecided(tmp_path, role="next") == "runs were measured by head_roles with different settings"
    file.write_text(whole[:-9])
    assert "head_roles.json is broken" in undecided(tmp_path, role="next")
    values(tmp_path, "cnn", *NEAR_HALF)
    for run in tmp_path.glob("*/cnn/s*"):
        digest = json.loads((run / "result.json").read_text())["run"]
        save_measurement(run, Measurement.of(digest, "head_roles", 1, {"examples": 5}, CHART, [ROW | {"score": 0.5}]))
    file.write_text(whole)
    first, second = ({"arch": arch, "rows.role": "next"} for arch in ("lstm", "cnn"))
    difference = {"of": first, "minus": second, "above": 0}
    [one] = judged(tmp_path, difference, metric="head_roles").statements
    assert "different settings" in reason(one)
