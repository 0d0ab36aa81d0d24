"""The comparisons of a study in words: which of two conditions is higher, by how much, and what is open.

And its verdict in three sentences: what is significantly better, what is open, what was published. They follow from the
comparisons and the published figures of the table and say nothing else: a condition is called significantly better than
another one exactly if the two share no letter of `group` in the table.
"""

from typing import Any, NamedTuple

from tfstudy.analysis.labels import Condition
from tfstudy.analysis.published import AGREES, DIFFERS, OPEN, TOLERANCE, Quotation, judge_figure
from tfstudy.analysis.stats import MAX_SEEDS, POWER
from tfstudy.analysis.summary import A_TEST_NEEDS, more_seeds, rows_of, swapped, test_set_labels
from tfstudy.report.markup import count_range, ends, listed, number, p_value, plural, signed
from tfstudy.report.tables import Table
from tfstudy.runs.schema import metric_name

HEADS = ("test set", "result", "difference", "95 % interval", "q", "test", "needed to decide")
MAX_LISTED = 300
NOTE = (
    "The difference is between means over seeds, in percentage points, with its plain 95 % interval. All comparisons "
    "of the study are one family: q is p adjusted for their number (Benjamini-Hochberg), and a comparison is decided "
    "where q is below .05, so that 5 % of the decided ones are expected to be false. Open does not mean equal. "
    "The number of further seeds assumes that the measured difference is the true one, for a power of "
    f"{100 * POWER:.0f} %; with few seeds it is a guess within a factor of a few."
)
NOTHING = "No two conditions have the same test examples and amount of training data, so nothing is compared."
MAX_DETAILED = 6  # test sets on which significant differences are named
MAX_NAMED = 4  # pairs of labels, test sets or papers in a sentence


class ComparisonSummary(NamedTuple):
    """All comparisons of a study."""

    summary: str
    tested: list[tuple[str, ...]]  # by `HEADS`
    decided: list[bool]  # each of them
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


def examples_labels(table: Table) -> dict[tuple[str, ...], str]:
    """Return the names of test sets by `place`, with the metric if the table has several."""
    several, rows = table.rows["metric"].nunique() > 1, rows_of(table.rows)
    names = test_set_labels(rows)
    return {row.place: names[row.place] + f", {metric_name(row.metric)}" * several for row in rows}


def summarize_comparisons(table: Table) -> ComparisonSummary:
    """Return a table's comparisons in words, in the order of its rows, decided ones first."""
    names, every = examples_labels(table), _pairs(table)
    order = {place: number for number, place in enumerate(names)}
    tested = [pair for pair in every if pair.row.tested]
    shown = sorted(tested, key=lambda one: one.row.p)[:MAX_LISTED]
    shown.sort(key=lambda one: (order[one.first.place], not one.row.significant, one.row.p))
    more = f"{MAX_LISTED} of {len(tested):,} comparisons are listed, by q; the letters in the table cover all of them."
    notes = [*[NOTE] * bool(tested), *[more] * (len(shown) < len(tested))]
    decided, rest = sum(pair.row.significant for pair in tested), len(every) - len(tested)
    untested = f", {rest:,} not tested ({A_TEST_NEEDS})" if rest else ""
    counts = f"{decided:,} decided, {len(tested) - decided:,} open{untested}"
    summary = f"{plural(len(every), 'comparison')} on the same examples: {counts}." if every else NOTHING
    texts = [_texts(pair, names[pair.first.place]) for pair in shown]
    return ComparisonSummary(summary, texts, [pair.row.significant for pair in shown], notes)


def _texts(pair: Pair, test_set: str) -> tuple[str, ...]:
    higher, lower, row = pair.first.label, pair.second.label, pair.row
    more = more_seeds(row, min(len(pair.first.runs), len(pair.second.runs)))
    needed = "no difference to find" if not row.mean else "an unknown number of seeds"
    if more:
        needed = f"about {plural(more, 'more seed')}" if more <= MAX_SEEDS else f"more than {MAX_SEEDS:,} seeds"
    said = f"{higher} is higher than {lower}" if row.significant else f"{higher} or {lower}: open"
    test = f"{row.method}, {row.n} {'pairs' if row.method == 'paired t' else 'values'}"
    numbers = signed(row.mean), ends(row.low, row.high, "+"), p_value(row.q)
    return test_set, said, *numbers, test, "" if row.significant else needed


# The verdict


