"""Tables of studies, from example records."""

import math

import pandas as pd
import pytest

from tests.commands import tfstudy
from tests.example_plots import runs, tagged
from tests.example_records import put, result, write
from tests.example_tables import compared, rows
from tests.example_tables import notes as notes_of
from tfstudy.analysis.summary import more_seeds, swapped
from tfstudy.errors import UserError
from tfstudy.grids.fairness import Contender, unequal_terms
from tfstudy.report.tables import MANY, table, wide


def test_a_row_is_mean_and_interval_over_seeds_beside_figures_of_the_same_metric(tmp_path):
    [row] = table(write(tmp_path / "study", *runs("lstm", 0.2, 0.4, 0.6))).rows.itertuples()
    assert (len(row.runs), row.mean, row.low) == (3, pytest.approx(40), 0.0)  # t = 4.303, 20 / sqrt 3: no share is -9.7
    assert row.high == pytest.approx(89.68, abs=0.01)
    assert list(map(str, row.published)) == ["13.8 [lake-2018]†"]
    assert (row.oracle_length, list(map(str, row.published_oracle_length))) == (60.0, ["23.6 [lake-2018]†"])
    for equal in ((0.2,), (0.2, 0.2)):  # one seed and equal seeds have the interval within a run
        [row] = table(write(tmp_path / str(len(equal)), *runs("lstm", *equal))).rows.itertuples()
        assert (row.mean, row.low, row.high) == (20.0, 0.0, 50.0)


def test_runs_that_differ_in_more_than_the_seed_are_no_replications(tmp_path):
    study = write(tmp_path, result(0), result(1, experiment="other", run="ab"))
    path = study / "scan-length" / "lstm" / "s1-ab" / "config.yaml"
    put(path.parent, path.name, path.read_text().replace("other", "e"))  # they still differ in their hash
    labels = ["default experiment=e", "default experiment=other"]
    assert [(len(row.runs), row.preset_label) for row in rows(study)] == [(1, x) for x in labels]


def test_a_condition_with_diverged_runs_is_compared_with_nothing(tmp_path):
    *high, lost = runs("cnn", 0.8, 0.81, 0.82, 0)
    lost |= {"status": "diverged", "reason": "nan"}
    del lost["splits"]
    found = table(write(tmp_path, *high, lost, *runs("lstm", 0.2, 0.21, 0.22)), baseline="lstm")
    assert list(found.rows["group"]) == ["", ""]
    assert math.isnan(found.rows["q"][0])
    assert math.isnan(found.pairs["p"][0])
    text = found.render("md")
    assert "(n = 3, 1 diverged)" in text
    assert "**" not in text


def test_a_comparison_says_the_same_in_either_order_and_other_seeds_are_not_paired(tmp_path):
    """Paired over the five seeds that both have, cnn would be higher by 2, and by the means it is lower by 11.5."""
    more = [(0.48 if seed < 5 else 0.7) + seed / 100 for seed in range(10)]
    study = write(tmp_path, *runs("cnn", *(0.5 + seed / 100 for seed in range(5))), *runs("lstm", *more))
    [one] = compared(study)
    assert (one.method, one.mean) == ("Welch", pytest.approx(-11.5))
    other = swapped(one)
    assert (more_seeds(other, 4), other.p, other.first) == (more_seeds(one, 4), one.p, one.second)
    assert (other.mean, other.low) == (-one.mean, -one.high)
    assert swapped(other) == one


def test_nothing_is_bold_and_there_are_no_letters_where_nothing_differs(tmp_path):
    found = table(write(tmp_path, *runs("lstm", 0.5, 0.51, 0.52), *runs("cnn", 0.52, 0.51, 0.5)))
    assert list(found.rows["group"]) == ["a", "a"]
    assert list(found.rows["letters"]) == ["", ""], "letters that all share say nothing"
    assert not {"**", "letter"} & set(found.render("md").split())


