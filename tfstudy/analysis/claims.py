"""Judge claims by the records: supported, refuted, mixed, undecided, or not run.

A statement says between which bounds a mean over seeds lies, or a difference of two means; or it quotes a published
figure. Its p value is that against the deciding bound: the violated one, or else the nearer one. It is decided if its q
is below .05: supported if the mean is within the bounds, else refuted. With fewer than the minimum number of seeds, or
if a run diverged, nothing is decided.

- A statement that one of two conditions is higher takes the comparison of their study by its metric as it is: the same
  difference, interval and q as in the table and figures.
- All other statements that are judged together are one family: q is p adjusted for their number (Benjamini &
  Hochberg 1995). The claims of tfstudy are always judged together, whichever are printed.
- A statement that quotes a published figure is judged as in `analysis.published`.
- Ratios of memory and FLOPs are exact: they have no p, and are within the bounds or not.

A claim is supported if all its statements are, mixed if some are supported and others refuted, and refuted if all were
run and all that were decided are refuted.
"""

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from tfstudy.analysis.claim_files import CONDITION_KEYS, Claim, Selector, Statement, without_rows
from tfstudy.analysis.estimates import (
    Estimate,
    NotMeasuredError,
    Pair,
    estimate_comparison,
    estimate_ratio,
    estimate_statement,
    find_pair,
)
from tfstudy.analysis.frame import RunRecord, Study
from tfstudy.analysis.labels import IMPLIED, Condition, closest, distance
from tfstudy.analysis.published import AGREES, DIFFERS, FigureVerdict, figure_of, judge_figure
from tfstudy.analysis.stats import ALPHA, EXACT, fewest_values, q_values, seeds_needed
from tfstudy.analysis.summary import (
    BATCH_ORDER,
    DIVERGED,
    changed_settings,
    conditions,
    pairs,
    rows_of,
    swapped,
    with_metrics,
)
from tfstudy.errors import UserError
from tfstudy.performance.record import Record

SUPPORTED, REFUTED, MIXED, UNDECIDED, NOT_RUN = VERDICTS = ("supported", "refuted", "mixed", "undecided", "not run")
AS_VERDICT = {AGREES: SUPPORTED, DIFFERS: REFUTED}  # the others have the same names


class Evidence(NamedTuple):
    """What claims are judged by: the conditions of each study, and how they compare."""

    conditions: Sequence[Condition]
    comparisons: Mapping[tuple[str, str, str], Any]  # of each study's table, by both keys and the metric
    records: Sequence[Record] = ()  # of `tfstudy bench`


class StatementVerdict(NamedTuple):
    """The verdict on a statement, and the numbers it is based on."""

    statement: Statement
    verdict: str = ""
    reasons: tuple[str, ...] = ()
    conditions: tuple[Condition, ...] = ()  # of, minus
    unused: int = 0  # number of other conditions that the statement selects
    estimate: Estimate | None = None
    q: float = math.nan  # p adjusted for the family; of a comparison, that of its study
    published: FigureVerdict | None = None  # of a published figure
    pair: Pair | None = None  # what a ratio was measured by

    @property
    def reason(self) -> str:
        return "; ".join(self.reasons)


class ClaimVerdict(NamedTuple):
    """The verdict on a claim, and those on its statements."""

    claim: Claim
    verdict: str
    reasons: tuple[str, ...]
    statements: list[StatementVerdict]

    @property
    def reason(self) -> str:
        return "; ".join(self.reasons)


def gather_evidence(claims: Sequence[Claim], studies: Iterable[Study], records: Sequence[Record] = ()) -> Evidence:
    """Return the evidence on these claims in the records of studies; a condition is of one study only."""
    known: list[Condition] = []
    comparisons: dict[tuple[str, str, str], Any] = {}
    compared = {(one.of["task"], one.metric) for claim in claims for one in claim.statements if one.compares}
    for study in (study for study in studies if study.runs):
        whole = conditions(study.runs)
        known += _candidates(claims, study.runs, rows_of(whole))
        main = dict(zip(whole["task"], whole["metric"], strict=True))
        others = [main | {task: metric} for task, metric in compared if main.get(task, metric) != metric]
        for frame in (whole, *(with_metrics(whole, metrics) for metrics in others)):
            rows = rows_of(frame)
            for pair in rows_of(pairs(frame)):
                first, second = rows[pair.first], rows[pair.second]
                comparisons[first.key, second.key, first.metric] = pair
                comparisons[second.key, first.key, first.metric] = swapped(pair)
    return Evidence(known, comparisons, records)


