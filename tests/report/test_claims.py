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
from tfstudy.report.claims import COLOURS, about, listing, markdown, study_claims

# The command


def test_the_command_shows_all_and_some_claims(tmp_path, capsys):
    study = values(tmp_path / "results", "lstm", 0.14, 0.15, 0.13, 0.14, 0.14)
    values(study, "transformer", 0, 0.001, 0, 0.002, 0)
    assert tfstudy("claims", "--results", str(study)) == 0
    out = capsys.readouterr().out
    assert re.search(r"\| L23 \| theorem \|.*tested by tests/models/\S+\.py::", out)
    assert re.search(r"\| P14 \| not run \|.*: `tfstudy grid pcfg`", out)
    evidence = r"The Transformer gets 0\.1 % of scan length right; claimed: 15\.8"
    assert re.search(rf"\| L3 \| 1 supported, 1 refuted, 1 open \|.*\| {evidence} \| results \|", out)
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
    assert about(found.statements[0]) == text


# The evidence


def evidence(folder, *statements, **more):
    return judged(folder, *statements, **more).evidence


def test_the_evidence_is_a_sentence_with_the_number_of_a_statement(tmp_path):
    """Of the most frequent verdict among those that decide, and of these the first."""
    study = values(tmp_path / "here", "lstm", *NEAR_HALF)
    values(study, "cnn", 0.1, 0.11, 0.12, 0.1, 0.1)
    lstm, cnn = {"arch": "lstm"}, {"arch": "cnn"}
    true, false, open_ = ({"of": lstm, "above": bound} for bound in (20, 80, 50))
    assert evidence(study, true) == "The LSTM gets 50.0 % of scan length right; claimed: more than 20"
    assert evidence(study, false, true, true) == evidence(study, open_, true)
    assert evidence(study, true, false) == "The LSTM gets 50.0 % of scan length right; claimed: more than 80"
    assert evidence(study, open_).endswith("claimed: more than 50 (undecided)")
    differences = [{"of": one, "minus": other, "above": 0} for one, other in ((lstm, cnn), (cnn, lstm))]
    assert [evidence(study, one) for one in differences] == [
        "The LSTM is 39.4 points above the CNN on scan length; claimed: higher",
        "The CNN is 39.4 points below the LSTM on scan length; claimed: higher",
    ]
    assert evidence(study, {"of": {"arch": "transformer"}, "above": 0}) == (
        "no finished run of this kind: `tfstudy grid scan`"
    )


def test_a_fall_between_test_sets_is_called_one(tmp_path):
    for seed, share in enumerate(NEAR_HALF):
        one = result(seed, share)
        part = one["splits"]["test"]
        one["splits"]["test_long"] = part | {"metrics": part["metrics"] | {"exact_match": share / 5}}
        write(tmp_path, one)
    found = evidence(tmp_path, {"of": {"arch": "lstm"}, "minus": {"arch": "lstm", "test": "test_long"}, "above": 0})
    assert found == "Exact match of the LSTM falls by 40.0 from scan length to test_long; claimed: a fall"


def test_the_section_of_a_claim_has_a_row_for_each_statement(tmp_path):
    values(tmp_path, "lstm", *NEAR_HALF)
    values(tmp_path, "cnn", 0.1, 0.11, 0.12)
    lstm, cnn, none = ({"arch": arch} for arch in ("lstm", "cnn", "transformer"))
    parts = [{"of": lstm, "above": 20}, {"of": lstm, "minus": cnn, "above": 0}, {"of": none, "above": 0}]
    text = markdown([judged(tmp_path, *parts)])
    assert "| statement on scan length | claimed | measured | q | verdict |" in text
    assert re.search(r"\n\| lstm \| above 20 \| 50.0 \[49.\d, 51.\d\] \| <.001 \| supported \|\n", text)
    assert re.search(r"\n\| lstm minus cnn \| above 0 \| \+39.0 \[.*\] \(n = 3\) \| <.001 \| supported \|\n", text)
    assert "\n| transformer | above 0 |  |  | not run (no finished run of this kind) |\n" in text


# On a terminal

UNRUN = {"of": {"arch": "cnn"}, "is": 12.1, "within": 5}


@pytest.fixture
def refuted(tmp_path):
    """A claim of which one statement is refuted, and one was not run."""
    values(tmp_path / "study", "lstm", 0.012, 0.013, 0.011)
    return judged(tmp_path / "study", {"of": {"arch": "lstm"}, "is": 90.3, "within": 5}, UNRUN)


def test_a_claim_has_its_verdict_and_evidence_and_with_details_each_statement(refuted):
    lines = text_of(listing([refuted], ["a note"], details=False)).splitlines()
    assert " ".join(lines[0].split()) == "L1 1 refuted, 1 open It is so."
    assert lines[1].strip() == "The LSTM gets 1.2 % of scan length right; claimed: 90.3"
    assert COLOURS.keys() == set(claims.VERDICTS)
    assert lines[-1] == "- a note"
    text = " ".join(text_of(listing([refuted], [], details=True)).split())
    assert "lstm on scan length; claimed 90.3 ± 5; 1.2 [" in text
    assert "(n = 3), q < .001; on the wrong side of 85.3" in text
    assert "cnn on scan length; claimed 12.1 ± 5; no finished run" in text


# In the report of a study


@pytest.fixture
def study(tmp_path):
    return three_architectures(tmp_path)


def test_claims_that_a_study_has_runs_for_are_judged(study, tmp_path):
    found = {one.claim.id: one for one in study_claims(read_finished_runs(study))}
    length = found["L3"]
    assert length.verdict == "3 open"
    assert length.evidence == "The LSTM gets 21.5 % of scan length right; claimed: 18.2 (undecided)"
    assert {run.path.parent.name for one in length.statements for c in one.conditions for run in c.runs} == {
        "lstm", "transformer",
    }  # fmt: skip
    assert found["L5"].verdict.endswith("open")
    assert "L2" not in found  # is on another split
    assert study_claims(read_finished_runs(write(tmp_path / "other", result(0, split="no_such")))) == []