def test_a_table_warns_where_compared_architectures_differ_in_size_or_training(tmp_path):
    def warned(folder, **more):
        study = write(tmp_path / folder, result(0, step=10), *runs("cnn", 0.5, step=20, **more))
        return "; ".join(notes_of(table(study)))

    assert "differ in parameters by more than 5 %: cnn 1,051, lstm 1,000 (+5 %)" in warned("a", parameters=1051)
    equal = warned("b", parameters=1050)
    assert "differ in training: steps 20 (cnn), 10 (lstm)" in equal
    assert "differ in parameters" not in equal
    assert "architectures differ" not in warned("d", parameters=2000, split="simple"), "they are not compared"


def test_a_key_that_only_older_configs_have_is_no_difference_at_its_default():
    def said(value):
        return unequal_terms([Contender("scan", "cnn", {"data.hub": value}), Contender("scan", "lstm", {})])

    assert said("") == []
    assert len(said("elsewhere")) == 1


def test_a_tag_makes_a_row_for_each_of_its_values(tmp_path):
    found = table(write(tmp_path, tagged(result(0), {"test": {"10": 0.1, "2": 0.5}})), by="length")
    assert list(zip(found.rows["value"], found.rows["mean"], strict=True)) == [("2", 50.0), ("10", 10.0)]


def test_a_baseline_is_one_condition_on_each_test_set_and_the_one_without_settings_if_there_is_one(tmp_path, capsys):
    study = tmp_path / "results" / "both"
    write(study, *(one for e in "ab" for one in runs("lstm", 0.2, 0.6, experiment=e)), *runs("cnn", 0.1, 0.2))
    assert tfstudy("table", "both", "--baseline", "lstm", "--results", study.parent) == 2
    labels = "'lstm dim=a', 'lstm dim=b'"
    assert f"--baseline lstm names 2 conditions: {labels}; name one of them" in capsys.readouterr().err
    assert list(table(study, baseline="lstm dim=b").rows["baseline"]) == ["lstm dim=b", "lstm dim=b", ""]
    records = runs("lstm", 0.6, 0.6, preset="untuned", experiment="u")
    for split in ("length", "simple"):
        records += runs("lstm", 0.2, 0.2, split=split, experiment=f"l{split}")
        records += runs("cnn", 0.8, 0.8, split=split, experiment=f"c{split}")
    found = table(write(tmp_path / "two", *records), baseline="lstm").rows
    assert list(zip(found["split"], found["arch"], found["preset"], found["baseline"], strict=True)) == [
        ("length", "cnn", "default", "lstm"),
        ("length", "lstm", "default", ""),
        ("length", "lstm", "untuned", "lstm"),
        ("simple", "cnn", "default", "lstm"),
        ("simple", "lstm", "default", ""),
    ]


def test_a_task_has_a_table_with_a_row_for_each_condition_and_a_column_for_each_test_set(tmp_path):
    """Two widths of a Transformer on two test sets of copying, and an LSTM on one of SCAN, three seeds each."""
    records = runs("lstm", 0.2, 0.2, 0.2)
    for dim, share in (("8", 0.5), ("16", 0.9)):
        records += runs("transformer", *[share] * 3, task="copying", split="copy", experiment=dim)
    for one in records[3:]:
        part = one["splits"]["test"]
        longer = part | {"metrics": part["metrics"] | {"exact_match": 0.1 * (one["seed"] + 1)}}
        one["splits"] = {"test": part, "test_long": longer}
    first, second = sorted(wide(table(write(tmp_path, *records)).rows), key=lambda cells: cells.title)
    same = "; the same in each row: architecture transformer, parameters 1k"
    assert [first.title, second.title] == [f"exact match on copying copy{same}", "exact match on scan"]
    assert list(first.frame) == ["dim", "test", "long"]
    assert {"architecture", "length", "parameters"} <= second.frame.keys(), "of a single row all is shown"
    assert list(first.frame["dim"]) == ["8", "16"]  # by their size
    means = {head: [text.split()[0] for text in first.frame[head]] for head in ("test", "long")}
    assert means == {"test": ["50.0", "90.0"], "long": ["20.0", "20.0"]}
    assert (first.bold["test"], first.bold["long"]) == ([False, True], [False, False])


