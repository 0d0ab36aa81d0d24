"""The comparisons of a study in words, and its verdict in sentences."""

import re
from itertools import permutations
from pathlib import Path
from random import Random

import pytest

from tests.example_plots import runs
from tests.example_records import result, rival, three_architectures, write
from tfstudy.analysis.summary import rows_of
from tfstudy.report.comparisons import MAX_DETAILED, comparisons, verdict
from tfstudy.report.tables import Table, table

BETTER = re.compile(r"(\w+) \([\d.]+\) is significantly better than (.+?)(?=, and \w+ \([\d.]+\) is|;|\.$)")
NAME = re.compile(r"(\w+) \([\d.]+\)")


def test_comparisons_say_what_is_higher_what_is_not_tested_and_how_many_seeds_an_open_one_needs(tmp_path):
    def said(study):
        cells, _ = comparisons(table(study, baseline="lstm"))
        return cells, {head: own[0] for head, own in cells.frame.items()}

    cells, first = said(three_architectures(tmp_path))
    assert [first[head] for head in ("test set", "result", "difference", "q", "test", "needed to decide")] == [
        "length", "cnn is higher than lstm", "+55.5", "<.001", "Welch, 8 values", "",
    ]  # fmt: skip
    assert cells.bold == {"result": [True]}
    assert cells.title.startswith("3 comparisons on the same examples: 1 decided, 0 open, 2 not")
    equal = [result(seed, 0.5) for seed in range(4)]
    close = [rival(seed, value) for seed, value in enumerate((0.5, 0.62, 0.55))]
    _, first = said(write(tmp_path / "close", *equal[:3], *close))
    assert first["result"] == "cnn or lstm: open"
    assert re.fullmatch(r"about \d+ more seeds?", first["needed to decide"])
    _, first = said(write(tmp_path / "equal", *equal, *(rival(seed, 0.5) for seed in range(4))))
    assert first["needed to decide"] == "no difference to find"
    tiny = [make(seed, share + seed * 1e-6) for make, share in ((result, 0.5), (rival, 0.5002)) for seed in range(4)]
    for one in tiny:
        one["splits"]["test"]["n"] = 10**6
    _, first = said(write(tmp_path / "tiny", *tiny))
    assert (first["q"], first["difference"], first["needed to decide"]) == ("<.001", "+0.0", "no difference to find")


# The verdict


def study_table(folder: Path, means: dict[str, dict[str, float]], seeds: int = 4) -> Table:
    """The table of a study of architectures with these means by split scheme, which vary by two points over seeds."""
    made = []
    for split, own in means.items():
        for arch, mean in own.items():
            made += runs(arch, *(mean + seed / 200 for seed in range(seeds)), split=split)
    return table(write(folder / "study", *made))


def pairs_in_words(sentences: list[str]) -> set[tuple[str, str, str]]:
    """The test set, winner and loser of each difference that sentences state."""
    found = set()
    for sentence in sentences:
        name, _, text = sentence.removeprefix("On ").partition(", ")
        found |= {(name, winner, loser) for winner, text in BETTER.findall(text) for loser in NAME.findall(text)}
    return found


def pairs_in_groups(table: Table) -> set[tuple[str, str, str]]:
    """The same by the letters of the table: lines on the same examples that share none, the higher one first."""
    pairs = [(a, b) for a, b in permutations(rows_of(table.rows), 2) if a.place == b.place and a.mean > b.mean]
    return {(a.split, a.arch, b.arch) for a, b in pairs if a.group and b.group and not {*a.group} & {*b.group}}


@pytest.mark.parametrize("draw", range(4))
def test_the_verdict_has_exactly_the_differences_of_the_groups(tmp_path, draw):
    random, splits, archs = Random(draw), ("length", "simple", "addprim_jump"), ("lstm", "cnn", "transformer")
    means = {split: {arch: random.choice((0.1, 0.12, 0.15, 0.6)) for arch in archs} for split in splits}
    found = study_table(tmp_path, means)
    *better, counts = verdict(found)
    assert pairs_in_words(better) == pairs_in_groups(found)
    still_open = (found.pairs["tested"] & ~found.pairs["significant"]).sum()
    assert counts.startswith(f"9 comparisons on the same examples: {9 - still_open} decided, {still_open} open")


def test_means_that_differ_after_the_first_decimal_are_written_with_more(tmp_path):
    """Of a million examples each, so that the difference is not one of rounding."""
    shares = (("lstm", 0.9994), ("cnn", 0.9986))
    made = [rival(seed, share + seed / 1e6, arch) for arch, share in shares for seed in range(5)]
    for one in made:
        one["splits"]["test"]["n"] = 1_000_000
    first, _ = verdict(table(write(tmp_path / "study", *made)))
    assert first == "On length, lstm (99.94) is significantly better than cnn (99.86)."


@pytest.mark.parametrize(
    ("means", "seeds", "counts"),
    [
        ({"lstm": 0.1, "cnn": 0.1}, 4, "1 comparison on the same examples: 0 decided, 1 open. Open"),
        ({"lstm": 0.1}, 1, "No two conditions have the same test examples"),
        ({"lstm": 0.1, "cnn": 0.9}, 1, "0 decided, 0 open, 1 not tested (a test needs 2 seeds"),
    ],
)
def test_nothing_is_claimed_without_a_significant_difference(tmp_path, means, seeds, counts):
    first, second = verdict(study_table(tmp_path, {"length": means}, seeds))
    assert first.startswith("No condition is significantly better")
    assert counts in second


def test_of_many_test_sets_the_first_are_named(tmp_path):
    means = {f"mcd{n}": {"lstm": 0.1, "cnn": 0.9} for n in range(MAX_DETAILED + 2)}
    *better, more, _ = verdict(study_table(tmp_path, means))
    assert (len(better), more) == (MAX_DETAILED, "So on 2 more test sets; the table has all.")
