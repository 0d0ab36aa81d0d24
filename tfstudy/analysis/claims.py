"""Verdicts on claims, from records: supported, refuted, undecided, or not run.

A statement says between which bounds a mean over seeds lies, or a difference of two. It is supported if the whole 95 %
interval lies within them and refuted if the whole interval lies outside. For a claimed figure that is the logic of two
one-sided tests, at .025 each: the 95 % interval, not the 90 % one, so that both verdicts go by the interval that is
printed. The p value is of the two-sided test against the bound that decides: the one that is violated, or, within the
bounds, the one that is harder to tell apart. Over the statements of a claim it is corrected (Holm 1979), and must be
below .05 as well. Below the least number of seeds, and where a run diverged, nothing is decided.

Where all seeds have the same figure there is no test: the interval is Wilson's within a run, which tells nothing of
seeds that have not been tried.
"""

import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple, TypeVar

from tasks.errors import UserError
from tasks.scoring import wilson
from tfstudy.analysis.collection import RunRecord, flat
from tfstudy.analysis.comparisons import spread, step
from tfstudy.analysis.conditions import UNTOLD, Condition, conditions, stream
from tfstudy.analysis.statements import DIVERGED, NAMED, OVER_LENGTHS, Claim, Selector, Statement
from tfstudy.analysis.statistics import ALPHA, Interval, against, compare, holm, interval, seeds_needed

SUPPORTED, REFUTED, UNDECIDED, NOT_RUN = KINDS = ("supported", "refuted", "undecided", "not run")
Bounds = tuple[float, float]
Figures = Mapping[int, float]  # by seed, in per cent
Item = TypeVar("Item")


class Weighed(NamedTuple):
    """A quantity against the bounds between which it is said to lie."""

    found: Interval
    bound: float  # the one that decides
    p: float  # two-sided, against that bound; nan if there is no test
    test: str  # how it was tested; empty if it was not
    side: str  # of the bounds: "within", "below", "above"; "across" if the interval holds one of them
    needed: int | None  # seeds with which a true difference of this size from the bound would be found


class Finding(NamedTuple):
    """What the records say of a statement."""

    statement: Statement
    conditions: tuple[Condition, ...]  # of, minus
    unused: int  # other rows that the statement tells too
    weighed: Weighed | None
    p: float  # corrected over the statements of the claim
    verdict: str
    why: str


class Judged(NamedTuple):
    """A claim with its verdict."""

    claim: Claim
    verdict: str
    why: str
    findings: list[Finding]


def judge(claim: Claim, known: Sequence[Condition]) -> Judged:
    """What the rows that there are say of the claim."""
    if not claim.parts:
        if not claim.tested_by:
            return Judged(claim, NOT_RUN, f"needs {claim.needs}", [])
        return Judged(claim, claim.shown_as, "; ".join(filter(None, (f"tested by {claim.tested_by}", claim.note))), [])
    picked = [(statement, *chosen(statement, known)) for statement in claim.statements]
    tests = sum(bool(found) for _, found, _ in picked)
    weighed = [weighed_rows(statement, found, tests) if found else None for statement, found, _ in picked]
    corrected = holm([one.p if one else math.nan for one in weighed])
    drawn = [Finding(*one, w, p, "", "") for one, w, p in zip(picked, weighed, corrected, strict=True)]
    findings = []
    for one in drawn:
        kind, why = verdict(one, claim.least)
        findings.append(one._replace(verdict=kind, why=why))
    return Judged(claim, *_together(findings), findings)


def _together(findings: Sequence[Finding]) -> tuple[str, str]:
    of = {kind: [n for n, one in enumerate(findings, 1) if one.verdict == kind] for kind in KINDS}
    if len(findings) == 1 or len(of[NOT_RUN]) == len(findings):
        return findings[0].verdict, findings[0].why
    told = "; ".join(f"{kind}: part {', '.join(map(str, parts))}" for kind, parts in of.items() if parts)
    if of[REFUTED]:
        return REFUTED, told
    return (SUPPORTED, "all parts") if len(of[SUPPORTED]) == len(findings) else (UNDECIDED, told)