def test_many_test_sets_are_rows_and_each_mean_is_in_the_row_and_the_column_that_name_it(tmp_path):
    records = [*runs("cnn", 0.5, 0.5), *runs("lstm", 0.5, 0.5)]
    for one in records:
        part, more = one["splits"]["test"], (one["arch"] == "cnn") / 2 + one["seed"] / 100
        one["splits"] = {f"test_{n}": part | {"metrics": {"exact_match": (n + more) / 10}} for n in range(MANY + 1)}
    found = table(write(tmp_path, *records))
    [cells] = wide(found.rows)
    frame = pd.DataFrame(cells.frame).set_index("test set")
    assert cells.title.endswith("; the same in each row: parameters 1k")
    for row in found.rows.itertuples():
        assert frame[row.arch][row.test.removeprefix("test_")].startswith(f"{row.mean:.1f} ")


# Notes


def test_what_is_left_out_is_named_and_a_study_without_finished_runs_is_an_error(tmp_path):
    study = write(tmp_path / "study", result(0), result(1, smoke=True), result(2, tuning=True))
    unfinished = study / "scan-length" / "cnn" / "s0-0a"
    unfinished.mkdir(parents=True)
    (unfinished / "config.yaml").write_text("")
    assert "left out (tuning trial): scan-length/lstm/s2-" in table(study).render("md")
    text = table(study).render("md", notes=True)
    assert "left out (smoke run): scan-length/lstm/s1-" in text
    assert "left out (not finished): scan-length/cnn/s0-0a" in text
    assert "1 run, 1 seed per condition; cpu" in text
    assert "evaluated once per run\n" in text
    diverged = {k: v for k, v in result(1, status="diverged", reason="nan").items() if k != "splits"}
    with pytest.raises(UserError, match=r"no finished run under .*; 1 diverged"):
        table(write(tmp_path / "diverged", diverged))


def test_notes_have_trivial_systems_outputs_that_were_cut_hours_and_signatures(tmp_path):
    def run(corpus, words, tokens, **more):
        one = result(0)["splits"]["test"]
        trivial = {"copy": {"exact_match": 0.01}, "word by word": {"exact_match": words}}
        names = {"corpus": corpus, "experiment": corpus, "run": corpus}
        signatures = {"bleu": f"tok:{tokens}", "chrf": "nc:6"}  # where corpora differ each is beside their names
        splits = {"test": one | {"baselines": trivial, "limit_hits": 25}}
        more |= {"overlap": {"test": 3 * (corpus == "en-ja")}}
        return result(0, splits=splits, signatures=signatures, train_seconds=7200.0, **names, **more)

    made = [run("en-de", 0.1, "13a"), run("en-ja", 0.12, "char", evaluate_seconds=3600.0, reused_from="0" * 64)]
    found = table(write(tmp_path / "two", *made))
    notes = notes_of(found)
    warning = "WARNING: held-out examples whose source occurs in training: 3 (in 2 evaluated splits)"
    assert warning in found.render("md")
    assert "trivial systems on length en-de: copy exact match 1.0; word by word exact match 10.0" in notes
    assert "outputs cut at the maximum number of tokens: length en-de lstm 2 %; length en-ja lstm 2 %" in notes
    assert any("3.0 device hours" in note for note in notes), "of copied weights only the evaluation counts"
    assert {"bleu: tok:13a (en-de); tok:char (en-ja)", "chrf: nc:6"} <= {*notes}
    assert "bleu: tok:13a" in notes_of(table(write(tmp_path / "one", made[0])))
