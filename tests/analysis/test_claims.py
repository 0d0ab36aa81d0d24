"""How claims are judged, from example records."""

import json
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.example_claims import NEAR_HALF, claim, judged, values
from tests.example_records import ENVIRONMENT, edit_result, put, result, set_environments, write
from tests.example_tables import compared, text_of
from tfstudy.analysis.claims import judge, of_mean
from tfstudy.analysis.frame import read_studies
from tfstudy.analysis.summary import rows_of
from tfstudy.config.presets import preset
from tfstudy.config.resolve import resolve
from tfstudy.config.trees import flatten, merge, unflatten
from tfstudy.report.claims import listing
from tfstudy.report.markup import MINUS
from tfstudy.runs.schema import Chart, Measurement
from tfstudy.runs.store import save_measurement


@pytest.mark.parametrize(
    ("part", "verdict", "mean"),
    [
        ({"is": 50, "within": 5}, "supported", 50),
        ({"is": 60, "within": 5}, "refuted", 50),
        ({"is": 51, "within": 1}, "open", 50),
        ({"above": 50.2}, "open", 50),
        ({"below": 45}, "refuted", 50),
        ({"minus": {"arch": "cnn"}, "above": 20}, "supported", 30),
        ({"minus": {"arch": "cnn"}, "above": 30}, "open", 30),  # higher, but by how much is unknown
        ({"minus": {"arch": "cnn"}, "above": 55}, "refuted", 30),  # the claimed margin is excluded
        ({"minus": {"arch": "cnn"}, "below": 0}, "refuted", 30),  # significant in the other direction
        ({"minus": {"arch": "cnn"}, "is": 30, "within": 5}, "supported", 30),
    ],
)
def test_a_mean_or_a_difference_is_judged_by_its_whole_interval(tmp_path, part, verdict, mean):
    values(tmp_path, "lstm", *NEAR_HALF)
    values(tmp_path, "cnn", 0.19, 0.22, 0.2, 0.21, 0.18)
    found = judged(tmp_path, {"of": {"arch": "lstm"}, **part})
    assert (found.verdict, found.statements[0].mean) == (verdict, pytest.approx(mean))


@pytest.mark.parametrize("seeds", [1, 4])
def test_too_few_seeds_decide_nothing(tmp_path, seeds):
    study = values(tmp_path, "lstm", *(0.5 + 0.001 * seed for seed in range(seeds)))
    found = judged(study, {"of": {"arch": "lstm"}, "is": 90, "within": 5}, seeds=5)
    assert (found.verdict, found.statements[0].reason) == ("open", f"{seeds} of at least 5 seeds")


def test_seeds_with_equal_results_are_judged_by_the_interval_within_a_run(tmp_path):
    values(tmp_path, "lstm", 0, 0, 0)
    found = judged(tmp_path, {"of": {"arch": "lstm"}, "below": 5})
    [one] = found.statements
    assert (found.verdict, one.test, one.n, one.interval) == ("supported", "score test", 3, "Wilson")
    assert (one.mean, one.low, one.high) == (0, *(100 * end for end in one.conditions[0].wilson))
    assert judged(tmp_path, {"of": {"arch": "lstm"}, "above": 0}).verdict == "open"  # it touches 0


def test_the_verdict_on_a_claim_is_a_count_of_those_on_its_statements(tmp_path):
    values(tmp_path, "lstm", *NEAR_HALF)
    true, false = {"of": {"arch": "lstm"}, "above": 20}, {"of": {"arch": "lstm"}, "above": 80}
    open_, missing = {"of": {"arch": "lstm"}, "above": 50}, {"of": {"arch": "cnn"}, "above": 0}
    cases = {
        "open": [open_], "2 refuted": [false] * 2, "1 supported, 1 refuted": [true, false],
        "1 supported, 1 open, 1 not run": [true, open_, missing], "not run": [missing] * 2,
    }  # fmt: skip
    assert [judged(tmp_path, *parts).verdict for parts in cases.values()] == [*cases]


