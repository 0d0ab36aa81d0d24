"""The comparisons of a study in words, its verdict (which condition is better, and what is open), and its baseline.

They follow from the comparisons of the table and say nothing else: a condition is called significantly better than
another one exactly if the two share no letter of `group` in the table.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from rich.text import Text

from tfstudy.analysis.baseline import MISSING, STATES, WORSE, check, read_baseline
from tfstudy.analysis.frame import read_study
from tfstudy.analysis.stats import ALPHA, MAX_SEEDS, POWER
from tfstudy.analysis.summary import (
    A_TEST_NEEDS,
    SHOWN,
    Condition,
    conditions,
    more_seeds,
    rows_of,
    swapped,
    test_set_labels,
)
from tfstudy.report.markup import ends, number, p_value, plural
from tfstudy.report.render import Cells, Listing
from tfstudy.report.tables import Table

MAX_LISTED = 300
NOTE = (
    "The difference is between means over seeds, in percentage points, with its plain 95 % interval. All comparisons "
    "of the study are one family: q is p adjusted for their number (Benjamini-Hochberg), and a comparison is decided "
    f"where q is below .05 and the means differ by {SHOWN} points, so that 5 % of the decided ones are expected to be "
    "false. Open does not mean equal. "
    "The number of further seeds assumes that the measured difference is the true one, for a power of "
    f"{100 * POWER:.0f} %; with few seeds it is a guess within a factor of a few."
)
NOTHING = "No two conditions have the same test examples and amount of training data, so nothing is compared."
NOTHING_BETTER = "No condition is significantly better than another one on any test set."
MAX_DETAILED = 6  # test sets on which significant differences are named


def _pairs(table: Table) -> list[Any]:
    """Return the rows of `summary.pairs` with their conditions as `first` and `second`, the higher one first."""
    rows = rows_of(table.rows)
    ordered = [swapped(one) if one.mean < 0 else one for one in rows_of(table.pairs)]
    return [one._replace(first=rows[one.first], second=rows[one.second]) for one in ordered]


def comparisons(table: Table) -> tuple[Cells, list[str]]:
    """Return a table's comparisons in words, in the order of its rows, decided ones first, and notes on them."""
    names, every = test_set_labels(rows_of(table.rows)), _pairs(table)
    order = {place: number for number, place in enumerate(names)}
    tested = [pair for pair in every if pair.tested]
    shown = sorted(tested, key=lambda one: one.p)[:MAX_LISTED]
    shown.sort(key=lambda one: (order[one.first.place], not one.significant, one.p))
    more = f"{MAX_LISTED} of {len(tested):,} comparisons are listed, by q; the letters in the table cover all of them."
    notes = [NOTE, more][: bool(tested) + (len(shown) < len(tested))]
    bold = {"result": [pair.significant for pair in shown]}
    return Cells.of([_texts(pair, names[pair.first.place]) for pair in shown], title=_counts(every), bold=bold), notes


def _counts(every: Sequence[Any]) -> str:
    """Return how many comparisons there are, and how many of them are decided, open and not tested."""
    tested = [pair for pair in every if pair.tested]
    decided, rest = sum(pair.significant for pair in tested), len(every) - len(tested)
    untested = f", {rest:,} not tested ({A_TEST_NEEDS})" if rest else ""
    counts = f"{decided:,} decided, {len(tested) - decided:,} open{untested}"
    return f"{plural(len(every), 'comparison')} on the same examples: {counts}." if every else NOTHING


def _texts(row: Any, test_set: str) -> dict[str, str]:
    higher, lower = row.first.label, row.second.label
    more = more_seeds(row, min(len(row.first.runs), len(row.second.runs)))
    needed = "no difference to find" if row.q < ALPHA or not row.mean else "an unknown number of seeds"
    if more:
        needed = f"about {plural(more, 'more seed')}" if more <= MAX_SEEDS else f"more than {MAX_SEEDS:,} seeds"
    return {
        "test set": test_set,
        "result": f"{higher} is higher than {lower}" if row.significant else f"{higher} or {lower}: open",
        "difference": number(row.mean, "+"),
        "95 % interval": ends(row.low, row.high, "+"),
        "q": p_value(row.q),
        "test": f"{row.method}, {row.n} {'pairs' if row.method == 'paired t' else 'values'}",
        "needed to decide": "" if row.significant else needed,
    }


def verdict(table: Table) -> list[str]:
    """Return which conditions are significantly better, with a sentence for each test set, and what is open."""
    names, every = test_set_labels(rows_of(table.rows)), _pairs(table)
    lower: dict[int, list[Condition]] = {}  # what each condition is better than
    for pair in every:
        if pair.significant:
            lower.setdefault(pair.first.Index, []).append(pair.second)
    better: dict[str, list[str]] = {}
    for row in rows_of(table.rows):
        if row.Index in lower:
            better.setdefault(names[row.place], []).append(_is_better(row, lower[row.Index]))
    texts = [f"On {name}, {', and '.join(own)}." for name, own in better.items()]
    if len(texts) > MAX_DETAILED:
        texts[MAX_DETAILED:] = [f"So on {len(texts) - MAX_DETAILED} more test sets; the table has all."]
    return [*(texts or [NOTHING_BETTER]), f"{_counts(every)} Open does not mean equal."]


def _is_better(row: Condition, others: list[Condition]) -> str:
    """Return `lstm (13.3) is significantly better than cnn (0.0) and transformer (0.1)`."""
    others = sorted(others, key=lambda other: -other.mean)
    digits = next((n for n in (1, 2) if all(round(other.mean, n) < round(row.mean, n) for other in others)), 3)
    first, *rest = (f"{one.label} ({one.mean:.{digits}f})" for one in (row, *others))
    return f"{first} is significantly better than {' and '.join(filter(None, [', '.join(rest[:-1]), rest[-1]]))}"


# With a baseline

COLOURS = dict(zip(STATES, ("bold red", "red", "yellow", "yellow", "green", "green"), strict=True))
CHECK_NOTE = (
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
    values = {"failed": failed, "tolerance": tolerance, "conditions": found[[*FIELDS]].to_dict("records")}
    return Listing([Text(headline, "bold"), cells], [CHECK_NOTE, *runs.left_out_notes()], values), failed


def _mean(values: Mapping[int, float]) -> str:
    return f"{fmean(values.values()):.1f} (n = {len(values)})" if values else ""
