"""The comparisons of a study in words, its verdict in sentences, and its protocol."""

import re
from itertools import permutations
from pathlib import Path
from random import Random

import pytest

from tests.example_records import result, rival, three_architectures, write
from tfstudy.analysis.frame import read_finished_runs
from tfstudy.analysis.summary import conditions, rows_of
from tfstudy.report.comparisons import summarize_comparisons, verdict
from tfstudy.report.tables import build_table
from tfstudy.report.tables import read_table as table

BETTER = re.compile(r"(\w+) \([\d.]+\) is significantly better than (.+?)(?=, and \w+ \([\d.]+\) is|;|\.$)")
NAME = re.compile(r"(\w+) \([\d.]+\)")


@pytest.fixture
def study(tmp_path) -> Path:
    return three_architectures(tmp_path)


def test_comparisons_say_what_is_higher_what_is_not_tested_and_how_many_seeds_an_open_one_needs(study, tmp_path):
    summary = summarize_comparisons(table(study, baseline="lstm"))
    [(test_set, said, difference, _, q, test, needed)] = summary.tested
    assert (test_set, said, difference) == ("length", "cnn is higher than lstm", "+55.5")
    assert (q, test, needed, summary.decided) == ("<.001", "Welch, 8 values", "", [True])
    assert summary.summary.startswith("3 comparisons on the same examples: 1 decided, 0 open, 2 not")
    close = [rival(seed, value) for seed, value in enumerate((0.5, 0.62, 0.55))]
    summary = summarize_comparisons(table(write(tmp_path / "a", *(result(seed, 0.5) for seed in range(3)), *close)))
    assert summary.tested[0][1] == "cnn or lstm: open"
    assert re.fullmatch(r"about \d+ more seeds?", summary.tested[0][-1])
    equal = [one for seed in range(3) for one in (result(seed, 0.5), rival(seed, 0.5))]
    assert summarize_comparisons(table(write(tmp_path / "b", *equal))).tested[0][-1] == "no difference to find"


# The verdict


def study_table(folder, means, seeds=4, splits=("length",)):
    """The table of a study of architectures with these means, which vary by two points over seeds."""
    made = []
    for split in splits:
        for arch, mean in means.get(split, means).items():
            names = {"arch": arch, "split": split, "experiment": f"{split}{arch}"}
            made += [result(seed, mean + seed / 200, run=f"{split}{arch}{seed}", **names) for seed in range(seeds)]
    study = read_finished_runs(write(folder / "study", *made))
    return build_table(study, conditions(study.runs))


def pairs_in_words(sentence):
    """The test set, winner and loser of each difference that a sentence states."""
    found = set()
    for part in sentence.removesuffix(".").split("; "):
        test_set, _, text = part.partition(", ")
        name = test_set.removeprefix("On ").removeprefix("on ")
        found |= {(name, winner, loser) for winner, text in BETTER.findall(f"{text}.") for loser in NAME.findall(text)}
    return found


def pairs_in_groups(table):
    """The same by the letters of the table: lines on the same examples that share none, the higher one first."""
    pairs = [(a, b) for a, b in permutations(rows_of(table.rows), 2) if a.place == b.place and a.mean > b.mean]
    return {(a.split, a.arch, b.arch) for a, b in pairs if a.group and b.group and not {*a.group} & {*b.group}}


@pytest.mark.parametrize("draw", range(4))
def test_the_verdict_has_exactly_the_differences_of_the_groups(tmp_path, draw):
    random, splits, archs = Random(draw), ("length", "simple", "addprim_jump"), ("lstm", "cnn", "transformer")
    means = {split: {arch: random.choice((0.1, 0.12, 0.15, 0.6)) for arch in archs} for split in splits}
    table = study_table(tmp_path, means, splits=splits)
    first, second, _ = verdict(table)
    assert pairs_in_words(first) == pairs_in_groups(table)
    still_open = (table.pairs["tested"] & ~table.pairs["significant"]).sum()
    counted = re.search(r"(\d+) of (\d+) comparisons are open", second)
    assert (int(counted[1]), int(counted[2])) == (still_open, 9) if counted else still_open in (0, 9)


def test_means_that_differ_after_the_first_decimal_are_written_with_more(tmp_path):
    """Of a million examples each, so that the difference is not one of rounding."""
    made = [
        rival(seed, share + seed / 1e6, arch)
        for arch, share in (("lstm", 0.9994), ("cnn", 0.9986))
        for seed in range(5)
    ]
    for one in made:
        one["splits"]["test"]["n"] = 1_000_000
    study = read_finished_runs(write(tmp_path / "study", *made))
    [first, *_] = verdict(build_table(study, conditions(study.runs)))
    assert first == "On length, lstm (99.94) is significantly better than cnn (99.86)."


@pytest.mark.parametrize(
    ("means", "seeds", "start", "second"),
    [
        ({"lstm": 0.1, "cnn": 0.1}, 4, "No condition is significantly better", "the only comparison is open"),
        ({"lstm": 0.1}, 1, "No two conditions have the same test examples", "may be due to the seed"),
        ({"lstm": 0.1, "cnn": 0.9}, 1, "Nothing is tested: a test needs 2 seeds", "may be due to the seed"),
    ],
)
def test_nothing_is_claimed_without_a_significant_difference(tmp_path, means, seeds, start, second):
    found = verdict(study_table(tmp_path, means, seeds=seeds))
    assert found[0].startswith(start)
    assert second in found[1]


def test_figures_of_other_settings_are_not_tested(tmp_path):
    [*_, last] = verdict(study_table(tmp_path, {"lstm": 0.5}))
    assert re.match(r"None of the \d+ published figures? beside these results \(.*Lake & Baroni 2018", last)
    assert "so none is tested" in last
