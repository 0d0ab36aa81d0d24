"""Tables of studies, from example records."""

import pandas as pd
import pytest

from tests.commands import tfstudy
from tests.example_records import put, result, rival, write
from tests.example_tables import columns, compared, rows
from tests.example_tables import notes as notes_of
from tfstudy.analysis.summary import more_seeds, swapped
from tfstudy.errors import UserError
from tfstudy.report.tables import Table, to_text
from tfstudy.report.tables import read_table as table
from tfstudy.report.wide import MANY, wide


def markdown(table: Table) -> str:
    return to_text(table, "md")


def only(study, **options):
    """The cells of a table of one row."""
    [cells] = columns(table(study, **options))
    return cells


def test_a_row_is_mean_and_interval_over_seeds_beside_figures_of_the_same_metric(tmp_path):
    cells = only(write(tmp_path, result(0, 0.2), result(1, 0.4), result(2, 0.6)))
    assert cells["n"] == "3"
    assert cells["exact match"] == "40.0 [0.0, 89.7]"  # t = 4.303, 20 / sqrt 3: to -9.7, which no share is
    assert cells["published"] == "13.8 [lake-2018]†"
    assert cells["oracle length, EOS forbidden"] == "60.0"
    assert cells["published, oracle length, EOS forbidden"] == "23.6 [lake-2018]†"


def test_one_seed_and_equal_seeds_have_the_interval_within_a_run(tmp_path):
    for name, records in (("one", [result(0, 0.2)]), ("two", [result(0, 0.2), result(1, 0.2)])):
        assert only(write(tmp_path / name, *records))["exact match"] == "20.0 [0.0, 50.0]"


@pytest.mark.parametrize(
    ("dim", "labels"),
    [("other", ["default dim=e", "default dim=other"]), ("e", ["default experiment=e", "default experiment=other"])],
)
def test_runs_that_differ_in_more_than_the_seed_are_no_replications(tmp_path, dim, labels):
    study = write(tmp_path, result(0), result(1, experiment="other", run="ab"))
    path = study / "scan-length" / "lstm" / "s1-ab" / "config.yaml"
    put(path.parent, path.name, path.read_text().replace("other", dim))  # they still differ in their hash
    assert [(len(row.runs), row.preset_label) for row in rows(study)] == [(1, x) for x in labels]


def test_a_condition_with_diverged_runs_is_compared_with_nothing(tmp_path):
    own = {"arch": "cnn", "experiment": "c"}
    high = [result(seed, 0.8 + seed / 100, run=f"c{seed}", **own) for seed in range(3)]
    lost = {k: v for k, v in result(3, run="c3", status="diverged", reason="nan", **own).items() if k != "splits"}
    found = table(write(tmp_path, *high, lost, *(result(seed, 0.2 + seed / 100) for seed in range(3))), baseline="lstm")
    cnn, lstm = columns(found)
    assert (cnn["n"], lstm["n"]) == ("3, 1 diverged", "3")
    assert not {"group", "q"} & cnn.keys()
    assert "**" not in markdown(found)
    assert found.pairs["note"][0] == "1 diverged"


def test_a_comparison_says_the_same_in_either_order_and_other_seeds_are_not_paired(tmp_path):
    """Paired over the five seeds that both have, cnn would be higher by 2, and by the means it is lower by 11.5."""
    fewer = [result(seed, 0.5 + seed / 100, arch="cnn", experiment="c", run=f"c{seed}") for seed in range(5)]
    more = [result(seed, (0.48 if seed < 5 else 0.7) + seed / 100) for seed in range(10)]
    [(_, _, one)] = compared(write(tmp_path, *fewer, *more))
    assert (one.method, one.mean) == ("Welch", pytest.approx(-11.5))
    other = swapped(one)
    assert (more_seeds(other, 4), other.p, other.first) == (more_seeds(one, 4), one.p, one.second)
    assert (other.mean, other.low) == (-one.mean, -one.high)
    assert swapped(other) == one


def test_nothing_is_bold_and_there_are_no_letters_where_nothing_differs(tmp_path):
    some = [result(seed, 0.5 + seed / 100) for seed in range(3)]
    others = [result(seed, 0.52 - seed / 100, arch="cnn", experiment="c", run=f"c{seed}") for seed in range(3)]
    found = table(write(tmp_path, *some, *others))
    assert list(found.rows["group"]) == ["a", "a"]
    assert not any("group" in cells for cells in columns(found)), "letters that all share say nothing"
    assert "**" not in markdown(found)
    assert "letter" not in markdown(found)