def test_q_is_p_adjusted_for_all_statements_that_were_measured_together(tmp_path):
    values(tmp_path, "lstm", 0.5, 0.54, 0.58, 0.53, 0.55)
    part, missing = {"of": {"arch": "lstm"}, "above": 50}, {"of": {"arch": "cnn"}, "above": 50}
    near = {"of": {"arch": "lstm"}, "above": 53.5}
    for parts, factor in (([part], 1), ([part, missing], 1), ([part, near], 2)):
        found = judged(tmp_path, *parts).statements[0]
        assert 0.025 < found.p < 0.05
        assert found.q == pytest.approx(factor * found.p)
        assert found.verdict == ("supported" if factor == 1 else "open")


def test_a_claim_that_compares_two_conditions_has_the_p_value_and_interval_of_their_study(tmp_path):
    for arch, shares in (("lstm", (0.6, 0.62, 0.66)), ("cnn", (0.5, 0.55, 0.52)), ("transformer", (0.4, 0.5, 0.45))):
        values(tmp_path / "one", arch, *shares)
    values(tmp_path / "two", "lstm", 0.1, 0.2, 0.15, 0.12, name="other")  # more seeds, but of another study
    higher = claim({"of": {"arch": "lstm"}, "minus": {"arch": "cnn"}, "above": 0})
    lower = claim({"of": {"arch": "cnn"}, "minus": {"arch": "lstm"}, "below": 0}, id="L2")
    statement, opposite = rows_of(judge([higher, lower], read_studies(tmp_path)))
    [same] = [one for one in compared(tmp_path / "one") if {"lstm", "cnn"} == {one.first.arch, one.second.arch}]
    assert (statement.p, statement.q) == (same.p, same.q)
    assert {abs(statement.low), abs(statement.high)} == {abs(same.low), abs(same.high)}
    assert opposite.mean == -statement.mean
    assert (statement.verdict == "supported") == same.significant == (opposite.verdict == "supported")


def test_a_difference_that_a_table_does_not_show_is_open_whatever_its_q(tmp_path):
    values(tmp_path, "lstm", *[0.5] * 5)
    values(tmp_path, "cnn", *[0.4999] * 5)
    for run in tmp_path.glob("*/*/s*"):
        splits = json.loads((run / "result.json").read_text())["splits"]
        edit_result(run, splits={"test": splits["test"] | {"n": 10**6}})
    [one] = judged(tmp_path, {"of": {"arch": "lstm"}, "minus": {"arch": "cnn"}, "above": 0}).statements
    assert (one.verdict, one.q < 0.05, one.reason) == ("open", True, "a difference below 0.05 points")


def test_a_mean_over_surviving_runs_decides_nothing_but_divergence_is_counted(tmp_path):
    values(tmp_path, "lstm", *NEAR_HALF[:4])
    lost = result(4, arch="lstm", experiment="lstm", run="l4", status="diverged")
    write(tmp_path, {k: v for k, v in lost.items() if k != "splits"})
    found = judged(tmp_path, {"of": {"arch": "lstm"}, "above": 20})
    assert (found.verdict, found.statements[0].reason[:10]) == ("open", "1 diverged")
    found = judged(tmp_path, {"of": {"arch": "lstm"}, "metric": "diverged", "below": 90})
    assert (found.verdict, found.statements[0].mean) == ("supported", 20)