def judge(claims: Sequence[Claim], evidence: Evidence) -> list[ClaimVerdict]:
    """Return the verdict on each claim, with one on each of its statements; their tests are one family."""
    measured = [[measure(one, claim.minimum_seeds, evidence) for one in claim.statements] for claim in claims]
    family = [one for own in measured for one in own if one.estimate and math.isnan(one.q)]
    q = q_values([one.estimate.p for one in family if one.estimate])
    level = ALPHA * max(1, (q < ALPHA).sum()) / max(1, np.isfinite(q).sum())
    adjusted = iter(q)
    out = []
    for claim, own in zip(claims, measured, strict=True):
        whole = [one._replace(q=float(next(adjusted))) if one.estimate and math.isnan(one.q) else one for one in own]
        verdicts = [decide(one, one.estimate, claim.minimum_seeds, level) if one.estimate else one for one in whole]
        if claim.statements:
            out.append(ClaimVerdict(claim, *_claim_verdict(verdicts), verdicts))
        else:
            reasons = tuple(filter(None, (f"tested by {claim.tested_by}", claim.note)))
            out.append(ClaimVerdict(claim, claim.shown_as, reasons, []))
    return out


def _claim_verdict(statements: Sequence[StatementVerdict]) -> tuple[str, tuple[str, ...]]:
    numbers = {verdict: [n for n, one in enumerate(statements, 1) if one.verdict == verdict] for verdict in VERDICTS}
    if len(statements) == 1:
        return statements[0].verdict, statements[0].reasons
    if len(numbers[NOT_RUN]) == len(statements):
        return NOT_RUN, tuple(dict.fromkeys(one.reason for one in statements))
    if len(numbers[SUPPORTED]) == len(statements):
        return SUPPORTED, (f"all {len(statements)} statements",)
    reasons = tuple(
        f"{verdict}: statement{'s' * (len(which) > 1)} {', '.join(map(str, which))}"
        for verdict, which in numbers.items()
        if which
    )
    if numbers[SUPPORTED] and numbers[REFUTED]:
        return MIXED, reasons
    return REFUTED if numbers[REFUTED] and not numbers[NOT_RUN] else UNDECIDED, reasons


def measure(statement: Statement, minimum_seeds: int, evidence: Evidence) -> StatementVerdict:
    """Return a statement with its estimate, still without a verdict, or with the verdict if it has no estimate."""
    if statement.published:
        found = judge_figure(figure_of(statement.published), evidence.conditions)
        verdict, own = AS_VERDICT.get(found.verdict, found.verdict), (found.condition,) if found.condition else ()
        return StatementVerdict(statement, verdict, found.reasons, own, published=found)
    if statement.over:
        measured, others = find_pair(statement.of, statement.over, evidence.records)
        if not measured:
            return StatementVerdict(statement, NOT_RUN, ("no measurement of this kind",))
        estimate = estimate_ratio(statement, measured)
        return StatementVerdict(statement, unused=others, estimate=estimate, pair=measured)
    pair, unused = select_conditions(statement, evidence.conditions, minimum_seeds)
    if not pair:
        reason = "no two runs share data and settings" if unused else "no finished run of this kind"
        return StatementVerdict(statement, NOT_RUN, (reason,), unused=unused)
    # what the table of the study says of which of two conditions is higher
    comparison = evidence.comparisons.get((pair[0].key, pair[-1].key, statement.metric))
    if statement.compares and comparison:
        estimate = estimate_comparison(statement.bounds, comparison, *pair)
        q = comparison.q if comparison.significant or not comparison.tested else max(ALPHA, comparison.q)
        return StatementVerdict(statement, conditions=pair, unused=unused, estimate=estimate, q=q)
    try:
        estimate = estimate_statement(statement, pair)
    except UserError as error:  # what an instrument measured can't be used
        verdict = NOT_RUN if isinstance(error, NotMeasuredError) else UNDECIDED
        return StatementVerdict(statement, verdict, (str(error),), pair, unused)
    return StatementVerdict(statement, conditions=pair, unused=unused, estimate=estimate)


def decide(judged: StatementVerdict, measured: Estimate, minimum_seeds: int, level: float = ALPHA) -> StatementVerdict:
    """Return a statement that was measured with its verdict, given the minimum number of seeds.

    `level` is the p up to which the document decides.
    """
    side = "within the bounds" if measured.inside else f"on the wrong side of {measured.bound:g}"
    n, bench = measured.interval.n, judged.pair is not None
    if measured.interval.method == EXACT:
        return judged._replace(verdict=SUPPORTED if measured.inside else REFUTED, reasons=(f"the ratio lies {side}",))
    lost = sum(len(condition.diverged) for condition in judged.conditions)
    if judged.statement.metric != DIVERGED and lost:
        reasons = (f"{lost} diverged, and the mean would only be over the other runs",)
        return judged._replace(verdict=UNDECIDED, reasons=reasons)
    needed = seeds_needed(measured.effect, measured.test != "Welch", level) if judged.q >= ALPHA else None
    more = max(1, needed - n) if needed else 0
    least = fewest_values() if bench else minimum_seeds
    if n < least:
        further = () if bench else (f"about {max(least - n, more)} more needed",)
        return judged._replace(
            verdict=UNDECIDED, reasons=(f"{n} of at least {least} {'repeats' if bench else 'seeds'}", *further)
        )
    if not judged.q < ALPHA:
        further = (f"about {more} more seed{'s' * (more != 1)} needed",) if more else ()
        return judged._replace(verdict=UNDECIDED, reasons=(f"not told from {measured.bound:g}", *further))
    return judged._replace(verdict=SUPPORTED if measured.inside else REFUTED, reasons=(side,))


