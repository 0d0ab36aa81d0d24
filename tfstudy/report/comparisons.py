"""The comparisons of a study in words: which of two conditions is higher, by how much, and what is undecided."""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from tfstudy.analysis.comparisons import A_TEST_NEEDS, Comparison
from tfstudy.analysis.conditions import test_set_label
from tfstudy.analysis.significance import MAX_SEEDS, POWER
from tfstudy.report.markup import ends, p_value, plural, signed
from tfstudy.report.table_lines import Table
from tfstudy.runs.metrics import metric_name

MAX_LISTED = 300
NOTE = (
    "The difference is between means over seeds, in percentage points. All comparisons of the study are one family: p "
    "is corrected for their number (Bonferroni), and the intervals hold together with 95 %, so that a comparison is "
    "decided exactly where its interval excludes 0. Undecided does not mean equal. The number of further seeds "
    f"assumes that the measured difference is the true one and asks for a power of {100 * POWER:.0f} % after "
    "correction; with few seeds it is a guess within a factor of a few."
)


class ComparisonText(NamedTuple):
    """A comparison of two conditions on the same examples."""

    test_set: str  # and the metric, if the study has several
    verdict: str  # `lstm is higher than cnn`
    decided: bool
    difference: str
    interval: str
    p: str
    test: str
    needed: str  # to decide it


class ComparisonSummary(NamedTuple):
    """All comparisons of a study."""

    summary: str
    tested: list[ComparisonText]
    untested: dict[str, list[str]]  # by test set, the conditions without any test
    notes: list[str]


def summarize_comparisons(table: Table) -> ComparisonSummary:
    """Return a table's comparisons in words, in the order of its lines, decided ones first."""
    names = examples_labels(table)
    order = {key: number for number, key in enumerate(names)}
    tested = [comparison for comparison in table.comparisons if comparison.tested]
    # if not all can be listed, those between architectures come first
    clearest = sorted(tested, key=lambda c: (c.first.arch == c.second.arch, c.p))[:MAX_LISTED]
    listed = sorted(clearest, key=lambda c: (order[c.first.examples_key], not c.significant, c.p))
    notes = [NOTE] if tested else []
    if len(listed) < len(tested):
        notes.append(
            f"{len(listed):,} of {len(tested):,} comparisons are listed: those between architectures first, then by p. "
            "The letters in the table cover all of them."
        )
    untested = _untested(table.comparisons, tested, names)
    texts = [_text(comparison, names) for comparison in listed]
    return ComparisonSummary(_summary(table.comparisons, tested), texts, untested, notes)


def _summary(comparisons: Sequence[Comparison], tested: Sequence[Comparison]) -> str:
    if not comparisons:
        return "No two conditions have the same test examples and amount of training data, so nothing is compared."
    decided = sum(comparison.significant for comparison in tested)
    untested = len(comparisons) - len(tested)
    more = f", {untested:,} not tested ({A_TEST_NEEDS})" if untested else ""
    count = plural(len(comparisons), "comparison")
    return f"{count} on the same examples: {decided:,} decided, {len(tested) - decided:,} undecided{more}."


def examples_labels(table: Table) -> dict[tuple[str, ...], str]:
    """Return the names of test sets, with the metric if the table has several."""
    conditions = [line.condition for line in table.lines]
    several = len({line.metric for line in table.lines}) > 1
    return {
        line.condition.examples_key: test_set_label(line.condition, conditions)
        + f", {metric_name(line.metric)}" * several
        for line in table.lines
    }


def _text(comparison: Comparison, names: Mapping[tuple[str, ...], str]) -> ComparisonText:
    one = comparison.swapped() if comparison.difference.mean < 0 else comparison
    higher, lower = one.first.label, one.second.label
    difference = one.difference
    return ComparisonText(
        test_set=names[one.first.examples_key],
        verdict=f"{higher} is higher than {lower}" if one.significant else f"{higher} or {lower}: undecided",
        decided=one.significant,
        difference=signed(difference.mean),
        interval=ends(difference.low, difference.high, "+"),
        p=p_value(one.p),
        test=f"{difference.method}, {difference.n} {'pairs' if difference.paired else 'values'}",
        needed="" if one.significant else _needed(one),
    )


def _needed(comparison: Comparison) -> str:
    if not comparison.difference.mean:
        return "no difference to find"
    if more := comparison.more_seeds:
        return f"about {plural(more, 'more seed')}"
    return f"more than {MAX_SEEDS:,} seeds" if needs_too_many(comparison) else "an unknown number of seeds"


def needs_too_many(comparison: Comparison) -> bool:
    """Whether an undecided difference is so small that it needs more than `MAX_SEEDS` seeds."""
    one = comparison
    undecided = one.tested and not one.significant and one.more_seeds is None
    return undecided and bool(one.difference.mean) and not math.isnan(one.difference.effect)


def _untested(
    comparisons: Sequence[Comparison], tested: Sequence[Comparison], names: Mapping[tuple[str, ...], str]
) -> dict[str, list[str]]:
    known = {id(condition) for one in tested for condition in (one.first, one.second)}
    out: dict[str, dict[str, None]] = {}
    for one in comparisons:
        for condition in (one.first, one.second):
            if id(condition) not in known:
                out.setdefault(names[condition.examples_key], {})[condition.label] = None
    return {name: list(labels) for name, labels in out.items()}