@pytest.mark.parametrize(
    ("counts", "settings", "judged_by"),
    [
        ({"usualfew": 3, "usual": 4, "other": 5}, {}, "usual"),  # the closest to its preset, then most seeds
        ({"usual": 3, "other": 5}, {"train.steps": 7}, "other"),
        ({"usual": 2, "before": 5}, {}, "before"),  # too few seeds hide no other
    ],
)
def test_of_several_conditions_one_is_judged_whatever_its_result(tmp_path, counts, settings, judged_by):
    tree = merge(preset("scan", "lstm", "default"), {"task": "scan", "arch": "lstm", "data": {"split": "length"}})
    usual = flatten(resolve(tree).model_dump(mode="json"))
    for name, count in counts.items():
        values(tmp_path, "lstm", *(0.5 + 0.01 * seed for seed in range(count)), name=name)
        changed = {} if name.startswith("usual") else {"train.steps": 7}  # which is not the preset's
        for folder in tmp_path.glob(f"*/*/s*-{name}[0-9]"):
            put(folder, "config.yaml", json.dumps(unflatten(usual | changed)))
    [statement] = judged(tmp_path, {"of": {"arch": "lstm"} | settings, "above": 20}).statements
    found = [run.result.run for run in statement.conditions[0].runs]
    assert found == [f"{judged_by}{seed}" for seed in range(counts[judged_by])]


@pytest.mark.parametrize(
    ("lstm", "cnn", "preset", "compared"),
    [
        ({"data": {"train_pairs": 1}}, {"data": {"train_pairs": 2}}, "default", False),
        ({"train": {"batching": "length"}}, {"train": {"batching": "random"}}, "default", False),
        ({"train": {"batching": "length"}}, {"train": {"batching": "random"}}, "dessi-2019", True),
        ({"data": {"validation_fraction": 0.05}}, {"data": {"validation_fraction": 0}}, "dessi-2019", True),
        ({"decode": {"method": "greedy", "limit": "longest"}}, {"decode": {"method": "greedy"}}, "dessi-2019", True),
    ],
    ids=["data", "batches", "batches of presets", "the fraction held out", "a key that an older run lacks"],
)
def test_conditions_with_different_data_or_batches_are_not_compared_but_presets_may_differ(
    tmp_path, lstm, cnn, preset, compared
):
    for arch, config, name in (("lstm", lstm, "default"), ("cnn", cnn, preset)):
        values(tmp_path, arch, *NEAR_HALF, preset=name)
        for folder in tmp_path.glob(f"*/{arch}/s*"):
            put(folder, "config.yaml", json.dumps(config))
            if compared:
                set_environments(folder, ENVIRONMENT | {"settings": {"arch": arch}})
    part = {"of": {"arch": "cnn", "preset": preset}, "minus": {"arch": "lstm"}, "below": 5}
    [one] = judged(tmp_path, part).statements
    assert one.interval == ("Welch" if compared else "")
    assert one.reason == ("" if compared else "no two runs share data and settings")


@given(st.lists(st.integers(300, 700).map(lambda v: v / 10), min_size=3, max_size=8))
def test_p_is_below_05_exactly_where_the_interval_excludes_the_deciding_bound(shares):
    [statement] = claim({"of": {"arch": "lstm"}, "is": 50, "within": 5}).statements
    by_seed = {"exact_match": dict(enumerate(shares))}
    found = of_mean(statement, SimpleNamespace(values=by_seed, wilson=(0.4, 0.6), count=1000))
    mean, low, high, bound, p = (found[key] for key in ("mean", "low", "high", "bound", "p"))
    if len({*shares}) > 1 and abs(p - 0.05) > 1e-6:
        assert (low > bound or high < bound) == (p < 0.05)
        assert (low >= 45 and high <= 55) == (found["inside"] and p < 0.05)
    assert found["inside"] == (45 <= mean <= 55)


def test_a_bound_at_0_or_100_is_not_tested_beside_another_one():
    [statement] = claim({"of": {"arch": "lstm"}, "is": 3, "within": 3}).statements
    by_seed = {"exact_match": {0: 1.0, 1: 2.0, 2: 1.5}}
    assert of_mean(statement, SimpleNamespace(values=by_seed, wilson=None, count=1000))["bound"] == 6


def test_a_statement_on_a_value_of_a_tag_is_judged_by_its_examples(tmp_path):
    for seed, share in enumerate(NEAR_HALF):
        scores = result()["splits"]["test"] | {"slices": {"length": {"3": {"n": 9, "metrics": {"exact_match": share}}}}}
        write(tmp_path, result(seed, splits={"test": scores}, run=f"r{seed}"))
    [one] = judged(tmp_path, {"of": {"arch": "lstm", "tag": "length", "value": "3"}, "below": 60}).statements
    assert (one.verdict, one.mean, one.conditions[0].count) == ("supported", pytest.approx(50), 9)