def verdict(found: Finding, least: int) -> tuple[str, str]:
    """The verdict on a statement, and why, with this number of seeds at least."""
    weighed = found.weighed
    if weighed is None:
        return NOT_RUN, "no two runs share data and settings" if found.unused else "no finished run of this kind"
    n = weighed.found.n
    if found.statement.metric != DIVERGED and (lost := sum(len(row.diverged) for row in found.conditions)):
        return UNDECIDED, f"{lost} diverged, so the mean is of those alone that did not"
    if n < least:
        return UNDECIDED, f"{n} of at least {least} seeds; about {max(least, weighed.needed or 0) - n} more"
    more = max(1, weighed.needed - n) if weighed.needed else 0
    needed = f"; about {more} more seed{'s' * (more != 1)}" if more else ""
    if weighed.side == "across":
        return UNDECIDED, f"the interval does not tell it from {weighed.bound:g}{needed}"
    if found.p >= ALPHA:  # nan where there is no test, and the interval alone decides
        return UNDECIDED, f"not told from {weighed.bound:g} after correction{needed}"
    if weighed.side == "within":
        return SUPPORTED, "the whole interval lies there"
    return REFUTED, f"the whole interval lies {weighed.side} {weighed.bound:g}"


def weighed_rows(statement: Statement, pair: Sequence[Condition], tests: int = 1) -> Weighed:
    """What was measured on one row, or two, against what is said; `tests` are corrected for together."""
    first, *others = (figures(row, statement.metric) for row in pair)
    one = max(step(row) for row in pair) if statement.metric != DIVERGED else 0.0
    if others:
        paired = stream(pair[0]) == stream(pair[1])
        return weigh(statement.bounds, first, others[0], paired, one, tests=tests)
    return weigh(statement.bounds, first, known=mean_of(pair[0], statement.metric), one=one, tests=tests)


def weigh(
    bounds: Bounds,
    first: Figures,
    second: Figures | None = None,
    paired: bool = True,
    one: float = 0.0,
    known: Interval | None = None,
    tests: int = 1,
) -> Weighed:
    """A mean, or with `second` a difference of means, against bounds; `known` is the mean's interval, if not Student's.

    Pairs are of the seeds that both have; unpaired, n is the smaller number of seeds. `one` is what one example is
    worth, and `tests` how many are corrected for together.
    """
    finite = [bound for bound in bounds if math.isfinite(bound)]
    if second is None:
        found = known or interval(list(first.values()))
        alike = len(set(first.values())) < 2
        tested = {bound: against(list(first.values()), bound, one) for bound in finite}
    else:
        whole, alike = compare(first, second, paired, tests, one), False
        n = whole.n if whole.method in ("paired t", "sign permutation") else min(len(first), len(second))
        found = Interval(whole.mean, whole.low, whole.high, n, whole.method)
        tested = {
            bound: compare({seed: x - bound for seed, x in first.items()}, second, paired, tests, one)
            for bound in finite
        }
    low, high = bounds
    violated = low if found.mean < low else high if found.mean > high else None
    # nan counts as the greatest p: what can't be tested is the hardest to tell apart
    bound = max(tested, key=lambda b: 2.0 if math.isnan(tested[b].p) else tested[b].p) if violated is None else violated
    test = tested[bound]
    untested = math.isnan(test.p) or alike
    return Weighed(
        found,
        bound,
        math.nan if untested else test.p,
        "" if untested else test.method,
        _side(found, bounds),
        None if alike else seeds_needed(test, ALPHA / tests),
    )


def _side(found: Interval, bounds: Bounds) -> str:
    low, high = bounds
    if found.high < low:
        return "below"
    if found.low > high:
        return "above"
    # what is above or below a figure does not touch it
    within = (found.low > low if math.isinf(high) else found.low >= low) and (
        found.high < high if math.isinf(low) else found.high <= high
    )
    return "within" if within else "across"


def figures(row: Condition, metric: str) -> dict[int, float]:
    """The metric by seed, in per cent: 100 for a run that diverged and 0 for one that did not, for `diverged`."""
    if metric == DIVERGED:
        return {run.result.seed: 100.0 * (not run.finished) for run in (*row.runs, *row.diverged)}
    if metric == OVER_LENGTHS:
        return row.by_seed("token_accuracy", "mean_over_lengths")
    return row.by_seed(metric)


def mean_of(row: Condition, metric: str) -> Interval:
    """The row's mean and its interval over seeds, within what the metric can be."""
    values = list(figures(row, metric).values())
    if metric == DIVERGED and values:
        low, high = wilson(sum(value > 0 for value in values), len(values))
        return interval(values)._replace(low=100 * low, high=100 * high, method="Wilson over seeds")
    if metric in (DIVERGED, OVER_LENGTHS):
        found = interval(values)
        return found._replace(low=max(found.low, 0.0), high=min(found.high, 100.0)) if found.n > 1 else found
    return spread(row, metric)


