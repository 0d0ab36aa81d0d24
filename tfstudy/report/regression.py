"""The comparison of a study with its baseline, for people and for CI: Markdown and JUnit XML."""

from collections.abc import Collection, Sequence
from pathlib import Path
from statistics import mean
from typing import Any, NamedTuple
from xml.etree import ElementTree

from tfstudy.analysis.collection import read_study
from tfstudy.analysis.conditions import conditions
from tfstudy.analysis.regression import (
    MISSING,
    STATES,
    UNTESTED,
    WORSE,
    Outcome,
    compare_with_baseline,
    read_baseline,
)
from tfstudy.report.markup import markdown_table, p_value, plural, with_interval

NOTE = (
    "percent, mean over seeds; change in points with its simultaneous 95 % interval, paired by seed; p corrected for "
    "the number of conditions"
)


class Check(NamedTuple):
    """The comparison of a study with its baseline: as Markdown, as JUnit XML, and whether the check failed."""

    headline: str
    markdown: str
    junit: bytes
    failed: bool
    outcomes: Sequence[Outcome] = ()  # of each condition


def check_study(study: Path, against: Path, tolerance: float, partial: bool = False) -> Check:
    """Compare a folder of runs with the baseline in a file; `partial` allows missing conditions and seeds.

    `tolerance` is in percentage points. `UserError` if the file is no baseline or if no condition could be tested.
    """
    baseline, runs = read_baseline(against), read_study(study)
    current = conditions(runs.runs, baseline[0].tag)  # a table has one tag for all conditions
    outcomes = compare_with_baseline(baseline, current, tolerance, partial)
    failing = (WORSE,) if partial else (WORSE, MISSING)
    text = "\n".join([markdown(outcomes, tolerance), *(f"- {line}" for line in runs.left_out_notes())])
    failed = any(outcome.state in failing for outcome in outcomes)
    return Check(headline(outcomes, tolerance), text, junit(outcomes, tolerance, failing), failed, outcomes)


def outcome_values(outcome: Outcome) -> dict[str, Any]:
    """Return an outcome as plain values; percent, and points for the difference."""
    row, found = outcome.baseline, outcome.difference
    names = {key: getattr(row, key) for key in ("name", "task", "split", "test", "arch", "preset", "metric")}
    seeds = {"baseline": row.each_seed, "current": outcome.current}
    difference = {"difference": found.mean, "low": found.low, "high": found.high} if found else {}
    none = dict.fromkeys(("difference", "low", "high"))
    by_seed = {key: {str(seed): value for seed, value in values.items()} for key, values in seeds.items()}
    return {**names, "state": outcome.state, "reason": outcome.reason, **by_seed, **none, **difference, "p": outcome.p}


def error_check(message: str) -> Check:
    """Return a check that could not be made, as Markdown and as JUnit XML with one error."""
    case = ElementTree.Element("testcase", classname="tfstudy", name="check")
    ElementTree.SubElement(case, "error", message=message)
    lines = "\n".join(f"> {line}" for line in message.splitlines())
    head = "tfstudy check: error"
    return Check(head, f"**{head}**\n\n{lines}\n", _suite([case]), True)


def headline(outcomes: Sequence[Outcome], tolerance: float) -> str:
    """Return the number of conditions in each state."""
    counts = {state: sum(outcome.state == state for outcome in outcomes) for state in STATES}
    listed = ", ".join(f"{count} {state}" for state, count in counts.items() if count)
    return f"{plural(len(outcomes), 'condition')}, tolerance {tolerance:g} points: {listed}"


def markdown(outcomes: Sequence[Outcome], tolerance: float) -> str:
    """Return a table of the rows, worse ones first."""
    rows = []
    for outcome in sorted(outcomes, key=lambda outcome: STATES.index(outcome.state)):
        state = f"**{outcome.state}**" if outcome.state == WORSE else outcome.state
        state += f": {outcome.reason}" * bool(outcome.reason)
        rows.append((outcome.baseline.name, state, *_numbers(outcome)))
    table = markdown_table(("condition", "result", "baseline", "current", "change", "p"), rows)
    return f"**{headline(outcomes, tolerance)}**\n\n{table}\n\n{NOTE}\n"


def _numbers(outcome: Outcome) -> tuple[str, str, str, str]:
    baseline, current = (_mean(list(by_seed.values())) for by_seed in (outcome.baseline.each_seed, outcome.current))
    difference = outcome.difference
    change = with_interval(difference.mean, difference.low, difference.high, "+") if difference else ""
    return baseline, current, change, p_value(outcome.p) if difference else ""


def _mean(values: Sequence[float]) -> str:
    return f"{mean(values):.1f} (n = {len(values)})" if values else ""


def junit(outcomes: Sequence[Outcome], tolerance: float, failing: Collection[str]) -> bytes:
    """Return JUnit XML: a test case per row, failed if its state is in `failing`, skipped if it could not be tested."""
    cases = [_case(outcome, tolerance, failing) for outcome in outcomes]
    return _suite(cases)


def _suite(cases: Sequence[ElementTree.Element]) -> bytes:
    tags = {"failures": "failure", "errors": "error", "skipped": "skipped"}
    counts = {name: str(sum(case.find(tag) is not None for case in cases)) for name, tag in tags.items()}
    suite = ElementTree.Element("testsuite", {"name": "tfstudy check", "tests": str(len(cases)), **counts})
    suite.extend(cases)
    ElementTree.indent(suite)
    encoded: bytes = ElementTree.tostring(suite, encoding="utf-8", xml_declaration=True)
    return encoded


def _case(outcome: Outcome, tolerance: float, failing: Collection[str]) -> ElementTree.Element:
    row = outcome.baseline
    baseline, current, change, p = _numbers(outcome)
    parts = (
        f"baseline {baseline}, current {current or 'none'}",
        f"change {change}" * bool(change),
        f"p {p}" * bool(p),
        outcome.reason,
    )
    text = "; ".join(filter(None, parts))
    case = ElementTree.Element("testcase", classname=f"{row.task}.{row.split}", name=row.name)
    if outcome.state in failing:
        message = f"dropped by more than {tolerance:g} points" if outcome.state == WORSE else _with_reason(outcome)
        ElementTree.SubElement(case, "failure", message=message).text = text
    elif outcome.state in (UNTESTED, MISSING):
        ElementTree.SubElement(case, "skipped", message=_with_reason(outcome))
    else:
        ElementTree.SubElement(case, "system-out").text = f"{outcome.state}: {text}"
    return case


def _with_reason(outcome: Outcome) -> str:
    return f"{outcome.state}: {outcome.reason}"
