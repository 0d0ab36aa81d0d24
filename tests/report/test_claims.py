"""Claims as they are shown: by the command, in a table, on a terminal, and in the report of a study."""

import json
import re

import pytest

from tests.commands import tfstudy
from tests.example_claims import NEAR_HALF, judged, values
from tests.example_records import result, three_architectures, write
from tests.example_tables import text_of
from tfstudy.analysis import claims
from tfstudy.analysis.frame import read_finished_runs
from tfstudy.report.claims import COLOURS, listing, study_claims
from tfstudy.report.evidence import about, measured, verdict_table

# The command


def test_the_command_shows_all_and_some_claims(tmp_path, capsys):
    study = values(tmp_path / "results", "lstm", 0.14, 0.15, 0.13, 0.14, 0.14)
    values(study, "transformer", 0, 0.001, 0, 0.002, 0)
    assert tfstudy("claims", "--results", str(study)) == 0
    out = capsys.readouterr().out
    assert re.search(r"\| L23 \| theorem \|.*tested by tests/models/\S+\.py::", out)
    assert re.search(r"\| P14 \| not run \|.*: `tfstudy grid pcfg`", out)
    assert re.search(
        r"\| L3 \| mixed \|.*claimed: 15.8 ± 5; lstm minus .* \+13.9 \[.*; other statements: 1 undecided \| results \|",
        out,
    )
    assert f"lstm [s0]({study.as_posix()}/scan-length/lstm/s0-lstm0), [s1](" in out
    assert tfstudy("claims", "L3", "L1", "--results", str(study), "--format", "json") == 0
    found = json.loads(capsys.readouterr().out)["claims"]
    assert [one["id"] for one in found] == ["L3", "L1"]
    statement = found[0]["statements"][1]
    assert (statement["verdict"], statement["n"], statement["claimed_low"]) == ("refuted", 5, 10.8)
    assert statement["conditions"][0]["each_seed"]["3"] == pytest.approx(0.2)


# What a statement is about

SHARED = {"model.dim": 64, "data.train_length": "1-10"}


@pytest.mark.parametrize(
    ("first", "second", "text"),
    [
        (
            SHARED | {"arch": "lstm"},
            SHARED | {"arch": "cnn"},
            "lstm minus cnn (dim=64, train_length=1-10) on scan length",
        ),
        (
            {"arch": "lstm", "model.dim": 64, "model.cell": "gru"},
            {"arch": "lstm", "model.dim": 32, "model.cell": "gru"},
            "lstm dim=64 minus dim=32 (cell=gru) on scan length",
        ),
        (
            {"arch": "lstm", "model.dim": 64},
            {"arch": "cnn", "split": "simple", "model.dim": 64},
            "lstm on scan length minus cnn on scan simple (dim=64)",
        ),
    ],
)
def test_what_two_conditions_share_stands_once(tmp_path, first, second, text):
    found = judged(tmp_path, {"of": first, "minus": second, "above": 0})
    assert about(found.statements[0]) == f"exact match of {text}"


def test_a_comparison_of_unequal_numbers_of_seeds_names_both(tmp_path):
    values(tmp_path, "lstm", *NEAR_HALF)
    values(tmp_path, "cnn", 0.1, 0.11, 0.12)
    [statement] = judged(tmp_path, {"of": {"arch": "lstm"}, "minus": {"arch": "cnn"}, "above": 0}).statements
    assert " (n = 5 and 3), q" in measured(statement)


# The table


def cells(verdict, details=""):
    """The cells of the row of a claim."""
    row = verdict_table([verdict], details).splitlines()[2]
    return [cell.strip() for cell in row.strip("|").split(" | ")]


def test_a_mixed_claim_shows_a_statement_of_each_kind_and_counts_the_others(tmp_path):
    study = values(tmp_path / "here", "lstm", *NEAR_HALF)
    parts = [{"of": {"arch": "lstm"}, "above": bound} for bound in (90, -1, 20, 50)]
    missing = {"of": {"arch": "cnn"}, "above": 0}
    found = cells(judged(study, *parts, missing), details="claims.md")
    assert found[:3] == ["[L1](claims.md#l1-mixed)", "mixed", "It is so."]
    first, second, others = found[3].split("; ")
    assert first.startswith("lstm on scan length: 5")
    assert first.endswith(", claimed: above 90")
    assert second.endswith(", claimed: above \N{MINUS SIGN}1")
    assert others == "other statements: 1 supported, 1 undecided, 1 not run"
    assert found[4] == "[here](here/README.md)"
    assert cells(judged(study, *parts, missing))[::4] == ["L1", "here"]  # without a page of details nothing is a link


def test_a_claim_that_was_not_run_or_lacks_runs_says_so(tmp_path):
    study = values(tmp_path / "here", "lstm", *NEAR_HALF)
    parts = [{"of": {"arch": arch}, "above": 10} for arch in ("lstm", "cnn")]
    found = cells(judged(study, *parts), details="claims.md")
    assert (found[1], found[3]) == ("undecided", "supported: statement 1; not run: statement 2")
    found = cells(judged(study, parts[1]), details="claims.md")
    assert found == ["[L1](claims.md)", "not run", "It is so.", "no finished run of this kind: `tfstudy grid scan`", ""]


# On a terminal

UNRUN = {"of": {"arch": "cnn"}, "is": 12.1, "within": 5}


@pytest.fixture
def refuted(tmp_path):
    """A claim of which one statement is refuted, and one was not run."""
    values(tmp_path / "study", "lstm", 0.012, 0.013, 0.011)
    return judged(tmp_path / "study", {"of": {"arch": "lstm"}, "is": 90.3, "within": 5}, UNRUN)


def test_a_claim_has_its_verdict_and_reason_and_with_details_each_statement(refuted):
    lines = text_of(listing([refuted], ["a note"], details=False)).splitlines()
    assert lines[0].split() == ["L1", *refuted.verdict.split(), "It", "is", "so."]
    assert lines[1].strip() == "refuted: statement 1; not run: statement 2"
    assert COLOURS.keys() == set(claims.VERDICTS)
    assert lines[-1] == "- a note"
    text = " ".join(text_of(listing([refuted], [], details=True)).split())
    assert "exact match of lstm on scan length; 1.2 [" in text
    assert "; claimed 90.3 ± 5; on the wrong side of 85.3" in text
    assert "exact match of cnn on scan length; claimed 12.1 ± 5; no finished run" in text


# In the report of a study


@pytest.fixture
def study(tmp_path):
    return three_architectures(tmp_path)


def test_claims_that_a_study_has_runs_for_are_judged(study, tmp_path):
    found = {claim.id: claim for claim in study_claims(read_finished_runs(study))}
    length = found["L3"]
    assert len(length.evidence) == 3
    assert length.evidence[0].startswith("undecided: lstm on scan length, claimed: 18.2 ± 5; measured: 21.5 [")
    assert "1,000 parameters" in length.evidence[0]
    assert {path.parent.name for path in length.runs} == {"lstm", "transformer"}
    assert found["L5"].verdict == "measured in part"
    assert "L2" not in found  # is on another split
    assert study_claims(read_finished_runs(write(tmp_path / "other", result(0, split="no_such")))) == []
