"""The comparisons of a study in words: which of two conditions is higher, by how much, and what is undecided.

And its verdict in three sentences: what is significantly better, what is undecided, what was published. They follow
from the comparisons and the published figures of the table and say nothing else: a condition is called significantly
better than another one exactly if the two share no letter of `group` in the table.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from tfstudy.analysis.comparisons import A_TEST_NEEDS, Comparison
from tfstudy.analysis.conditions import test_set_label
from tfstudy.analysis.counterparts import AGREES, DIFFERS, TOLERANCE, UNDECIDED, Quotation, judge_figure
from tfstudy.analysis.significance import MAX_SEEDS, POWER
from tfstudy.report.markup import count_range, ends, listed, number, p_value, plural, signed
from tfstudy.report.table_columns import Line, Table
from tfstudy.runs.display import metric_name

MAX_LISTED = 300
NOTE = (
    "The difference is between means over seeds, in percentage points. All comparisons of the study are one family: p "
    "is corrected for their number (Bonferroni), and the intervals hold together with 95 %, so that a comparison is "
    "decided exactly where its interval excludes 0. Undecided does not mean equal. The number of further seeds "
    f"assumes that the measured difference is the true one and asks for a power of {100 * POWER:.0f} % after "
    "correction; with few seeds it is a guess within a factor of a few."
)
MAX_DETAILED = 6  # test sets on which every significant difference is named
MAX_NAMED = 4  # pairs of labels, test sets or papers in a sentence


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


# The verdict


class Better(NamedTuple):
    """A line of the table that is significantly better than others on the same examples."""

    test_set: str
    line: Line
    others: list[Line]  # significantly worse


class Quoted(NamedTuple):
    """A published figure beside a line of the table."""

    line: Line
    quotation: Quotation


def verdict(table: Table) -> list[str]:
    """Return three sentences: significant differences, undecided comparisons, and published figures."""
    return [_significant(table), _undecided(table), _published(table)]


def significant_differences(table: Table) -> list[Better]:
    """Return each line with the lines that it is significantly better than, in the order of the table."""
    names = examples_labels(table)
    lines = {id(line.condition): line for line in table.lines}
    found: dict[int, Better] = {}
    for line in table.lines:
        found[id(line.condition)] = Better(names[line.condition.examples_key], line, [])
    for comparison in table.comparisons:
        if comparison.significant:
            one = comparison.swapped() if comparison.difference.mean < 0 else comparison
            found[id(one.first)].others.append(lines[id(one.second)])
    return [better for better in found.values() if better.others]


def _significant(table: Table) -> str:
    better = significant_differences(table)
    if not better:
        return _nothing_decided(table.comparisons)
    test_sets: dict[str, list[Better]] = {}
    for one in better:
        test_sets.setdefault(one.test_set, []).append(one)
    if len(test_sets) > MAX_DETAILED:
        return _counted(better, len({line.condition.examples_key for line in table.lines}))
    parts = [f"on {name}, {', and '.join(map(_is_better, members))}" for name, members in test_sets.items()]
    text = "; ".join(parts)
    return f"{text[0].upper()}{text[1:]}."


def _nothing_decided(comparisons: Sequence[Comparison]) -> str:
    if not comparisons:
        return "No two conditions have the same test examples and amount of training data, so nothing is compared."
    if not any(comparison.tested for comparison in comparisons):
        return f"Nothing is tested: {A_TEST_NEEDS}."
    return "No condition is significantly better than another one on any test set."


def _is_better(better: Better) -> str:
    """Return `lstm (13.3) is significantly better than cnn (0.0) and transformer (0.1)`."""
    others = sorted(better.others, key=lambda line: -line.mean)
    digits = next((n for n in (1, 2) if all(round(line.mean, n) < round(better.line.mean, n) for line in others)), 3)
    first, *rest = (f"{line.condition.label} ({line.mean:.{digits}f})" for line in (better.line, *others))
    return f"{first} is significantly better than {listed(rest)}"


def _counted(better: Sequence[Better], test_sets: int) -> str:
    """Return on how many test sets one label is significantly better than another, most frequent pairs first."""
    pairs = Counter((one.line.condition.label, other.condition.label) for one in better for other in one.others)
    texts = [f"{one} than {other} on {count}" for (one, other), count in pairs.most_common(MAX_NAMED)]
    rest = len(pairs) - len(texts)
    more = f" ({rest:,} more pairs are in the comparisons)" if rest > 0 else ""
    return f"Of {plural(test_sets, 'test set')}, {listed(texts)} is significantly better{more}."


def _undecided(table: Table) -> str:
    tested = [comparison for comparison in table.comparisons if comparison.tested]
    open_ = [comparison for comparison in tested if not comparison.significant]
    untested = len(table.comparisons) - len(tested)
    more = f"; {plural(untested, 'comparison')} could not be tested ({A_TEST_NEEDS})" if untested else ""
    if not tested:
        return "A difference between two results in this report may be due to the seed."
    if not open_:
        return f"No comparison is undecided{more}."
    names = examples_labels(table)
    decided_on = {names[one.first.examples_key] for one in tested if one.significant}
    nowhere = [name for name in dict.fromkeys(names[one.first.examples_key] for one in open_) if name not in decided_on]
    among = f", among them all on {listed(nowhere, MAX_NAMED)}" if nowhere and decided_on else ""
    seeds = count_range([len(c.runs) for one in open_ for c in (one.first, one.second)], "seed")
    share = f"{len(open_):,} of {len(tested):,} comparisons are" if decided_on else _every(len(tested))
    return f"With {seeds} per condition, {share} undecided{among}{more}; undecided does not mean equal."


def _every(count: int) -> str:
    return "the only comparison is" if count == 1 else f"all {count:,} comparisons are"


def _published(table: Table) -> str:
    quoted = [Quoted(line, one) for line in table.lines if line.mean == line.mean for one in line.published]
    if not quoted:
        return "No published figure is known for these test sets and kinds of network."
    same = [one for one in quoted if one.quotation.same_settings]
    return _reproduced(same, table) if same else _beside(quoted)


def _reproduced(quoted: Sequence[Quoted], table: Table) -> str:
    """Return which published figures under the settings of these runs agree with them."""
    every = [line.condition for line in table.lines]
    verdicts: dict[str, list[Quoted]] = {}
    for one in quoted:
        verdicts.setdefault(judge_figure(one.quotation.figure, every).verdict, []).append(one)
    texts = {
        AGREES: f"reproduced within {TOLERANCE:g} points",
        DIFFERS: f"not reproduced within {TOLERANCE:g} points",
        UNDECIDED: "undecided",
    }
    parts = [
        f"{len(verdicts[name]):,} {text} ({'; '.join(map(_beside_ours, verdicts[name][:MAX_NAMED]))})"
        for name, text in texts.items()
        if name in verdicts
    ]
    return f"Published figures under the settings of these runs: {listed(parts)}."


def _beside(quoted: Sequence[Quoted]) -> str:
    """Return the sentence for figures that were all measured under other settings; it names the most distant one."""
    papers = dict.fromkeys(one.quotation.figure.citation for one in quoted)
    most = max(quoted, key=lambda one: abs(one.line.mean - one.quotation.figure.value))
    count = f"{plural(len(quoted), 'published figure')} beside these results ({listed(papers, MAX_NAMED)})"
    return (
        f"None of the {count} was measured under the same settings, so none is tested; "
        f"the most distant is {_beside_ours(most)}."
    )


def _beside_ours(one: Quoted) -> str:
    """Return `cnn on addprim_jump: 10.2 here, 69.2 ± 8.2 in Dessì & Baroni 2019`."""
    condition, figure = one.line.condition, one.quotation.figure
    where = f"{condition.label} on {condition.split_label}"
    return f"{where}: {number(one.line.mean)} here, {figure.text} in {figure.citation}"
