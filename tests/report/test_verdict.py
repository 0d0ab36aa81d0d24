"""The verdict of a report: significantly better where the table's groups differ, and nowhere else."""

import re
from itertools import permutations
from random import Random

import pytest

from tests.example_records import result, write
from tfstudy.analysis.collection import read_finished_runs
from tfstudy.analysis.conditions import conditions
from tfstudy.analysis.published import Figure, all_figures
from tfstudy.report import verdict as verdicts
from tfstudy.report.quotations import Quotation
from tfstudy.report.tables import build_table
from tfstudy.report.verdict import MAX_DETAILED, significant_differences, verdict

BETTER = re.compile(r"(\w+) \([\d.]+\) is significantly better than (.+?)(?=, and \w+ \([\d.]+\) is|;|\.$)")
NAME = re.compile(r"(\w+) \([\d.]+\)")
ARCHITECTURES = ("lstm", "cnn", "transformer")


def study_table(folder, means, seeds=4, splits=("length",)):
    """The table of a study of architectures with these means, which vary by two points over seeds."""
    made = []
    for split in splits:
        for arch, mean in means[split].items() if split in means else means.items():
            made += [
                result(
                    seed,
                    mean + seed / 200,
                    arch=arch,
                    split=split,
                    experiment=f"{split}{arch}",
                    run=f"{split}{arch}{seed}",
                )
                for seed in range(seeds)
            ]
    study = read_finished_runs(write(folder / "study", *made))
    return build_table(study, conditions(study.runs), "", "")


def pairs_in_words(sentence):
    """The test set, winner and loser of each difference that a sentence states."""
    found = set()
    for part in sentence.removesuffix(".").split("; "):
        test_set, _, text = part.partition(", ")
        for winner, losers in BETTER.findall(f"{text}."):
            found |= {
                (test_set.removeprefix("On ").removeprefix("on "), winner, loser) for loser in NAME.findall(losers)
            }
    return found


def pairs_in_groups(table):
    """The same by the letters of the table: lines on the same examples that share none, the higher one first."""
    return {
        (one.condition.split, one.condition.arch, other.condition.arch)
        for one, other in permutations(table.lines, 2)
        if one.condition.examples_key == other.condition.examples_key
        and one.group
        and other.group
        and not set(one.group) & set(other.group)
        and one.mean > other.mean
    }


@pytest.mark.parametrize("draw", range(6))
def test_the_verdict_has_exactly_the_differences_of_the_groups(tmp_path, draw):
    random = Random(draw)
    splits = ("length", "simple", "addprim_jump")
    means = {split: {arch: random.choice((0.1, 0.12, 0.15, 0.6)) for arch in ARCHITECTURES} for split in splits}
    table = study_table(tmp_path, means, splits=splits)
    first, second, _ = verdict(table)
    known = pairs_in_groups(table)
    assert pairs_in_words(first) == known
    assert sum(len(one.others) for one in significant_differences(table)) == len(known)
    undecided = sum(comparison.tested and not comparison.significant for comparison in table.comparisons)
    counted = re.search(r"(\d+) of (\d+) comparisons are undecided", second)
    assert (int(counted[1]), int(counted[2])) == (undecided, 9) if counted else undecided in (0, 9)


def test_means_that_differ_after_the_first_decimal_are_written_with_more(tmp_path):
    made = [
        result(seed, share + seed / 1e6, arch=arch, experiment=arch, run=f"{arch}{seed}")
        for arch, share in (("lstm", 0.9999), ("cnn", 0.9996))
        for seed in range(5)
    ]
    for one in made:
        one["splits"]["test"]["n"] = 1_000_000
    study = read_finished_runs(write(tmp_path / "study", *made))
    [first, *_] = verdict(build_table(study, conditions(study.runs), "", ""))
    assert first == "On length, lstm (99.99) is significantly better than cnn (99.96)."


def test_nothing_is_claimed_without_a_significant_difference(tmp_path):
    first, second, _ = verdict(study_table(tmp_path, {"lstm": 0.1, "cnn": 0.1, "transformer": 0.101}))
    assert first == "No condition is significantly better than another one on any test set."
    assert second == "With 4 seeds per condition, all 3 comparisons are undecided; undecided does not mean equal."


@pytest.mark.parametrize(
    ("means", "start"),
    [
        ({"lstm": 0.1}, "No two conditions have the same test examples and amount of training data"),
        ({"lstm": 0.1, "cnn": 0.9}, "Nothing is tested: a test needs 2 seeds of both conditions"),
    ],
)
def test_one_condition_or_one_seed_is_no_comparison(tmp_path, means, start):
    first, second, _ = verdict(study_table(tmp_path, means, seeds=1))
    assert first.startswith(start)
    assert "undecided" not in second


def test_many_test_sets_are_counted(tmp_path):
    splits = [f"split{n}" for n in range(MAX_DETAILED + 1)]
    [first, second, _] = verdict(study_table(tmp_path, {"lstm": 0.1, "cnn": 0.9}, splits=splits))
    assert first == "Of 7 test sets, cnn than lstm on 7 is significantly better."
    assert second == "No comparison is undecided."


def figure(name: str) -> Figure:
    return next(one for one in all_figures() if one.id == name)


def test_figures_of_other_settings_are_not_tested(tmp_path):
    [*_, last] = verdict(study_table(tmp_path, {"lstm": 0.5}))
    assert re.match(r"None of the \d+ published figures? beside these results \(.*Lake & Baroni 2018", last)
    assert "so none is tested" in last


def test_figures_under_the_same_settings_are_judged(tmp_path, monkeypatch):
    table = study_table(tmp_path, {"lstm": 0.5})
    quoted = [Quotation(figure("lake-2018-09"), True), Quotation(figure("lake-2018-13"), True)]
    line = table.lines[0]._replace(published=quoted)
    found = iter(["agrees", "differs"])

    def judged(published, known):
        return type("Judged", (), {"verdict": next(found)})

    monkeypatch.setattr(verdicts, "judge_figure", judged)
    [*_, last] = verdict(table._replace(lines=[line]))
    assert "1 reproduced within 5 points (lstm on length: 50.8 here, 13.8 in Lake & Baroni 2018)" in last
    assert "1 not reproduced within 5 points (lstm on length: 50.8 here, 90.0 in Lake & Baroni 2018)" in last


def test_without_published_figures_the_verdict_says_so(tmp_path):
    [*_, last] = verdict(study_table(tmp_path, {"lstm": 0.5}, splits=["no_such"]))
    assert last == "No published figure is known for these test sets and kinds of network."
