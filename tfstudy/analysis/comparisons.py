"""Comparisons: every two conditions on the same examples, with the same amount of training data, over seeds.

All comparisons of a study are one family of tests (see `tfstudy.analysis.significance`). Its tables, figures and
report, and the claims that compare two of its conditions, show the same corrected p and the same interval. In a
study of learning curves most tests would otherwise ask whether more training data are better.
"""

import math
import string
from collections.abc import Mapping, Sequence
from itertools import combinations
from statistics import mean
from typing import NamedTuple

from tfstudy.analysis.conditions import Condition, pairing_key
from tfstudy.analysis.intervals import Interval, clipped, interval
from tfstudy.analysis.significance import ALPHA, Difference, compare, corrected, not_compared, seeds_needed

A_TEST_NEEDS = "a test needs 2 seeds of both conditions, and none that diverged"


class Comparison(NamedTuple):
    """The difference of two conditions, with its corrected p value: below .05 where the interval excludes 0."""

    first: Condition
    second: Condition
    difference: Difference  # with its simultaneous interval, between -100 and 100
    p: float  # corrected for all comparisons of the study; nan if it can't be tested
    tests: int = 1  # of the study

    @property
    def tested(self) -> bool:
        return not math.isnan(self.p)

    @property
    def significant(self) -> bool:
        return self.p < ALPHA

    @property
    def more_seeds(self) -> int | None:
        """How many more seeds an undecided difference of this size needs; None if unknown, or if it is decided."""
        if self.significant or not self.tested:
            return None
        needed = seeds_needed(self.difference, ALPHA / self.tests)
        finished = min(len(self.first.runs), len(self.second.runs))
        return max(1, needed - finished) if needed else None

    def swapped(self) -> "Comparison":
        """Return the same comparison with its conditions in the other order."""
        d = self.difference
        opposite = d._replace(mean=-d.mean, low=-d.high, high=-d.low, effect=-d.effect)
        return self._replace(first=self.second, second=self.first, difference=opposite)


def compare_conditions(conditions: Sequence[Condition], metrics: Mapping[str, str]) -> list[Comparison]:
    """Compare every two conditions with the same comparison key, in their order; `metrics` has the metric of each task.

    Seeds are paired where both conditions have the same seeds and these decide the same initial weights and order of
    training, else the test is Welch's. A condition with a run that diverged is not tested: its mean would only be over
    the other runs.
    """
    values = [condition.by_seed(metrics[condition.task]) for condition in conditions]
    paired_by = [(pairing_key(condition), own.keys()) for condition, own in zip(conditions, values, strict=True)]
    resolutions = [resolution(condition) for condition in conditions]
    same_key: dict[tuple[str, ...], list[int]] = {}
    for number, condition in enumerate(conditions):
        same_key.setdefault(condition.comparison_key, []).append(number)
    pairs = [pair for members in same_key.values() for pair in combinations(members, 2)]
    lost = {pair: sum(len(conditions[one].diverged) for one in pair) for pair in pairs}
    tests = max(1, sum(min(len(values[a]), len(values[b])) > 1 and not lost[a, b] for a, b in pairs))
    differences = [
        not_compared(values[a], values[b], f"{lost[a, b]} diverged")
        if lost[a, b]
        else compare(values[a], values[b], paired_by[a] == paired_by[b], tests, max(resolutions[a], resolutions[b]))
        for a, b in pairs
    ]
    return [
        Comparison(conditions[a], conditions[b], clipped_difference(difference), corrected(difference.p, tests), tests)
        for (a, b), difference in zip(pairs, differences, strict=True)
    ]


def clipped_difference(difference: Difference) -> Difference:
    """Return the difference with its interval within what percentages can differ by."""
    return difference._replace(low=max(difference.low, -100.0), high=min(difference.high, 100.0))


def resolution(condition: Condition) -> float:
    """Return what one example is worth, in percent."""
    return 100 / (condition.example_count() or 100)


def mean_interval(condition: Condition, metric: str) -> Interval:
    """Return the condition's mean in percent with its interval over seeds, between 0 and 100.

    With a single seed, or where all seeds have the same exact match, it is the interval within a run (Wilson, over its
    examples). Other metrics of a single seed have none: its ends are nan.
    """
    values = condition.values(metric)
    result = interval(values)
    if len(set(values)) == 1 and metric == "exact_match":
        ends = next(scores.exact_match_interval for scores in condition.results_by_seed().values())
        if ends:
            return result._replace(low=100 * ends[0], high=100 * ends[1], method="Wilson")
    return clipped(result)


def group_letters(
    conditions: Sequence[Condition], comparisons: Sequence[Comparison], metrics: Mapping[str, str]
) -> list[str]:
    """Return each condition's letters among those with its comparison key, best first; empty if it was not tested."""
    tested: dict[tuple[str, ...], dict[str, Condition]] = {}
    differing: dict[tuple[str, ...], list[tuple[str, str]]] = {}
    for comparison in comparisons:
        key = comparison.first.comparison_key
        if comparison.tested:
            pair = (comparison.first, comparison.second)
            tested.setdefault(key, {}).update({condition.label: condition for condition in pair})
        if comparison.significant:
            differing.setdefault(key, []).append((comparison.first.label, comparison.second.label))
    letters: dict[tuple[tuple[str, ...], str], str] = {}
    for key, members in tested.items():
        means = {label: mean(condition.values(metrics[condition.task])) for label, condition in members.items()}
        best_first = sorted(means, key=lambda label: -means[label])
        letters |= {(key, label): text for label, text in letter_groups(best_first, differing.get(key, [])).items()}
    return [letters.get((condition.comparison_key, condition.label), "") for condition in conditions]


def letter_groups(names: Sequence[str], differ: Sequence[tuple[str, str]]) -> dict[str, str]:
    """Return a compact letter display: two names share a letter if and only if they do not differ significantly.

    Names are taken in their order, best first, so that `a` is the best group (Piepho 2004, insert-absorb).
    """
    columns: list[set[str]] = [set(names)]
    for first, second in differ:
        split = []
        for column in columns:
            both = {first, second} <= column
            split += [column - {first}, column - {second}] if both else [column]
        columns = [c for i, c in enumerate(split) if not any(c < d or (c == d and j < i) for j, d in enumerate(split))]
    columns.sort(key=lambda column: [names.index(name) for name in sorted(column, key=names.index)])
    symbols = [
        *string.ascii_letters,
        *(f"({number})" for number in range(len(string.ascii_letters) + 1, len(columns) + 1)),
    ]
    return {name: "".join(symbols[i] for i, column in enumerate(columns) if name in column) for name in names}
