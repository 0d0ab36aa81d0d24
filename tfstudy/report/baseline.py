"""The comparison of a study with its baseline."""

from collections import Counter
from collections.abc import Collection
from pathlib import Path
from statistics import fmean
from typing import Any

from rich.text import Text

from tfstudy.analysis.baseline import MISSING, STATES, WORSE, Outcome, check, read_baseline
from tfstudy.analysis.frame import read_study
from tfstudy.analysis.summary import conditions, rows_of
from tfstudy.report.markup import ends, number, p_value, plural
from tfstudy.report.render import Cells, Listing

COLOURS = dict(zip(STATES, ("bold red", "red", "yellow", "yellow", "green", "green"), strict=True))
NOTE = (
    "percent, mean over seeds; change in points with its 95 % interval, paired by seed; q: p adjusted for the number "
    "of conditions (Benjamini-Hochberg)"
)


def check_study(study: Path, against: Path, tolerance: float) -> tuple[Listing, bool]:
    """Compare a folder of runs with the baseline in a file; return the comparison, and whether the check failed.

    `tolerance` is in percentage points. The check fails if a metric dropped, or if conditions or seeds are missing.
    `UserError` if the file is no baseline or if no condition could be tested.
    """
    baseline, runs = read_baseline(against), read_study(study)
    current = rows_of(conditions(runs.runs, baseline[0].tag))  # a table has one tag for all conditions
    outcomes = check(baseline, current, tolerance)
    failed = any(outcome.state in (WORSE, MISSING) for outcome in outcomes)
    rows = sorted(outcomes, key=lambda outcome: STATES.index(outcome.state))  # worse ones first
    frame = {
        "result": [one.state for one in rows],
        "condition": [one.baseline.name for one in rows],
        "baseline": [_mean(one.baseline.each_seed.values()) for one in rows],
        "current": [_mean(one.current.values()) for one in rows],
        "change": [
            f"{number(d.mean, '+')} {ends(d.low, d.high, '+')}".rstrip() if (d := one.difference) else ""
            for one in rows
        ],
        "q": [p_value(one.q) if one.difference else "" for one in rows],
        "reason": [one.reason for one in rows],
    }
    cells = Cells(
        {key: texts for key, texts in frame.items() if any(texts)},
        styles=COLOURS,
        bold={"result": [one.state == WORSE for one in rows]},
        folded=frozenset(("condition", "reason")),
        names=2,
    )
    counts = Counter(one.state for one in rows)
    states = ", ".join(f"{count} {state}" for state, count in counts.items())
    headline = f"{plural(len(outcomes), 'condition')}, tolerance {tolerance:g} points: {states}"

    def values() -> dict[str, Any]:
        return {"failed": failed, "tolerance": tolerance, "conditions": list(map(_values, outcomes))}

    return Listing([Text(headline, "bold"), cells], [NOTE, *runs.left_out_notes()], values), failed


def _values(outcome: Outcome) -> dict[str, Any]:
    """Return an outcome as plain values; percent, and points for the difference."""
    row, found = outcome.baseline, outcome.difference
    names = {key: getattr(row, key) for key in ("name", "task", "split", "test", "arch", "preset", "metric")}
    seeds = {"baseline": row.each_seed, "current": outcome.current}
    change = dict(zip(("difference", "low", "high"), found[:3] if found else (None,) * 3, strict=True))
    return {**names, "state": outcome.state, "reason": outcome.reason, **seeds, **change, "q": outcome.q}


def _mean(values: Collection[float]) -> str:
    return f"{fmean(values):.1f} (n = {len(values)})" if values else ""