# Which rows a statement is about


def chosen(statement: Statement, known: Sequence[Condition]) -> tuple[tuple[Condition, ...], int]:
    """The row that a statement tells, or the two; and how many others it tells too. Never chosen by their figures.

    Of several it is the one that is most as its preset says, then the one with most seeds. Two rows must share all
    data, decoding and evaluation, and of one preset all settings, but for what the statement says.
    """
    firsts = [row for row in known if matches(row, statement.of)]
    if not statement.minus:
        return (nearest(firsts, lambda row: rank(row, statement.of)),) if firsts else (), max(0, len(firsts) - 1)
    seconds = [row for row in known if matches(row, statement.minus)]
    buckets: dict[Hashable, tuple[list[Condition], list[Condition]]] = {}
    for side, some in enumerate((firsts, seconds)):
        for row in some:
            buckets.setdefault(_kept(row, statement), ([], []))[side].append(row)
    pairs = [bucket for bucket in buckets.values() if all(bucket)]
    if not pairs:
        return (), len(firsts) + len(seconds) if firsts and seconds else 0

    def told(side: int) -> Callable[[Condition], tuple[Any, ...]]:
        return lambda row: rank(row, (statement.of, statement.minus)[side])

    def together(pair: tuple[Condition, Condition]) -> tuple[Any, ...]:
        both = [told(side)(row) for side, row in enumerate(pair)]
        return sum(r[0] for r in both), max(r[1] for r in both), [r[2:] for r in both]

    best = nearest([(nearest(a, told(0)), nearest(b, told(1))) for a, b in pairs], together)
    return best, len({id(row) for bucket in pairs for side in bucket for row in side} - {id(row) for row in best})


def matches(row: Condition, wanted: Selector) -> bool:
    """Whether a row is one of those that these names and settings tell."""
    return all((getattr(row, key) if key in NAMED else row.config.get(key)) == value for key, value in wanted.items())


def rows_of(claims: Iterable[Claim], runs: Sequence[RunRecord]) -> list[Condition]:
    """The rows that statements may be about: of whole test splits, and by the tags that a statement names."""
    told: dict[str, set[tuple[str, str]]] = {}  # by tag, the experiments that a statement names with it
    for selector in (selector for c in claims for one in c.statements for selector in (one.of, one.minus) if selector):
        told.setdefault(selector.get("tag", ""), set()).add((selector["task"], selector["split"]))
    return [
        row
        for tag, places in sorted(told.items())
        for row in conditions([run for run in runs if (run.result.task, run.result.split) in places], tag)
    ]


def nearest(items: Sequence[Item], key: Callable[[Item], tuple[Any, ...]]) -> Item:
    """The one with the least key, which is not asked for where there is one alone."""
    return items[0] if len(items) == 1 else min(items, key=key)


def rank(row: Condition, wanted: Selector) -> tuple[Any, ...]:
    """Least for the row that is most as its preset says, but for what is wanted, then for the one with most seeds."""
    usual = {key: value for key, value in as_preset(row.task, row.split, row.arch, row.preset) if key not in wanted}
    differ = sum(row.config.get(key) != value for key, value in usual.items() if key not in UNTOLD)
    return differ, -len(row.runs) - len(row.diverged), row.label


@cache
def as_preset(task: str, split: str, arch: str, name: str) -> tuple[tuple[str, Any], ...]:
    """Every setting of a run of this preset; none if the preset is no longer there."""
    from tfstudy.config.presets import preset  # loads torch, so only where there is a choice
    from tfstudy.config.resolve import merge, resolve

    try:
        config = resolve(merge(preset(task, arch, name), {"task": task, "arch": arch, "data": {"split": split}}))
    except UserError:
        return ()
    return tuple((key, value) for key, value in flat(config.model_dump(mode="json")).items() if "." in key)


def _kept(row: Condition, statement: Statement) -> Hashable:
    """What two rows must share to be compared: all data, decoding and evaluation, but for what is said of them,
    and of one architecture and preset all settings.
    """
    one, other = statement.of, statement.minus
    alike = one["arch"] == other["arch"] and one["preset"] == other["preset"]
    free = {*one, *other, *UNTOLD, "data.split", "data.hub"}  # a split is told by its name
    if one["preset"] != other["preset"]:  # what is held out of train to validate on is part of a preset
        free.add("data.validation")
    sections = ("",) if alike else ("data.", "decode.", "eval.")
    return frozenset((key, str(v)) for key, v in row.config.items() if key.startswith(sections) and key not in free)
