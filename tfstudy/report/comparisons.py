"""The verdicts of a study in words: which of two rows is higher, by how much, and what is not decided."""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from tfstudy.analysis.comparisons import Verdict
from tfstudy.analysis.metrics import NAMES
from tfstudy.analysis.statistics import MOST as LIMIT
from tfstudy.analysis.statistics import POWER
from tfstudy.report.markup import p_value, signed
from tfstudy.report.plots.layout import place
from tfstudy.report.tables import Table, turned

MOST = 300  # comparisons that are told one by one
NOTE = (
    "The difference is of means over seeds, in points of 100, with its 95 % interval; p is corrected for all "
    "comparisons of the study (Holm 1979), the interval is not: it can leave out 0 where the verdict is undecided. "
    "Undecided does not mean equal. How many more seeds it needs takes the difference as measured for the true one and "
    f"asks to find it {100 * POWER:.0f} times in 100 after correction: with few seeds a guess, within a factor of some."
)


class Finding(NamedTuple):
    """A comparison of two rows of the same examples."""

    place: str  # the examples, and the metric where the study has several
    says: str  # `lstm is higher than cnn`
    decided: bool
    difference: str
    interval: str
    p: str
    test: str
    more: str  # what an undecided one needs


class Findings(NamedTuple):
    """All comparisons of a study."""

    summary: str
    tested: list[Finding]
    untested: dict[str, list[str]]  # place to the rows that can't be tested there
    notes: list[str]


def findings(table: Table) -> Findings:
    """What a table's verdicts say, in the order of its lines and the decided ones first."""
    places = places_of(table)
    rank = {where: number for number, where in enumerate(places)}
    tested = [verdict for verdict in table.verdicts if not math.isnan(verdict.p)]
    decided = sum(verdict.significant for verdict in tested)
    shown = sorted(_told(tested), key=lambda v: (rank[v.first.where], not v.significant, v.p))
    notes = [NOTE] if tested else []
    if len(shown) < len(tested):
        notes.append(
            f"{len(shown):,} of {len(tested):,} comparisons are told here: those of different architectures before "
            "others, and the smallest p first. The letters in the table tell all of them."
        )
    untested = len(table.verdicts) - len(tested)
    why = f", {untested:,} not tested, for which both need 2 seeds" if untested else ""
    summary = (
        f"{len(table.verdicts):,} comparison{'s' * (len(table.verdicts) != 1)} of two rows on the same examples: "
        f"{decided:,} decided, {len(tested) - decided:,} undecided{why}."
        if table.verdicts
        else "No two rows have the same examples, so nothing is compared."
    )
    return Findings(summary, [_finding(v, places) for v in shown], _untested(table.verdicts, tested, places), notes)


def places_of(table: Table) -> dict[tuple[str, ...], str]:
    """What the examples of rows are called, with the metric if lines are judged by several."""
    rows = [line.row for line in table.lines]
    several = len({line.metric for line in table.lines}) > 1
    return {
        line.row.where: place(line.row, rows) + f", {NAMES.get(line.metric, line.metric)}" * several
        for line in table.lines
    }


def _told(tested: Sequence[Verdict]) -> list[Verdict]:
    return sorted(tested, key=lambda verdict: (verdict.first.arch == verdict.second.arch, verdict.p))[:MOST]


def _finding(verdict: Verdict, places: Mapping[tuple[str, ...], str]) -> Finding:
    one = turned(verdict) if verdict.found.mean < 0 else verdict
    names = one.first.label, one.second.label
    found = one.found
    values = "pairs" if found.method in ("paired t", "sign permutation") else "values"
    return Finding(
        places[one.first.where],
        f"{names[0]} is higher than {names[1]}" if one.significant else f"{names[0]} or {names[1]}: undecided",
        one.significant,
        signed(found.mean),
        f"[{signed(found.low)}, {signed(found.high)}]",
        p_value(one.p),
        f"{found.method}, {found.n} {values}",
        "" if one.significant else _needs(one),
    )


def _needs(verdict: Verdict) -> str:
    if not verdict.found.mean:
        return "no difference to find"
    if more := verdict.more_seeds:
        return f"needs about {more:,} more seed{'s' * (more != 1)}"
    return (
        "needs an unknown number of seeds" if math.isnan(verdict.found.effect) else f"needs more than {LIMIT:,} seeds"
    )


def _untested(
    judged: Sequence[Verdict], tested: Sequence[Verdict], places: Mapping[tuple[str, ...], str]
) -> dict[str, list[str]]:
    known = {id(row) for verdict in tested for row in (verdict.first, verdict.second)}
    out: dict[str, dict[str, None]] = {}
    for verdict in judged:
        for row in (verdict.first, verdict.second):
            if id(row) not in known:
                out.setdefault(places[row.where], {})[row.label] = None
    return {name: list(labels) for name, labels in out.items()}
