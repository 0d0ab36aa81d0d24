"""What became of a study's figures, for people and for CI: Markdown and JUnit XML."""

import math
from collections.abc import Sequence
from statistics import mean
from xml.etree import ElementTree

from tfstudy.gate import BETTER, MISSING, SAME, UNKNOWN, WORSE, Outcome
from tfstudy.report.formats import MINUS, p_value

ORDER = (WORSE, MISSING, UNKNOWN, BETTER, SAME)


def headline(outcomes: Sequence[Outcome], tolerance: float) -> str:
    """How many rows are worse, and how many can't be told."""
    counts = {state: sum(outcome.state == state for outcome in outcomes) for state in ORDER}
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
    for outcome in sorted(outcomes, key=lambda outcome: ORDER.index(outcome.state)):
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
    change = f"{found.mean:+.1f} [{found.low:+.1f}, {found.high:+.1f}]".replace("-", MINUS)
    return then, now, change, "" if math.isnan(outcome.p) else p_value(outcome.p)


def _mean(values: Sequence[float]) -> str:
    return f"{mean(values):.1f} (n = {len(values)})" if values else ""


def junit(outcomes: Sequence[Outcome], tolerance: float) -> bytes:
    """JUnit XML: a case a row, failed if it is worse, skipped if it can't be told."""
    failed = sum(outcome.state == WORSE for outcome in outcomes)
    skipped = sum(outcome.state in (UNKNOWN, MISSING) for outcome in outcomes)
    suite = ElementTree.Element(
        "testsuite",
        name="tfstudy check",
        tests=str(len(outcomes)),
        failures=str(failed),
        skipped=str(skipped),
        errors="0",
    )
    for outcome in outcomes:
        then = outcome.then
        case = ElementTree.SubElement(suite, "testcase", classname=f"{then.task}.{then.split}", name=then.name)
        before, now, change, p = _figures(outcome)
        text = (
            f"{before} then, {now or 'nothing'} now"
            + (f"; change {change}" if change else "")
            + (f", p {p}" if p else "")
        )
        if outcome.state == WORSE:
            ElementTree.SubElement(case, "failure", message=f"fell by more than {tolerance:g} points").text = text
        elif outcome.state in (UNKNOWN, MISSING):
            ElementTree.SubElement(case, "skipped", message=f"{outcome.state}: {outcome.reason}")
        else:
            ElementTree.SubElement(case, "system-out").text = f"{outcome.state}: {text}"
    ElementTree.indent(suite)
    written: bytes = ElementTree.tostring(suite, encoding="utf-8", xml_declaration=True)
    return written
