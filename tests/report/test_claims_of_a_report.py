"""The claims of a report: those that the study measured, with the evidence on each statement."""

from pathlib import Path

import pytest

from tests.example_records import result, three_architectures, write
from tfstudy.analysis.collection import read_finished_runs
from tfstudy.report.claims import ClaimText, study_claims
from tfstudy.report.html_page import publish


@pytest.fixture
def study(tmp_path) -> Path:
    return three_architectures(tmp_path)


@pytest.fixture
def no_figures(monkeypatch):
    monkeypatch.setattr("tfstudy.report.study_page.all_plots", lambda *_: [])


@pytest.mark.usefixtures("no_figures")
def test_claims_have_a_section_if_there_are_any(study, tmp_path):
    run = next(study.glob("*/lstm/s*"))
    claims = [ClaimText("L1", "It <learns>", "refuted", "all statements", ["a: 1 [0, 2]", "b"], "a book", [run])]
    text = publish(read_finished_runs(study), tmp_path / "out", claims)[0].read_text()
    assert text.index('id="comparisons"') < text.index('id="claims"') < text.index('id="protocol"')
    assert "L, such as L2: a statement of lecture notes" in text
    assert "It &lt;learns&gt;" in text
    assert "<ol><li>a: 1 [0, 2]</li><li>b</li></ol>" in text
    assert (
        "| L1 | It &lt;learns> | **refuted** | all statements: (1) a: 1 [0, 2]; (2) b |"
        in (tmp_path / "out" / "report.md").read_text()
    )


def test_claims_that_a_study_has_runs_for_are_judged(study, tmp_path):
    found = study_claims(read_finished_runs(study))
    length = next(claim for claim in found if claim.id == "L3")
    assert len(length.evidence) == 3
    assert length.evidence[0].startswith("undecided: lstm on scan length, claimed: 18.2 ± 5; measured: 21.5 [")
    assert "1,000 parameters" in length.evidence[0]
    assert next(claim.verdict for claim in found if claim.id == "L5") == "measured in part"
    assert {path.parent.name for path in length.runs} == {"lstm", "transformer"}
    assert "L2" not in {claim.id for claim in found}  # is on another split
    assert study_claims(read_finished_runs(write(tmp_path / "other", result(0, split="no_such")))) == []