def test_a_table_warns_where_compared_architectures_differ_in_size_or_training(tmp_path):
    other = {"arch": "cnn", "experiment": "c", "run": "c0", "step": 20}

    def warned(folder, **more):
        study = write(tmp_path / folder, result(0, step=10), result(0, **other | more))
        return "; ".join(notes_of(table(study)))

    assert "differ in parameters by more than 5 %: cnn 1,051, lstm 1,000 (+5 %)" in warned("a", parameters=1051)
    assert "differ in parameters" not in warned("b", parameters=1050)
    assert "differ in training: steps 20 (cnn), 10 (lstm)" in warned("c")
    assert "architectures differ" not in warned("d", parameters=2000, split="simple"), "they are not compared"


def test_a_tag_makes_a_row_for_each_of_its_values(tmp_path):
    part = result(0)["splits"]["test"]
    slices = {"length": {v: {"n": 5, "metrics": {"exact_match": 1 / int(v)}} for v in ("10", "2")}}
    study = write(tmp_path, result(0, splits={"test": part | {"slices": slices}}))
    assert [(cells["by length"], cells["exact match"]) for cells in columns(table(study, by="length"))] == [
        ("2", "50.0"),
        ("10", "10.0"),
    ]


def test_a_baseline_that_names_several_conditions_on_the_same_examples_is_refused(tmp_path, capsys):
    both = [
        result(seed, exact, experiment=e, run=f"{e}{seed}") for e, exact in (("a", 0.2), ("b", 0.6)) for seed in (0, 1)
    ]
    study = write(tmp_path / "results" / "both", *both, rival(0, 0.1), rival(1, 0.2))
    assert tfstudy("table", "both", "--baseline", "lstm", "--results", tmp_path / "results") == 2
    labels = "'lstm dim=a', 'lstm dim=b'"
    assert f"--baseline lstm names 2 conditions: {labels}; name one of them" in capsys.readouterr().err
    found = columns(table(study, baseline="lstm dim=b"))
    assert [bool(cells["vs lstm dim=b"]) for cells in found] == [True, True, False]


def test_a_baseline_may_be_another_condition_on_each_test_set_and_is_the_one_without_settings(tmp_path):
    records = [one for split in ("length", "simple") for seed in (0, 1) for one in (
        result(seed, 0.2, split=split, experiment=f"l{split}", run=f"l{split}{seed}"),
        result(seed, 0.8, split=split, arch="cnn", experiment=f"c{split}", run=f"c{split}{seed}"),
    )]  # fmt: skip
    records += [result(seed, 0.6, preset="untuned", experiment="u", run=f"u{seed}") for seed in (0, 1)]
    found = columns(table(write(tmp_path, *records), baseline="lstm"))
    assert [(one["split"], one["architecture"], one["preset"], bool(one["vs lstm"])) for one in found] == [
        ("length", "cnn", "default", True),
        ("length", "lstm", "default", False),
        ("length", "lstm", "untuned", True),
        ("simple", "cnn", "default", True),
        ("simple", "lstm", "default", False),
    ]


def two_tasks(folder):
    """Two widths of a Transformer on two test sets of copying, and an LSTM on one of SCAN, three seeds each."""
    records = [
        result(seed, share, task="copying", split="copy", arch="transformer", experiment=dim, run=f"{dim}{seed}")
        for dim, share in (("8", 0.5), ("16", 0.9))
        for seed in range(3)
    ]
    for one in records:
        part = one["splits"]["test"]
        longer = part | {"metrics": part["metrics"] | {"exact_match": 0.1 * (one["seed"] + 1)}}
        one["splits"] = {"test": part, "test_long": longer}
    return write(folder, *records, *(result(seed, 0.2) for seed in range(3)))


def test_a_task_has_a_table_with_a_row_for_each_condition_and_a_column_for_each_test_set(tmp_path):
    found = table(two_tasks(tmp_path))
    first, second = sorted(wide(found.rows), key=lambda cells: cells.title)
    same = "; the same in each row: architecture transformer, parameters 1k"
    assert [first.title, second.title] == [f"exact match on copying copy{same}", "exact match on scan"]
    assert list(first.frame) == ["dim", "test", "long"]
    assert {"architecture", "length", "parameters"} <= second.frame.keys(), "of a single row all is shown"
    assert list(first.frame["dim"]) == ["8", "16"]  # by their size
    means = {(row.label, row.test): row.mean for row in found.rows.itertuples()}
    for i, dim in enumerate(first.frame["dim"]):
        for head, test in (("test", "test"), ("long", "test_long")):
            own = float(first.frame[head][i].partition(" ")[0])
            assert own == pytest.approx(means[f"transformer dim={dim}", test], abs=0.05)
    assert first.bold["test"] == [False, True]
    assert not any(first.bold["long"])
    own = found._replace(rows=found.rows[found.rows["task"] == "copying"])
    assert same[2:] in to_text(own, "tex", "a caption").rpartition("tabular")[2], "where one table needs no title"