# Conditions of a statement: selected by name and settings, never by their results


def _candidates(claims: Iterable[Claim], runs: Sequence[RunRecord], whole: Sequence[Condition]) -> list[Condition]:
    """Return the conditions of a study that claims may be about: on `whole` test sets, and by the tags they name."""
    by_tag: dict[str, set[tuple[str, str]]] = {"": set()}  # the tasks and split schemes that are named with each tag
    for statement in (statement for claim in claims for statement in claim.statements if not statement.over):
        for selector in filter(None, (statement.of, statement.minus)):
            by_tag.setdefault(selector.get("tag", ""), set()).add((selector["task"], selector["split"]))
    out = [condition for condition in whole if (condition.task, condition.split) in by_tag[""]]
    for tag in sorted(by_tag.keys() - {""}):
        own = [run for run in runs if (run.result.task, run.result.split) in by_tag[tag]]
        out += rows_of(conditions(own, tag))
    return out


def select_conditions(
    statement: Statement, known: Sequence[Condition], minimum_seeds: int = 1
) -> tuple[tuple[Condition, ...], int]:
    """Return the condition that a statement selects, or the two, and the number of others that it selects too.

    Conditions of fewer seeds are selected only if there are no others: a run of today must not hide a study that
    decides. Of several it is the one that is closest to its preset, then the one with most seeds.
    """
    everything, unused = _select(statement, known)
    enough = [condition for condition in known if len(condition.runs) + len(condition.diverged) >= minimum_seeds]
    pair = _select(statement, enough)[0] or everything
    return pair, len(everything) + unused - len(pair)


def _select(statement: Statement, known: Sequence[Condition]) -> tuple[tuple[Condition, ...], int]:
    """Return what a statement selects of these conditions (two share `_shared_settings`), and the number of others."""
    firsts = matching(known, statement.of)
    if not statement.minus:
        return ((closest(firsts, statement.of),) if firsts else ()), max(0, len(firsts) - 1)
    seconds = matching(known, statement.minus)
    buckets: dict[Hashable, tuple[list[Condition], list[Condition]]] = {}
    for side, members in enumerate((firsts, seconds)):
        for condition in members:
            buckets.setdefault(_shared_settings(condition, statement), ([], []))[side].append(condition)
    comparable = [bucket for bucket in buckets.values() if all(bucket)]
    if not comparable:
        return (), len(firsts) + len(seconds) if firsts and seconds else 0
    pairs = [(closest(first, statement.of), closest(second, statement.minus)) for first, second in comparable]
    pair = pairs[0] if len(pairs) == 1 else min(pairs, key=lambda pair: _joint_distance(pair, statement))
    selected = {condition.key for bucket in comparable for side in bucket for condition in side}
    return pair, len(selected - {condition.key for condition in pair})


def _joint_distance(pair: tuple[Condition, Condition], statement: Statement) -> tuple[object, ...]:
    sides = zip(pair, (statement.of, statement.minus), strict=True)
    both = [distance(condition, selector) for condition, selector in sides]
    return sum(one[0] for one in both), max(one[1] for one in both), [one[2:] for one in both]


def matching(known: Sequence[Condition], selector: Selector) -> list[Condition]:
    """Return the conditions that have these names and settings."""
    wanted = without_rows(selector)
    names = {key: value for key, value in wanted.items() if key in CONDITION_KEYS}
    settings = {key: value for key, value in wanted.items() if key not in CONDITION_KEYS}
    return [
        condition
        for condition in known
        if all(getattr(condition, key) == value for key, value in names.items())
        and all(condition.config.get(key) == value for key, value in settings.items())
    ]


def _shared_settings(condition: Condition, statement: Statement) -> Hashable:
    """Return what two conditions must share to be compared.

    All data, decoding and evaluation settings, except those that the statement names; under presets of the same name
    also how batches are made, and for the same architecture all settings.
    """
    first, second = statement.of, statement.minus
    same_preset = first["preset"] == second["preset"]
    free = {*first, *second, *IMPLIED}  # the split scheme is selected by name
    if not same_preset:  # the share of training data held out for validation is part of a preset
        free.add("data.validation_fraction")
    if same_preset and first["arch"] == second["arch"]:
        sections: tuple[str, ...] = ("",)
    else:
        sections = ("data.", "decode.", "eval.", *(BATCH_ORDER if same_preset else ()))
    changed = changed_settings(condition).items()
    settings = frozenset((key, value) for key, value in changed if key.startswith(sections) and key not in free)
    # a study compares its own conditions
    return settings, condition.study if statement.compares else ""
