"""Verdicts and outcomes of checks on a terminal."""

import pytest

from tests.example_claims import judged, values
from tfstudy.analysis import claims, regression
from tfstudy.analysis.regression import BaselineRow, Outcome
from tfstudy.report.verdict_lines import STATES, VERDICTS, check_lines, claim_lines

BELOW = {"of": {"arch": "lstm"}, "is": 90.3, "within": 5}
UNRUN = {"of": {"arch": "cnn"}, "is": 12.1, "within": 5}


@pytest.fixture
def refuted(tmp_path):
    """A claim of which one statement is refuted, and one was not run."""
    values(tmp_path / "study", "lstm", 0.012, 0.013, 0.011)
    return judged(tmp_path / "study", BELOW, UNRUN)


def test_a_claim_has_its_verdict_and_reason_and_no_statements(refuted):
    lines = claim_lines([refuted], ["a note"], details=False)
    assert str(lines[0]).split() == ["L1", *refuted.verdict.split(), "It", "is", "so."]
    assert str(lines[1]).strip() == "refuted: statement 1; not run: statement 2"
    assert VERDICTS[refuted.verdict] in [span.style for span in lines[0].spans]
    assert not any("claimed 90.3" in str(line) for line in lines)
    assert str(lines[-1]) == "-  a note"


def test_details_have_each_statement_with_what_was_measured_and_claimed(refuted):
    text = " ".join(" ".join(map(str, claim_lines([refuted], [], details=True))).split())
    assert "exact match of lstm on scan length; 1.2 [" in text
    assert "; claimed 90.3 ± 5; the whole interval lies below" in text
    assert "exact match of cnn on scan length; claimed 12.1 ± 5; no finished run" in text


def test_a_claim_that_was_not_run_names_its_command_and_has_no_protocol(tmp_path):
    (tmp_path / "study").mkdir()
    unrun = judged(tmp_path / "study", UNRUN)
    lines = list(map(str, claim_lines([unrun], [], details=True)))
    assert "`tfstudy grid scan`" in lines[1]
    assert not any(line.startswith("-") for line in lines)


def test_only_notes_that_apply_to_what_is_printed_are_shown_and_fit_the_terminal(refuted, monkeypatch):
    monkeypatch.setattr("tfstudy.report.terminal.terminal_width", lambda: 80)
    for details, facts in ((False, ["supported if"]), (True, ["supported if", "one of two", "percent"])):
        lines = list(map(str, claim_lines([refuted], [], details)))
        starts = [line for line in lines if line.startswith("-  ")]
        assert [fact in line for fact, line in zip(facts, starts, strict=True)] == [True] * len(facts)
        assert max(map(len, lines)) <= 80


def outcome(state, baseline, current, reason=""):
    row = BaselineRow("scan", "length", "test", "lstm", "default", "exact_match", baseline, 100)
    return Outcome(row, state, current, reason=reason)


def test_a_check_has_both_means_of_each_condition():
    outcomes = [outcome("worse", {0: 10, 1: 20}, {0: 5}), outcome("missing", {0: 1}, {}, "no run")]
    head, worse, missing = check_lines("2 conditions", outcomes)
    assert str(head) == "2 conditions"
    assert str(worse).split() == ["worse", "scan", "length", "lstm", "default", "15.0", "->", "5.0"]
    assert str(missing).split()[-3:] == ["none", "no", "run"]
    assert worse.spans[0].style == "bold red"


def test_every_verdict_and_state_has_a_colour():
    assert VERDICTS.keys() == set(claims.VERDICTS)
    assert STATES.keys() == set(regression.STATES)
    [_, line] = check_lines("1 condition", [outcome("too few seeds", {0: 1}, {0: 1})])
    assert (line.spans[0].style, line.spans[0].end) == ("yellow", len("too few seeds"))
