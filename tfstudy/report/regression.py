"""What became of a study's figures, for people and for CI: Markdown and JUnit XML."""

import math
from collections.abc import Collection, Sequence
from statistics import mean
from xml.etree import ElementTree

from tfstudy.analysis.regression import MISSING, STATES, UNKNOWN, WORSE, Outcome
from tfstudy.report.markup import p_value, signed


def headline(outcomes: Sequence[Outcome], tolerance: float) -> str:
    """How many rows are worse, and how many can't be told."""
    counts = {state: sum(outcome.state == state for outcome in outcomes) for state in STATES}
    told = ", ".join(f"{count} {state}" for state, count in counts.items() if count)
    return f"{len(outcomes)} rows, tolerance {tolerance:g} points: {told}"


def markdown(outcomes: Sequence[Outcome], tolerance: float) -> str:
    """The rows, those that are worse first, with what they fell by."""
    lines = [
        f"**{headline(outcomes, tolerance)}**",
        "",
        "| row | verdict | then | now | change | p |",
        "|---|---|---|---|---|---|",
    ]
    for outcome in sorted(outcomes, key=lambda outcome: STATES.index(outcome.state)):
        verdict = f"**{outcome.state}**" if outcome.state == WORSE else outcome.state
        cells = (outcome.then.name, f"{verdict}: {outcome.reason}" if outcome.reason else verdict, *_figures(outcome))
        lines.append(f"| {' | '.join(cells)} |")
    notes = "per cent, mean of seeds; change in points with its 95 % interval, paired by seed; p corrected (Holm)"
    return "\n".join([*lines, "", notes]) + "\n"


def _figures(outcome: Outcome) -> tuple[str, str, str, str]:
    then = _mean(list(outcome.then.each_seed.values()))
    now = _mean(list(outcome.now.values()))
    found = outcome.found
    if not found:
        return then, now, "", ""
    change = f"{signed(found.mean)} [{signed(found.low)}, {signed(found.high)}]"
    return then, now, change, "" if math.isnan(outcome.p) else p_value(outcome.p)


def _mean(values: Sequence[float]) -> str:
    return f"{mean(values):.1f} (n = {len(values)})" if values else ""


def junit(outcomes: Sequence[Outcome], tolerance: float, failing: Collection[str]) -> bytes:
    """JUnit XML: a case a row, failed if its state is one of `failing`, skipped if nothing can be told of it."""
    cases = [_case(outcome, tolerance, failing) for outcome in outcomes]
    failed, skipped = (str(sum(case.find(tag) is not None for case in cases)) for tag in ("failure", "skipped"))
    suite = ElementTree.Element(
        "testsuite", name="tfstudy check", tests=str(len(cases)), failures=failed, skipped=skipped, errors="0"
    )
    suite.extend(cases)
    ElementTree.indent(suite)
    written: bytes = ElementTree.tostring(suite, encoding="utf-8", xml_declaration=True)
    return written


def _case(outcome: Outcome, tolerance: float, failing: Collection[str]) -> ElementTree.Element:
    then = outcome.then
    before, now, change, p = _figures(outcome)
    told = [
        f"{before} then, {now or 'nothing'} now",
        f"change {change}" * bool(change),
        f"p {p}" * bool(p),
        outcome.reason,
    ]
    text = "; ".join(filter(None, told))
    case = ElementTree.Element("testcase", classname=f"{then.task}.{then.split}", name=then.name)
    if outcome.state in failing:
        why = f"fell by more than {tolerance:g} points" if outcome.state == WORSE else outcome.state
        ElementTree.SubElement(case, "failure", message=why).text = text
    elif outcome.state in (UNKNOWN, MISSING):
        ElementTree.SubElement(case, "skipped", message=f"{outcome.state}: {outcome.reason}")
    else:
        ElementTree.SubElement(case, "system-out").text = f"{outcome.state}: {text}"
    return case
