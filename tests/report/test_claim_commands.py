"""The command `claims`."""

import json
import re

import pytest

from tests.commands import tfstudy
from tests.example_claims import values


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
    ],
)
def test_a_config_error_is_one_message(tmp_path, monkeypatch, capsys, words, message):
    monkeypatch.chdir(tmp_path)
    assert tfstudy(*words) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert list(tmp_path.iterdir()) == []
