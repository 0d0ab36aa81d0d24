"""The table of verdicts: the numbers that decide each claim, and the studies that they are from."""

from tests.example_claims import NEAR_HALF, judged, values
from tfstudy.report.verdict_table import verdict_table


def cells(*verdicts, details=""):
    """The cells of the first row of a table."""
    row = verdict_table(verdicts, details).splitlines()[2]
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


def test_a_claim_that_only_lacks_runs_says_which_statements_were_not_run(tmp_path):
    study = values(tmp_path / "here", "lstm", *NEAR_HALF)
    parts = [{"of": {"arch": arch}, "above": 10} for arch in ("lstm", "cnn")]
    found = cells(judged(study, *parts), details="claims.md")
    assert found[1] == "undecided"
    assert found[3] == "supported: statement 1; not run: statement 2"


def test_the_evidence_of_a_claim_that_was_not_run_is_its_command(tmp_path):
    study = values(tmp_path / "here", "lstm", *NEAR_HALF)
    found = cells(judged(study, {"of": {"arch": "cnn"}, "above": 0}), details="claims.md")
    assert found == ["[L1](claims.md)", "not run", "It is so.", "no finished run of this kind: `tfstudy grid scan`", ""]


def test_without_a_page_of_details_nothing_is_a_link(tmp_path):
    study = values(tmp_path / "here", "lstm", *NEAR_HALF)
    found = cells(
        judged(study, {"of": {"arch": "lstm"}, "above": 10}, {"of": {"arch": "lstm"}, "metric": "diverged", "below": 5})
    )
    assert (found[0], found[4]) == ("L1", "here")
    assert "lstm on scan length (share of runs that diverged): 0.0" in found[3]


def test_a_theorem_shows_its_test_and_the_first_sentence_of_its_note(tmp_path):
    study = values(tmp_path / "here", "lstm", *NEAR_HALF)
    theorem = judged(study, tested_by="tests/a.py::test_it", note="True up to 64. It is measured so; and so.")
    assert cells(theorem, details="claims.md")[3] == "tested by tests/a.py::test_it. True up to 64"
    assert cells(theorem)[3] == "tested by tests/a.py::test_it; True up to 64. It is measured so; and so."
