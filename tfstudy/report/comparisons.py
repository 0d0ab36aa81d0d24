"""The comparisons of a study in words: which of two conditions is higher, by how much, and what is undecided.

And its verdict in three sentences: what is significantly better, what is undecided, what was published. They follow
from the comparisons and the published figures of the table and say nothing else: a condition is called significantly
better than another one exactly if the two share no letter of `group` in the table.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

from tfstudy.analysis.labels import Condition
from tfstudy.analysis.published import AGREES, DIFFERS, TOLERANCE, UNDECIDED, Quotation, judge_figure
from tfstudy.analysis.stats import MAX_SEEDS, POWER
from tfstudy.analysis.summary import A_TEST_NEEDS, more_seeds, needs_too_many, rows_of, swapped, test_set_labels
from tfstudy.report.markup import count_range, ends, listed, number, p_value, plural, signed
from tfstudy.report.tables import Table
from tfstudy.runs.display import metric_name

MAX_LISTED = 300
NOTE = (
    "The difference is between means over seeds, in percentage points, with its plain 95 % interval. All comparisons "
    "of the study are one family: q is p adjusted for their number (Benjamini-Hochberg), and a comparison is decided "
    "where q is below .05, so that 5 % of the decided ones are expected to be false. Undecided does not mean equal. "
    "The number of further seeds assumes that the measured difference is the true one, for a power of "
    f"{100 * POWER:.0f} %; with few seeds it is a guess within a factor of a few."
)
NOTHING = "No two conditions have the same test examples and amount of training data, so nothing is compared."
MAX_DETAILED = 6  # test sets on which every significant difference is named
MAX_NAMED = 4  # pairs of labels, test sets or papers in a sentence


class ComparisonText(NamedTuple):
    """A comparison of two conditions on the same examples."""

    test_set: str  # and the metric, if the study has several
    verdict: str  # `lstm is higher than cnn`
    decided: bool
    difference: str
    interval: str
    q: str
    test: str
    needed: str  # to decide it


class ComparisonSummary(NamedTuple):
    """All comparisons of a study."""

    summary: str
    tested: list[ComparisonText]
    untested: dict[str, list[str]]  # by test set, the conditions without any test
    notes: list[str]


class Pair(NamedTuple):
    """A comparison with its conditions, the higher one first."""

    first: Condition
    second: Condition
    row: Any  # of `summary.pairs`


def _pairs(table: Table) -> list[Pair]:
    rows = rows_of(table.rows)
    ordered = [swapped(one) if one.mean < 0 else one for one in rows_of(table.pairs)]
    return [Pair(rows[one.first], rows[one.second], one) for one in ordered]


def summarize_comparisons(table: Table) -> ComparisonSummary:
    """Return a table's comparisons in words, in the order of its rows, decided ones first."""
    names, every = examples_labels(table), _pairs(table)
    order = {place: number for number, place in enumerate(names)}
    tested = [pair for pair in every if pair.row.tested]
    # if not all can be listed, those between architectures come first
    clearest = sorted(tested, key=lambda one: (one.first.arch == one.second.arch, one.row.p))[:MAX_LISTED]
    shown = sorted(clearest, key=lambda one: (order[one.first.place], not one.row.significant, one.row.p))
    notes = [NOTE] if tested else []
    if len(shown) < len(tested):
        notes.append(
            f"{len(shown):,} of {len(tested):,} comparisons are listed: those between architectures first, then by q. "
            "The letters in the table cover all of them."
        )
    with_test = {one.key for pair in tested for one in (pair.first, pair.second)}
    untested: dict[str, dict[str, None]] = {}
    for one in (one for pair in every for one in (pair.first, pair.second)):
        if one.key not in with_test:
            untested.setdefault(names[one.place], {})[one.label] = None
    summary = NOTHING
    if every:
        decided, rest = sum(pair.row.significant for pair in tested), len(every) - len(tested)
        more = f", {rest:,} not tested ({A_TEST_NEEDS})" if rest else ""
        count = plural(len(every), "comparison")
        summary = f"{count} on the same examples: {decided:,} decided, {len(tested) - decided:,} undecided{more}."
    texts = [_text(pair, names[pair.first.place]) for pair in shown]
    return ComparisonSummary(summary, texts, {name: list(own) for name, own in untested.items()}, notes)


def examples_labels(table: Table) -> dict[tuple[str, ...], str]:
    """Return the names of test sets by `place`, with the metric if the table has several."""
    several, rows = table.rows["metric"].nunique() > 1, rows_of(table.rows)
    names = test_set_labels(rows)
    return {row.place: names[row.place] + f", {metric_name(row.metric)}" * several for row in rows}


def _text(pair: Pair, test_set: str) -> ComparisonText:
    higher, lower, row = pair.first.label, pair.second.label, pair.row
    return ComparisonText(
        test_set=test_set,
        verdict=f"{higher} is higher than {lower}" if row.significant else f"{higher} or {lower}: undecided",
        decided=row.significant,
        difference=signed(row.mean),
        interval=ends(row.low, row.high, "+"),
        q=p_value(row.q),
        test=f"{row.method}, {row.n} {'pairs' if row.method == 'paired t' else 'values'}",
        needed="" if row.significant else _needed(pair),
    )


def _needed(pair: Pair) -> str:
    if not pair.row.mean:
        return "no difference to find"
    more = more_seeds(pair.row, min(len(pair.first.runs), len(pair.second.runs)))
    if more:
        return f"about {plural(more, 'more seed')}"
    return f"more than {MAX_SEEDS:,} seeds" if needs_too_many(pair.row, more) else "an unknown number of seeds"


