"""The comparison of a study with its baseline, as Markdown, as plain values, and for a terminal."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import mean
from typing import Any, NamedTuple

from rich.text import Text

from tfstudy.analysis.baseline import (
    BETTER,
    MISSING,
    STATES,
    UNCHANGED,
    UNDECIDED,
    UNTESTED,
    WORSE,
    Outcome,
    check,
    read_baseline,
)
from tfstudy.analysis.frame import read_study
from tfstudy.analysis.summary import conditions, rows_of
from tfstudy.report.markup import markdown_table, p_value, plural, with_interval
from tfstudy.report.terminal import columns

COLOURS = {
    WORSE: "bold red",
    MISSING: "red",
    UNTESTED: "yellow",
    UNDECIDED: "yellow",
    BETTER: "green",
    UNCHANGED: "green",
}
NOTE = (
    "percent, mean over seeds; change in points with its 95 % interval, paired by seed; q: p adjusted for the number "
    "of conditions (Benjamini-Hochberg)"
)


class Check(NamedTuple):
    """The comparison of a study with its baseline, and whether the check failed."""

    headline: str
    markdown: str
    failed: bool
    outcomes: Sequence[Outcome]  # of each condition


def check_study(study: Path, against: Path, tolerance: float) -> Check:
    """Compare a folder of runs with the baseline in a file; `tolerance` is in percentage points.

    The check fails if a metric dropped, or if conditions or seeds are missing. `UserError` if the file is no baseline
    or if no condition could be tested.
    """
    baseline, runs = read_baseline(against), read_study(study)
    current = rows_of(conditions(runs.runs, baseline[0].tag))  # a table has one tag for all conditions
    outcomes = check(baseline, current, tolerance)
    text = "\n".join([markdown(outcomes, tolerance), *(f"- {line}" for line in runs.left_out_notes())])
    failed = any(outcome.state in (WORSE, MISSING) for outcome in outcomes)
    return Check(headline(outcomes, tolerance), text, failed, outcomes)


def outcome_values(outcome: Outcome) -> dict[str, Any]:
    """Return an outcome as plain values; percent, and points for the difference."""
    row, found = outcome.baseline, outcome.difference
    names = {key: getattr(row, key) for key in ("name", "task", "split", "test", "arch", "preset", "metric")}
    seeds = {"baseline": row.each_seed, "current": outcome.current}
    difference = {"difference": found.mean, "low": found.low, "high": found.high} if found else {}
    none = dict.fromkeys(("difference", "low", "high"))
    by_seed = {key: {str(seed): value for seed, value in values.items()} for key, values in seeds.items()}
    return {**names, "state": outcome.state, "reason": outcome.reason, **by_seed, **none, **difference, "q": outcome.q}


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
    table = markdown_table(("condition", "result", "baseline", "current", "change", "q"), rows)
    return f"**{headline(outcomes, tolerance)}**\n\n{table}\n\n{NOTE}\n"


def _numbers(outcome: Outcome) -> tuple[str, str, str, str]:
    baseline, current = (_mean(list(by_seed.values())) for by_seed in (outcome.baseline.each_seed, outcome.current))
    difference = outcome.difference
    change = with_interval(difference.mean, difference.low, difference.high, "+") if difference else ""
    return baseline, current, change, p_value(outcome.q) if difference else ""


def _mean(values: Sequence[float]) -> str:
    return f"{mean(values):.1f} (n = {len(values)})" if values else ""


def check_lines(headline: str, outcomes: Sequence[Outcome]) -> list[Text | str]:
    """Return the headline of a check and a line for each condition: its state, both means in percent, the reason."""
    cells = [
        (one.state, one.baseline.name, _short_mean(one.baseline.each_seed), "->", _short_mean(one.current), one.reason)
        for one in outcomes
    ]
    texts = [Text(line) for line in columns(cells, width=0)]
    for text, one in zip(texts, outcomes, strict=True):
        text.stylize(COLOURS[one.state], 0, len(one.state))
    return [Text(headline, style="bold"), *texts]


def _short_mean(by_seed: Mapping[int, float]) -> str:
    return f"{mean(by_seed.values()):5.1f}" if by_seed else "none"