@pytest.mark.parametrize("count", [3, MANY + 1])
def test_every_number_of_the_long_table_is_in_the_wide_one(tmp_path, count):
    """In a row and a column that name it, also where test sets are rows since they are many."""
    records = []
    for arch in ("cnn", "lstm"):
        for seed in range(2):
            one = result(seed, 0.5, arch=arch, experiment=arch, run=f"{arch}{seed}")
            part = one["splits"]["test"]
            one["splits"] = {
                f"test_{n}": part | {"metrics": {"exact_match": (n + (arch == "cnn") / 2 + seed / 100) / 10}}
                for n in range(count)
            }
            records.append(one)
    found = table(write(tmp_path, *records))
    [cells] = wide(found.rows)
    frame = pd.DataFrame(cells.frame).set_index("architecture" if count == 3 else "test set")
    frame = frame if count == 3 else frame.T
    assert cells.title.endswith("; the same in each row: parameters 1k")
    for row in found.rows.itertuples():
        assert frame[row.test.removeprefix("test_")][row.arch].startswith(f"{row.mean:.1f} ")


def test_what_is_left_out_is_named(tmp_path):
    study = write(tmp_path, result(0), result(1, smoke=True), result(2, tuning=True))
    unfinished = study / "scan-length" / "cnn" / "s0-0a"
    unfinished.mkdir(parents=True)
    (unfinished / "config.yaml").write_text("")
    assert "left out (tuning trial): scan-length/lstm/s2-" in markdown(table(study))
    text = to_text(table(study), "md", notes=True)
    assert "left out (smoke run): scan-length/lstm/s1-" in text
    assert "left out (not finished): scan-length/cnn/s0-0a" in text
    assert "1 run, 1 seed per condition; cpu" in text
    assert "evaluated once per run\n" in text


def test_a_study_without_finished_runs_is_a_user_error(tmp_path):
    with pytest.raises(UserError, match="no finished run"):
        table(tmp_path)
    diverged = {k: v for k, v in result(1, status="diverged", reason="nan").items() if k != "splits"}
    with pytest.raises(UserError, match=r"no finished run under .*; 1 diverged"):
        table(write(tmp_path / "study", diverged))


def test_notes_have_the_trivial_systems_and_the_outputs_that_were_cut(tmp_path):
    def scores(seed, words):
        one = result(seed)["splits"]["test"]
        trivial = {"copy": {"exact_match": 0.01}, "word by word": {"exact_match": words}}
        return result(seed, splits={"test": one | {"baselines": trivial, "limit_hits": 25}})

    study = write(tmp_path / "study", scores(0, 0.1), scores(1, 0.12))
    notes = notes_of(table(study))
    assert "trivial systems on length: copy exact match 1.0; word by word exact match 10.0-12.0" in notes
    assert "outputs cut at the maximum number of tokens: length lstm 2 %" in notes


def test_the_hours_of_a_run_with_copied_weights_are_those_of_its_evaluation(tmp_path):
    runs = [result(seed, train_seconds=7200.0, evaluate_seconds=3600.0) for seed in (0, 1)]
    notes = notes_of(table(write(tmp_path, runs[0], runs[1] | {"reused_from": runs[0]["run"]})))
    assert any("4.0 device hours" in note for note in notes)


def test_the_signature_of_a_metric_stands_once_and_where_corpora_differ_with_their_names(tmp_path):
    def run(corpus, tokens):
        signatures = {"bleu": f"tok:{tokens}", "chrf": "nc:6"}
        return result(0, corpus=corpus, experiment=corpus, run=corpus, signatures=signatures)

    two = [run("en-de", "13a"), run("en-ja", "char")]
    assert {"bleu: tok:13a (en-de); tok:char (en-ja)", "chrf: nc:6"} <= set(
        notes_of(table(write(tmp_path / "two", *two)))
    )
    assert "bleu: tok:13a" in notes_of(table(write(tmp_path / "one", two[0])))