# The verdict


class Better(NamedTuple):
    """A condition that is significantly better than others on the same examples."""

    test_set: str
    row: Condition
    others: list[Condition]  # significantly worse


def verdict(table: Table) -> list[str]:
    """Return three sentences: significant differences, undecided comparisons, and published figures."""
    return [_significant(table), _undecided(table), _published(table)]


def significant_differences(table: Table) -> list[Better]:
    """Return each condition with those that it is significantly better than, in the order of the table."""
    names = examples_labels(table)
    found = {row.key: Better(names[row.place], row, []) for row in rows_of(table.rows)}
    for pair in _pairs(table):
        if pair.row.significant:
            found[pair.first.key].others.append(pair.second)
    return [better for better in found.values() if better.others]


def _significant(table: Table) -> str:
    better = significant_differences(table)
    if not better:
        if table.pairs.empty:
            return NOTHING
        if not table.pairs["tested"].any():
            return f"Nothing is tested: {A_TEST_NEEDS}."
        return "No condition is significantly better than another one on any test set."
    test_sets: dict[str, list[Better]] = {}
    for one in better:
        test_sets.setdefault(one.test_set, []).append(one)
    if len(test_sets) <= MAX_DETAILED:
        parts = [f"on {name}, {', and '.join(map(_is_better, members))}" for name, members in test_sets.items()]
        text = "; ".join(parts)
        return f"{text[0].upper()}{text[1:]}."
    pairs = Counter((one.row.label, other.label) for one in better for other in one.others)
    texts = [f"{one} than {other} on {count}" for (one, other), count in pairs.most_common(MAX_NAMED)]
    rest = len(pairs) - len(texts)
    more = f" ({rest:,} more pairs are in the comparisons)" if rest > 0 else ""
    count = plural(table.rows["place"].nunique(), "test set")
    return f"Of {count}, {listed(texts)} is significantly better{more}."


def _is_better(better: Better) -> str:
    """Return `lstm (13.3) is significantly better than cnn (0.0) and transformer (0.1)`."""
    others = sorted(better.others, key=lambda row: -row.mean)
    digits = next((n for n in (1, 2) if all(round(row.mean, n) < round(better.row.mean, n) for row in others)), 3)
    first, *rest = (f"{row.label} ({row.mean:.{digits}f})" for row in (better.row, *others))
    return f"{first} is significantly better than {listed(rest)}"


def _undecided(table: Table) -> str:
    every = _pairs(table)
    tested = [pair for pair in every if pair.row.tested]
    open_ = [pair for pair in tested if not pair.row.significant]
    untested = len(every) - len(tested)
    more = f"; {plural(untested, 'comparison')} could not be tested ({A_TEST_NEEDS})" if untested else ""
    if not tested:
        return "A difference between two results in this report may be due to the seed."
    if not open_:
        return f"No comparison is undecided{more}."
    names = examples_labels(table)
    decided_on = {names[one.first.place] for one in tested if one.row.significant}
    nowhere = [name for name in dict.fromkeys(names[one.first.place] for one in open_) if name not in decided_on]
    among = f", among them all on {listed(nowhere, MAX_NAMED)}" if nowhere and decided_on else ""
    seeds = count_range([len(row.runs) for one in open_ for row in (one.first, one.second)], "seed")
    every_one = "the only comparison is" if len(tested) == 1 else f"all {len(tested):,} comparisons are"
    share = f"{len(open_):,} of {len(tested):,} comparisons are" if decided_on else every_one
    return f"With {seeds} per condition, {share} undecided{among}{more}; undecided does not mean equal."


def _published(table: Table) -> str:
    quoted = [(row, one) for row in rows_of(table.rows) if row.mean == row.mean for one in row.published]
    if not quoted:
        return "No published figure is known for these test sets and kinds of network."
    same = [(row, one) for row, one in quoted if one.same_settings]
    if not same:
        papers = dict.fromkeys(one.figure.citation for _, one in quoted)
        most = max(quoted, key=lambda pair: abs(pair[0].mean - pair[1].figure.value))
        count = f"{plural(len(quoted), 'published figure')} beside these results ({listed(papers, MAX_NAMED)})"
        return (
            f"None of the {count} was measured under the same settings, so none is tested; "
            f"the most distant is {_beside_ours(*most)}."
        )
    return _reproduced(same, rows_of(table.rows))


def _reproduced(quoted: Sequence[tuple[Condition, Quotation]], rows: Sequence[Condition]) -> str:
    """Return which published figures under the settings of these runs agree with them."""
    verdicts: dict[str, list[str]] = {}
    for row, one in quoted:
        verdicts.setdefault(judge_figure(one.figure, rows).verdict, []).append(_beside_ours(row, one))
    texts = {
        AGREES: f"reproduced within {TOLERANCE:g} points",
        DIFFERS: f"not reproduced within {TOLERANCE:g} points",
        UNDECIDED: "undecided",
    }
    parts = [
        f"{len(verdicts[name]):,} {text} ({'; '.join(verdicts[name][:MAX_NAMED])})"
        for name, text in texts.items()
        if name in verdicts
    ]
    return f"Published figures under the settings of these runs: {listed(parts)}."


def _beside_ours(row: Condition, one: Quotation) -> str:
    """Return `cnn on addprim_jump: 10.2 here, 69.2 ± 8.2 in Dessì & Baroni 2019`."""
    return f"{row.label} on {row.split_label}: {number(row.mean)} here, {one.figure.text} in {one.figure.citation}"
