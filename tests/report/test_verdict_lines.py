"""Verdicts and outcomes of checks on a terminal."""

from tfstudy.analysis import claims, regression
from tfstudy.report.claims import protocol
from tfstudy.report.verdict_lines import STATES, VERDICTS, check_lines, claim_lines

CLAIM = {"id": "L2", "verdict": "refuted", "claim": "a claim", "reason": "statement 1", "command": "tfstudy grid scan"}
RAN = {"verdict": "refuted", "reason": "lies below", "subject": "exact match of lstm on scan simple"}
MISSING = {
    "verdict": "not run",
    "reason": "no finished run",
    "subject": "exact match of cnn on scan simple",
    "claimed": "12.1 ± 5",
}
TREE = {
    "claims": [CLAIM | {"statements": [RAN | {"measured": "1.2 [0.9, 1.5] (n = 5)", "claimed": "90.3 ± 5"}, MISSING]}],
    "notes": ["a note"],
}


def test_a_claim_has_its_verdict_and_reason_and_no_statements():
    lines = claim_lines(TREE, details=False)
    assert [str(line).split() for line in lines[:2]] == [["L2", "refuted", "a", "claim"], ["statement", "1"]]
    assert "red" in [span.style for span in lines[0].spans]
    assert not any("claimed" in str(line) for line in lines)
    assert str(lines[-1]) == "-  a note"


def test_details_have_each_statement_with_what_was_measured_and_claimed():
    text = " ".join(" ".join(map(str, claim_lines(TREE, details=True))).split())
    assert "exact match of lstm on scan simple; 1.2 [0.9, 1.5] (n = 5); claimed 90.3 ± 5; lies below" in text
    assert "exact match of cnn on scan simple; claimed 12.1 ± 5; no finished run" in text


def test_a_claim_that_was_not_run_names_its_command():
    [claim] = TREE["claims"]
    lines = claim_lines({"claims": [claim | {"verdict": "not run"}], "notes": []}, details=False)
    assert "`tfstudy grid scan`" in str(lines[1])


def test_only_notes_that_apply_to_what_is_printed_are_shown_and_fit_the_terminal(monkeypatch):
    monkeypatch.setattr("tfstudy.report.listing.terminal_width", lambda: 80)
    tree = TREE | {"notes": protocol()}
    for details, facts in ((False, ["supported if"]), (True, ["supported if", "percent"])):
        lines = list(map(str, claim_lines(tree, details)))
        starts = [line for line in lines if line.startswith("-  ")]
        assert [fact in line for fact, line in zip(facts, starts, strict=True)] == [True] * len(facts)
        assert max(map(len, lines)) <= 80
    [claim] = TREE["claims"]
    unrun = {"claims": [claim | {"statements": [MISSING]}], "notes": protocol()}
    assert not any(str(line).startswith("-") for line in claim_lines(unrun, details=True))


def test_a_check_has_both_means_of_each_condition():
    rows = [
        {
            "state": "worse",
            "name": "scan length lstm",
            "baseline": {"0": 10, "1": 20},
            "current": {"0": 5},
            "reason": "",
        },
        {"state": "missing", "name": "scan length cnn", "baseline": {"0": 1}, "current": {}, "reason": "no run"},
    ]
    head, worse, missing = check_lines("2 conditions", rows)
    assert str(head) == "2 conditions"
    assert str(worse).split() == ["worse", "scan", "length", "lstm", "15.0", "->", "5.0"]
    assert str(missing).split()[-3:] == ["none", "no", "run"]
    assert worse.spans[0].style == "bold red"


def test_every_verdict_and_state_has_a_colour():
    assert VERDICTS.keys() == set(claims.VERDICTS)
    assert STATES.keys() == set(regression.STATES)
    row = {"state": "too few seeds", "name": "scan", "baseline": {"0": 1}, "current": {"0": 1}, "reason": ""}
    [_, line] = check_lines("1 condition", [row])
    assert (line.spans[0].style, line.spans[0].end) == ("yellow", len("too few seeds"))