def verdict(table: Table) -> list[str]:
    """Return three sentences: significant differences, open comparisons, and published figures."""
    names, every = examples_labels(table), _pairs(table)
    return [_significant(table, names, every), _open(names, every), _published(table)]


def _significant(table: Table, names: dict[tuple[str, ...], str], every: list[Pair]) -> str:
    lower: dict[str, list[Condition]] = {}  # the conditions that each one is significantly better than
    for pair in every:
        if pair.row.significant:
            lower.setdefault(pair.first.key, []).append(pair.second)
    if not lower:
        if not any(pair.row.tested for pair in every):
            return f"Nothing is tested: {A_TEST_NEEDS}." if every else NOTHING
        return "No condition is significantly better than another one on any test set."
    test_sets: dict[str, list[str]] = {}
    for row in rows_of(table.rows):
        if row.key in lower:
            test_sets.setdefault(names[row.place], []).append(_is_better(row, lower[row.key]))
    texts = [f"on {name}, {', and '.join(own)}" for name, own in test_sets.items()]
    more = f"; and on {len(texts) - MAX_DETAILED} more test sets" if len(texts) > MAX_DETAILED + 1 else ""
    text = "; ".join(texts[:MAX_DETAILED] if more else texts)
    return f"{text[0].upper()}{text[1:]}{more}."


def _is_better(row: Condition, others: list[Condition]) -> str:
    """Return `lstm (13.3) is significantly better than cnn (0.0) and transformer (0.1)`."""
    others = sorted(others, key=lambda other: -other.mean)
    digits = next((n for n in (1, 2) if all(round(other.mean, n) < round(row.mean, n) for other in others)), 3)
    first, *rest = (f"{one.label} ({one.mean:.{digits}f})" for one in (row, *others))
    return f"{first} is significantly better than {listed(rest)}"


def _open(names: dict[tuple[str, ...], str], every: list[Pair]) -> str:
    tested = [pair for pair in every if pair.row.tested]
    open_ = [pair for pair in tested if not pair.row.significant]
    untested = len(every) - len(tested)
    more = f"; {plural(untested, 'comparison')} could not be tested ({A_TEST_NEEDS})" if untested else ""
    if not tested:
        return "A difference between two results in this report may be due to the seed."
    if not open_:
        return f"No comparison is open{more}."
    decided_on = {names[one.first.place] for one in tested if one.row.significant}
    nowhere = [name for name in dict.fromkeys(names[one.first.place] for one in open_) if name not in decided_on]
    among = f", among them all on {listed(nowhere, MAX_NAMED)}" if nowhere and decided_on else ""
    seeds = count_range([len(row.runs) for one in open_ for row in one[:2]], "seed")
    every_one = "the only comparison is" if len(tested) == 1 else f"all {len(tested):,} comparisons are"
    share = f"{len(open_):,} of {len(tested):,} comparisons are" if decided_on else every_one
    return f"With {seeds} per condition, {share} open{among}{more}; open does not mean equal."


def _published(table: Table) -> str:
    rows = rows_of(table.rows)
    quoted = [(row, one) for row in rows if row.mean == row.mean for one in row.published]
    if not quoted:
        return "No published figure is known for these test sets and kinds of network."
    verdicts: dict[str, list[str]] = {}
    for row, one in quoted:
        if one.same_settings:
            verdicts.setdefault(judge_figure(one.figure, rows).verdict, []).append(_beside_ours(row, one))
    if not verdicts:
        papers = dict.fromkeys(one.figure.citation for _, one in quoted)
        most = max(quoted, key=lambda pair: abs(pair[0].mean - pair[1].figure.value))
        count = f"{plural(len(quoted), 'published figure')} beside these results ({listed(papers, MAX_NAMED)})"
        return (
            f"None of the {count} was measured under the same settings, so none is tested; "
            f"the most distant is {_beside_ours(*most)}."
        )
    within = f"reproduced within {TOLERANCE:g} points"
    texts = {AGREES: within, DIFFERS: f"not {within}", OPEN: OPEN}
    parts = [
        f"{len(own):,} {text} ({'; '.join(own[:MAX_NAMED])})"
        for name, text in texts.items()
        if (own := verdicts.get(name))
    ]
    return f"Published figures under the settings of these runs: {listed(parts)}."


def _beside_ours(row: Condition, one: Quotation) -> str:
    """Return `cnn on addprim_jump: 10.2 here, 69.2 ± 8.2 in Dessì & Baroni 2019`."""
    return f"{row.label} on {row.split_label}: {number(row.mean)} here, {one.figure.text} in {one.figure.citation}"
