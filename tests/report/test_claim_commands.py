"""The commands `claims` and `reproduce`."""

import json
import re

import pytest

from tests.commands import tfstudy
from tests.example_claims import NEAR_HALF, values
from tfstudy.grids.spec import load_grid


def test_the_command_shows_all_and_some_claims(tmp_path, capsys):
    study = values(tmp_path / "results", "lstm", 0.14, 0.15, 0.13, 0.14, 0.14)
    values(study, "transformer", 0, 0.001, 0, 0.002, 0)
    assert tfstudy("claims", "--results", str(study)) == 0
    out = capsys.readouterr().out
    assert re.search(r"\| L23 \| theorem \|.*tested by tests/models/parts/test_positions.py::", out)
    assert re.search(r"\| P14 \| not run \|.*: `tfstudy grid pcfg`", out)
    assert re.search(
        r"\| L3 \| mixed \|.*claimed: 15.8 ± 5; lstm minus .* \+13.9 \[.*; other statements: 1 undecided \| results \|",
        out,
    )
    assert re.search(r"\| L1 \| not run \|.*: `tfstudy grid scan-simple", out)
    assert f"lstm [s0]({study.as_posix()}/scan-length/lstm/s0-lstm0), [s1](" in out
    assert tfstudy("claims", "L3", "L1", "--results", str(study), "--format", "json") == 0
    found = json.loads(capsys.readouterr().out)["claims"]
    assert [one["id"] for one in found] == ["L3", "L1"]
    statement = found[0]["statements"][1]
    assert (statement["verdict"], statement["n"], statement["claimed_low"]) == ("refuted", 5, 10.8)
    assert statement["conditions"][0]["each_seed"]["3"] == pytest.approx(0.2)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("claims", "L33"), "unknown claim"),
        (("claims", "--format", "mdd"), "did you mean 'md'?"),
        (("claims", "--results", "nowhere"), "there is no folder of results at 'nowhere'"),
        (("reproduce", "lake-2019"), "did you mean 'lake-2018'?"),
        (("reproduce", "hupkes-2020", "--run"), "--run needs a grid with the name of the paper"),
        (("reproduce", "lake-2018", "--tier", "quick"), "--tier needs --run"),
    ],
)
def test_a_config_error_is_one_message(tmp_path, monkeypatch, capsys, words, message):
    monkeypatch.chdir(tmp_path)
    assert tfstudy(*words) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_run_starts_the_grid_of_the_paper(tmp_path, monkeypatch, capsys):
    started = []
    monkeypatch.setattr("tfstudy.console.grids.run_grid", lambda spec, folder, settings: started.append((spec, folder)))
    study = values(tmp_path, "lstm", *NEAR_HALF)
    assert tfstudy("reproduce", "lake-2018", "--run", "--tier", "quick", "--results", str(study)) == 0
    [(spec, folder)] = started
    assert (spec, folder) == (load_grid("lake-2018", "quick"), study / "lake-2018")


def test_papers_are_listed_without_a_name(capsys):
    assert tfstudy("reproduce") == 0
    assert re.search(r"deletang-2022 +\d+ +\d+ +\d+ ", capsys.readouterr().out)
