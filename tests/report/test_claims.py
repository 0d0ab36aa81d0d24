"""Claims as they are shown: by the command, in a table, on a terminal, and in the report of a study."""

import json
import re

import pytest

from tests.commands import tfstudy
from tests.example_claims import NEAR_HALF, claim, judged, values
from tests.example_records import put, three_architectures
from tests.example_tables import text_of
from tfstudy.analysis.frame import read_finished_runs, read_study
from tfstudy.analysis.published import VERDICTS
from tfstudy.report.claims import COLOURS, claim_texts, listing, markdown, study_claims

LSTM, CNN, NONE = ({"arch": arch} for arch in ("lstm", "cnn", "transformer"))


@pytest.fixture
def study(tmp_path):
    values(tmp_path, "lstm", *NEAR_HALF)
    return values(tmp_path, "cnn", 0.1, 0.11, 0.12, 0.1, 0.1)


def test_the_command_shows_all_and_some_claims(tmp_path, capsys):
    study = values(tmp_path / "results", "lstm", 0.14, 0.15, 0.13, 0.14, 0.14)
    values(study, "transformer", 0, 0.001, 0, 0.002, 0)
    assert tfstudy("claims", "--results", str(study)) == 0
    out = capsys.readouterr().out
    assert re.search(r"\n- L23: tested by tests/models/\S+\.py::", out)
    assert "\n- P14: run `tfstudy grid pcfg`" in out
    assert "| L3 | 1 supported, 1 refuted, 1 open | On the length split" in out
    line = r"\n  - the Transformer scores 0\.1 \[.*\], claimed 15\.8 ± 5: refuted \(n=5, q<.001\)\n"
    assert re.search(rf"\n## L3\n\n- on scan length:\n  - the LSTM .*{line}", out)
    assert tfstudy("claims", "L3", "L1", "--results", str(study), "--format", "json") == 0
    found = json.loads(capsys.readouterr().out)["claims"]
    assert [one["id"] for one in found] == ["L3", "L1"]
    statement = found[0]["statements"][1]
    assert (statement["verdict"], statement["n"], statement["is"], statement["bound"]) == ("refuted", 5, 15.8, 10.8)
    assert statement["conditions"][0]["each_seed"]["3"] == pytest.approx(0.2)


def test_the_evidence_is_the_first_statement_of_the_most_frequent_verdict_among_those_that_decide(study):
    true, false, open_ = ({"of": LSTM, "above": bound} for bound in (20, 80, 50))
    for parts, end in (
        ([true], "above 20: supported"), ([false, true, true], "above 20: supported"),
        ([open_, true], "above 20: supported"), ([true, false], "above 80: refuted"),
    ):  # fmt: skip
        evidence = judged(study, *parts).evidence
        assert evidence.startswith("on scan length: the LSTM scores 50.0 [49.")
        assert evidence.endswith(f"claimed {end} (n=5, q<.001)")
    assert "claimed above 50: open" in judged(study, open_).evidence
    assert judged(study, {"of": NONE, "above": 0}).evidence == "run `tfstudy grid scan`"


def test_the_sentence_of_a_difference_names_what_both_share_once_and_a_fall_by_its_size(study):
    found = judged(study, {"of": LSTM, "minus": CNN, "above": 0}).evidence
    assert found.startswith("on scan length: the LSTM is 39.4 [38.")
    assert "] above the CNN, claimed higher: supported (n=5, q" in found
    found = judged(study, {"of": CNN, "minus": LSTM, "above": 10}).evidence
    assert re.search(r": the CNN is 39\.4 \[38.*, 40.*\] below the LSTM, claimed a difference above 10: refuted", found)
    for name, dim in (("a", 64), ("b", 32)):
        for folder in values(study, "lstm", *NEAR_HALF, name=name).glob(f"*/*/s*-{name}*"):
            put(folder, "config.yaml", json.dumps({"model": {"dim": dim, "heads": 2}}))
    sides = [LSTM | {"model.dim": dim, "model.heads": 2} for dim in (64, 32)]
    found = judged(study, {"of": sides[0], "minus": sides[1], "above": 0}).evidence
    assert found.startswith("on scan length, heads=2: the LSTM (dim=64) is 0.0 [")


def test_a_claim_has_a_section_with_each_statement_that_was_measured(study):
    parts = [{"of": LSTM, "above": 20}, {"of": CNN, "above": 20}, {"of": NONE, "above": 20}]
    found = claim_texts([claim(*parts), claim(parts[2], id="L2")], [read_study(study)])
    text = markdown([*found.values()], ["a note"])
    first, second = text.split("\n## ")[1:3]
    assert len(re.findall("^ *- the", first, re.MULTILINE)) == 2
    assert first.endswith("\n- 1 statement not run: `tfstudy grid scan`\n")
    assert second == "Not measured\n\n- L2: run `tfstudy grid scan`\n"
    assert text.endswith("\n- a note\n")


def test_what_is_claimed_of_several_places_is_a_table_with_signed_differences_and_the_rest_a_list(tmp_path):
    places = [{"task": "scan", "split": split} for split in ("simple", "length", "mcd1", "mcd2")]
    for place in places:
        values(tmp_path, "lstm", *NEAR_HALF, name=f"lstm{place['split']}", **place)
        values(tmp_path, "cnn", 0.9, 0.91, 0.9, 0.92, 0.9, name=f"cnn{place['split']}", **place)
    each = [{"of": place | LSTM, "minus": place | CNN, "above": 0} for place in places[:3]]
    own = {"of": places[3] | CNN, "above": 99}
    text = markdown([judged(tmp_path, *each, own)])
    heads, _, *rows = (
        row.strip("| ").split(" | ") for row in text[text.index("| on |") :].split("\n\n")[0].split("\n")
    )
    assert heads == ["on", "LSTM \N{MINUS SIGN} CNN, claimed higher"]
    assert [row[0] for row in rows] == ["scan simple", "scan length", "scan mcd1"]
    for _, cell in rows:
        measured, verdict = cell.split(": ")
        mean, low, high = (float(one.replace("\N{MINUS SIGN}", "-")) for one in re.findall(r"[^\[\], ]+", measured))
        assert (mean, low < mean < high < 0) == (-40.6, True)
        assert verdict.startswith("refuted (n=5, q")
    assert "\n\n- on scan mcd2: the CNN scores 90.6 [" in text


def test_a_terminal_shows_verdict_and_evidence_and_with_details_each_statement(study):
    found = judged(study, {"of": LSTM, "is": 90.3, "within": 5}, {"of": NONE, "is": 12.1, "within": 5})
    lines = text_of(listing([found], ["a note"], details=False)).splitlines()
    assert " ".join(lines[0].split()) == "L1 1 refuted, 1 not run It is so."
    assert (lines[1].strip(), lines[-1]) == (found.evidence, "- a note")
    assert COLOURS.keys() == set(VERDICTS)
    text = " ".join(text_of(listing([found], [], details=True)).split())
    assert "2 on scan length: the Transformer, claimed 12.1 ± 5: not run" in text


def test_claims_that_a_study_has_runs_for_are_judged_in_its_report(tmp_path):
    found = {one.claim.id: one for one in study_claims(read_finished_runs(three_architectures(tmp_path)))}
    assert found["L3"].verdict == "3 open"
    assert "L2" not in found  # is on another split
