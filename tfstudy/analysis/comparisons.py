"""Which rows differ: every two rows of the same examples, tested over seeds and corrected for as many tests."""

import math
from collections.abc import Mapping, Sequence
from itertools import combinations
from statistics import mean
from typing import NamedTuple

from tfstudy.analysis.conditions import Condition, stream
from tfstudy.analysis.statistics import ALPHA, Difference, Interval, compare, holm, interval, letters, seeds_needed


class Verdict(NamedTuple):
    """How the first row differs from the second."""

    first: Condition
    second: Condition
    found: Difference
    p: float  # corrected (Holm 1979) over all verdicts of the table; nan if it can't be tested
    tests: int = 1  # of the table

    @property
    def significant(self) -> bool:
        return self.p < ALPHA

    @property
    def more_seeds(self) -> int | None:
        """How many more seeds an undecided difference of this size would need, in a table of as many tests.

        None if that can't be told.
        """
        if self.significant or math.isnan(self.p):
            return None
        needed = seeds_needed(self.found, ALPHA / self.tests)
        there = min(len(self.first.runs), len(self.second.runs))
        return max(1, needed - there) if needed else None


def verdicts(rows: Sequence[Condition], metrics: Mapping[str, str]) -> list[Verdict]:
    """Of every two rows with the same examples, in the order of the rows; `metrics` has the metric of each task.

    Paired by seed where a seed decides the same weights at the start and the same order of training, else Welch's.
    """
    figures = [row.by_seed(metrics[row.task]) for row in rows]
    streams = [stream(row) for row in rows]
    steps = [step(row) for row in rows]
    places: dict[tuple[str, ...], list[int]] = {}
    for number, row in enumerate(rows):
        places.setdefault(row.where, []).append(number)
    pairs = [pair for members in places.values() for pair in combinations(members, 2)]
    tests = sum(min(len(figures[a]), len(figures[b])) > 1 for a, b in pairs)
    found = [
        compare(figures[a], figures[b], streams[a] == streams[b], tests, max(steps[a], steps[b])) for a, b in pairs
    ]
    corrected = holm([one.p for one in found])
    return [Verdict(rows[a], rows[b], one, p, tests) for (a, b), one, p in zip(pairs, found, corrected, strict=True)]


def step(row: Condition) -> float:
    """What one example is worth, in per cent."""
    return 100 / max((part.n for part in row.measured().values()), default=100)


def groups(rows: Sequence[Condition], found: Sequence[Verdict], metrics: Mapping[str, str]) -> list[str]:
    """Each row's letters among the rows of the same examples, best first; empty where nothing could be tested."""
    tested: dict[tuple[str, ...], dict[str, Condition]] = {}
    differing: dict[tuple[str, ...], list[tuple[str, str]]] = {}
    for verdict in found:
        where, pair = verdict.first.where, (verdict.first, verdict.second)
        if not math.isnan(verdict.p):
            tested.setdefault(where, {}).update({row.label: row for row in pair})
        if verdict.significant:
            differing.setdefault(where, []).append((pair[0].label, pair[1].label))
    out: dict[tuple[tuple[str, ...], str], str] = {}
    for where, members in tested.items():
        means = {label: mean(row.values(metrics[row.task])) for label, row in members.items()}
        best = sorted(means, key=lambda label: -means[label])
        out |= {(where, label): group for label, group in letters(best, differing.get(where, [])).items()}
    return [out.get((row.where, row.label), "") for row in rows]


def spread(row: Condition, metric: str) -> Interval:
    """The row's mean in per cent and its interval over seeds, within what a share can be.

    Where all seeds have the same figure, and where there is one seed, it is the interval within a run (Wilson), over
    its examples: no figure is known without any doubt.
    """
    values = row.values(metric)
    found = interval(values)
    if len(set(values)) == 1 and metric == "exact_match":
        ends = next(part.exact_match_interval for part in row.measured().values())
        if ends:
            return found._replace(low=100 * ends[0], high=100 * ends[1], method="Wilson")
    return found._replace(low=max(found.low, 0.0), high=min(found.high, 100.0)) if found.n > 1 else found
