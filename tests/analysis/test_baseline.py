"""`tfstudy check`: a real drop fails; noise and too few seeds do not."""

import json
import re
import shutil
from pathlib import Path

import msgspec
import pytest

from tests.commands import tfstudy
from tests.example_records import result, write
from tests.example_tables import rows
from tfstudy.analysis.baseline import BETTER, MISSING, OPEN, UNCHANGED, UNTESTED, WORSE, read_baseline
from tfstudy.analysis.baseline import check as compare

THEN = (0.80, 0.82, 0.78, 0.81, 0.79)


def study(place: Path, figures) -> Path:
    return write(place, *(result(seed, figure) for seed, figure in enumerate(figures)))


def kept(tmp_path: Path, capsys) -> Path:
    study(tmp_path / "results" / "then", THEN)
    assert tfstudy("table", "then", "--results", str(tmp_path / "results"), "--format", "json") == 0
    path = tmp_path / "baseline.json"
    path.write_text(capsys.readouterr().out)
    return path


def with_rows(path: Path, *changes: dict) -> None:
    """Give a saved table its first row with each of these changes."""
    tree = json.loads(path.read_text())
    path.write_text(json.dumps(tree | {"rows": [tree["rows"][0] | one for one in changes]}))


def check(tmp_path: Path, *more: str) -> int:
    baseline = str(tmp_path / "baseline.json")
    return tfstudy("check", "now", "--results", str(tmp_path / "results"), "--against", baseline, *more)


@pytest.mark.parametrize(
    ("figures", "state", "code", "reason"),
    [
        (THEN, UNCHANGED, 0, ""),
        ((0.70, 0.73, 0.67, 0.71, 0.69), WORSE, 1, ""),
        ((0.90, 0.93, 0.87, 0.91, 0.89), BETTER, 0, ""),
        ((0.60, 0.99, 0.55, 0.95, 0.60), OPEN, 0, ""),  # lower in the mean, but noise
        ((0.795, 0.816, 0.774, 0.805, 0.786), UNCHANGED, 0, ""),  # significant, but within the tolerance
        ((0.0,) * 5, WORSE, 1, ""),  # without any spread
        (THEN[:2], MISSING, 1, "3 of the baseline's 5 seeds"),
        ((0.1, 0.12, 0.08, 0.11), WORSE, 1, "4 of the baseline's 5 seeds"),  # a drop is still one
    ],
)
def test_only_a_drop_that_is_significant_and_large_fails_or_a_seed_that_is_missing(
    tmp_path, capsys, figures, state, code, reason
):
    kept(tmp_path, capsys)
    study(tmp_path / "results" / "now", figures)
    found = compare(read_baseline(tmp_path / "baseline.json"), rows(tmp_path / "results" / "now"), 1.0)
    assert (found["state"].tolist(), found["reason"].tolist()) == ([state], [reason])
    assert check(tmp_path) == code
    out = capsys.readouterr().out
    assert f"1 {state}" in out
    assert f"{reason} |\n" in out


def test_rows_without_a_counterpart_or_with_one_seed_are_named_and_the_tolerance_is_in_points(tmp_path, capsys):
    path = kept(tmp_path, capsys)
    study(tmp_path / "results" / "now", (0.70, 0.73, 0.67, 0.71, 0.69))
    assert [check(tmp_path, "--tolerance", points) for points in ("9", "11")] == [1, 0]
    with_rows(path, {}, {"each_seed": {"0": 80.0}})
    assert check(tmp_path, "--tolerance", "11") == 0
    assert re.search(rf"\n\| {UNTESTED} \|.*\| a test needs 2 \|\n", capsys.readouterr().out)
    with_rows(path, {}, {"arch": "cnn"})
    assert check(tmp_path, "--tolerance", "11") == 1
    assert re.search(rf"\n\| {MISSING} \|.*\| no current condition has this name \|\n", capsys.readouterr().out)
    with_rows(path, *({"preset": f"p{n}"} for n in range(7)))
    assert check(tmp_path) == 2
    assert "missing: no current condition has this name (7 of 7 conditions)" in capsys.readouterr().err


def test_runs_that_diverge_now_count_as_0_and_other_examples_are_not_compared(tmp_path, capsys):
    kept(tmp_path, capsys)
    parts = [result(seed, status="diverged", reason="nan") for seed in range(5)]
    write(tmp_path / "results" / "now", *({k: v for k, v in part.items() if k != "splits"} for part in parts))
    assert check(tmp_path) == 1
    assert "0.0 (n = 5)" in capsys.readouterr().out
    shutil.rmtree(tmp_path / "results" / "now")
    part = result(0)["splits"]["test"] | {"n": 500}
    write(tmp_path / "results" / "now", *(result(seed, splits={"test": part}) for seed in range(5)))
    assert check(tmp_path) == 2
    assert "1000 examples in the baseline, 500 now" in capsys.readouterr().err


def test_each_corpus_is_compared_with_itself_and_a_neighbour_of_other_settings_hides_no_row(tmp_path, capsys):
    """`hard` alone would be a drop against `easy`."""
    own = {"task": "translation", "split": "corpus"}
    for corpus, share in (("easy", 0.4), ("hard", 0.1)):
        for place in ("then", "now") if corpus == "hard" else ("then",):
            names = {"experiment": f"{place}{corpus}", "corpus": corpus, **own}
            made = [result(seed, share + seed / 1000, run=f"{place}{corpus}{seed}", **names) for seed in range(3)]
            write(tmp_path / "results" / place, *made)
    write(tmp_path / "results" / "now", result(0, 0.8, run="ab", **(own | {"experiment": "other", "corpus": "hard"})))
    assert tfstudy("table", "then", "--results", str(tmp_path / "results"), "--format", "json") == 0
    path = tmp_path / "baseline.json"
    path.write_text(capsys.readouterr().out)
    baseline = [msgspec.structs.replace(row, experiment="nowhard") for row in read_baseline(path)]
    found = compare(baseline, rows(tmp_path / "results" / "now"), tolerance=1)
    assert (found["corpus"] + found["state"]).tolist() == [f"easy{MISSING}", f"hard{UNCHANGED}"]
    assert "translation corpus hard" in found["name"][1]


@pytest.mark.parametrize(
    ("content", "message"),
    [("", "is not a table"), ("{}", "is not a table"), ('{"rows": []}', "has no rows"), (None, "can't read")],
)
def test_what_is_no_baseline_is_refused(tmp_path, capsys, content, message):
    study(tmp_path / "results" / "now", THEN)
    if content is not None:
        (tmp_path / "baseline.json").write_text(content)
    assert check(tmp_path) == 2
    assert message in capsys.readouterr().err