def measured(study, *each, arch="lstm", settings=None):
    """Save a measurement `head_roles` with these scores of heads for each run of an architecture, by seed."""
    for run, scores in zip(sorted(study.glob(f"*/{arch}/s*")), each, strict=True):
        rows = [{"role": "next", "head": n, "metric": "bleu", "score": score} for n, score in enumerate(scores, 1)]
        digest = json.loads((run / "result.json").read_text())["run"]
        chart = Chart("line", x="head", y="score")
        save_measurement(run, Measurement.of(rows, digest, "head_roles", 1, settings or {}, chart))


def test_what_an_instrument_measured_is_judged_by_the_rows_that_a_statement_selects(tmp_path):
    values(tmp_path, "lstm", *NEAR_HALF)
    measured(tmp_path, (0.1, 0.91), (0.12, 0.9), (0.09, 0.92), (0.1, 0.9), (0.11, 0.89))
    rows = {"arch": "lstm", "rows.role": "next"}
    found = judged(tmp_path, {"of": rows, "is": 0.9, "within": 0.1}, metric="head_roles")
    assert (found.verdict, found.statements[0].mean) == ("supported", pytest.approx(0.904)), "of the largest row"
    part = {"of": rows | {"rows.metric": "bleu"}, "is": 90, "within": 1}
    assert judged(tmp_path, part, metric="head_roles").statements[0].mean == pytest.approx(90.4), "in percent"
    measured(tmp_path, *[(-score, score) for score in (0.3, 0.31, 0.29, 0.3, 0.3)])
    found = judged(tmp_path, {"of": rows | {"rows.head": 1}, "above": 0}, metric="head_roles")
    assert f"the LSTM has {MINUS}0.300 [{MINUS}0.309, {MINUS}0.291], claimed above 0: refuted" in found.evidence
    measured(tmp_path, (0.1, 0.91), (0.12, 0.9), (0.09, 0.92), (0.1, 0.9), (0.11, 0.89))
    first, second = ({"arch": "lstm", "rows.head": head} for head in (1, 2))
    found = judged(tmp_path, {"of": second, "minus": first, "above": 0.5}, metric="head_roles")
    said = "on scan length, head_roles: the LSTM (head=2) is 0.800 [0.774, 0.826] above the LSTM (head=1), claimed"
    assert said in found.evidence


def test_measurements_that_are_missing_or_can_not_be_used_decide_nothing_and_the_reason_says_why(tmp_path):
    def why(verdict="open", **rows):
        part = {"of": {"arch": "lstm"} | {f"rows.{key}": value for key, value in rows.items()}, "above": 0}
        found = judged(tmp_path, part, metric="head_roles")
        assert found.verdict == verdict
        assert found.statements[0].reason in text_of(listing([found], [], details=True))
        return found.statements[0].reason

    values(tmp_path, "lstm", *NEAR_HALF)
    assert why("not run", head=1) == f"not measured: `tfstudy measure {tmp_path} head_roles --save`"
    measured(tmp_path, *[range(12)] * 5)
    assert why(role="nxt") == "head_roles has no row with role nxt"
    values(tmp_path, "cnn", *NEAR_HALF)
    measured(tmp_path, *[(0.5,)] * 5, arch="cnn", settings={"examples": 5})
    sides = {"of": {"arch": "lstm", "rows.role": "next"}, "minus": {"arch": "cnn", "rows.role": "next"}}
    [one] = judged(tmp_path, sides | {"above": 0}, metric="head_roles").statements
    assert one.reason == "runs were measured by head_roles with different settings"
    file = next(tmp_path.glob("*/lstm/s0*/instruments/head_roles.json"))
    file.write_text(file.read_text()[:-9])
    assert "head_roles.json is broken" in why(role="next")
