"""The comparison of a study with its baseline."""

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from statistics import fmean
from typing import Any

from rich.text import Text

from tfstudy.analysis.baseline import MISSING, STATES, WORSE, check, read_baseline
from tfstudy.analysis.frame import read_study
from tfstudy.analysis.summary import conditions, rows_of
from tfstudy.report.markup import ends, number, p_value, plural
from tfstudy.report.render import Cells, Listing

COLOURS = dict(zip(STATES, ("bold red", "red", "yellow", "yellow", "green", "green"), strict=True))
NOTE = (
    "percent, mean over seeds; change in points with its 95 % interval, paired by seed; q: p adjusted for the number "
    "of conditions (Benjamini-Hochberg)"
)
FIELDS = (  # of JSON
    "name", "task", "split", "test", "arch", "preset", "metric", "state", "reason", "baseline", "current",
    "difference", "low", "high", "q",
)  # fmt: skip


def check_study(study: Path, against: Path, tolerance: float) -> tuple[Listing, bool]:
    """Compare a folder of runs with the baseline in a file; return the comparison, and whether the check failed.

    `tolerance` is in percentage points. The check fails if a metric dropped, or if conditions or seeds are missing.
    `UserError` if the file is no baseline or if no condition could be tested.
    """
    baseline, runs = read_baseline(against), read_study(study)
    current = rows_of(conditions(runs.runs, baseline[0].tag))  # a table has one tag for all conditions
    found = check(baseline, current, tolerance).rename(columns={"each_seed": "baseline"})
    failed = bool(found["state"].isin([WORSE, MISSING]).any())
    rows = sorted(rows_of(found), key=lambda row: STATES.index(row.state))  # worse ones first
    lines = [
        {
            "result": row.state,
            "condition": row.name,
            "baseline": _mean(row.baseline),
            "current": _mean(row.current),
            "change": f"{number(row.difference, '+')} {ends(row.low, row.high, '+')}".rstrip(),
            "q": p_value(row.q),
            "reason": row.reason,
        }
        for row in rows
    ]
    bold = {"result": [row.state == WORSE for row in rows]}
    cells = Cells.of(lines, styles=COLOURS, bold=bold, folded=("condition", "reason"), names=2)
    states = ", ".join(f"{count} {state}" for state, count in Counter(row.state for row in rows).items())
    headline = f"{plural(len(found), 'condition')}, tolerance {tolerance:g} points: {states}"

    def values() -> dict[str, Any]:
        return {"failed": failed, "tolerance": tolerance, "conditions": found[[*FIELDS]].to_dict("records")}

    return Listing([Text(headline, "bold"), cells], [NOTE, *runs.left_out_notes()], values), failed


def _mean(values: Mapping[int, float]) -> str:
    return f"{fmean(values.values()):.1f} (n = {len(values)})" if values else ""
