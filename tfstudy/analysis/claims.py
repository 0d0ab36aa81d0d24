"""Judge claims by the records: supported, refuted, mixed, undecided, or not run.

A statement says between which bounds a mean over seeds lies, or a difference of two means; or it quotes a published
figure. It is supported if its whole interval lies within the bounds, and refuted if the whole interval lies outside.
With fewer than the minimum number of seeds, or if a run diverged, nothing is decided.

- A statement that one of two conditions is higher takes the comparison of their study by its metric as it is: the same
  difference, interval and p value as in the table and figures.
- All other statements with bounds are one family: those of all claims, run or not. Each interval has the level
  1 - .05/m, so that all of them together hold with 95 %, whichever claims are printed.
- A statement that quotes a published figure is judged as in `analysis.counterparts`.
- All statements about ratios of speeds that `tfstudy bench` measured are one family of their own.

A claim is supported if all its statements are, mixed if some are supported and others refuted, and refuted if all were
run and all that were decided are refuted.
"""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import NamedTuple

from tfstudy.analysis.benchmarks import Pair, find_pair
from tfstudy.analysis.claim_files import CONDITION_KEYS, DIVERGED, Claim, Selector, Statement, without_rows
from tfstudy.analysis.comparisons import Comparison, compare_conditions
from tfstudy.analysis.conditions import (
    BATCH_ORDER,
    IMPLIED,
    Condition,
    closest,
    conditions,
    main_metrics,
    preset_distance,
)
from tfstudy.analysis.counterparts import AGREES, DIFFERS, FigureVerdict, judge_figure
from tfstudy.analysis.estimates import (
    ACROSS,
    WITHIN,
    Estimate,
    NotMeasuredError,
    estimate_comparison,
    estimate_ratio,
    estimate_statement,
)
from tfstudy.analysis.frame import RunRecord, Study
from tfstudy.analysis.intervals import EXACT
from tfstudy.analysis.published import figure_of
from tfstudy.errors import UserError
from tfstudy.performance.record import Record

SUPPORTED, REFUTED, MIXED, UNDECIDED, NOT_RUN = VERDICTS = ("supported", "refuted", "mixed", "undecided", "not run")
AS_VERDICT = {AGREES: SUPPORTED, DIFFERS: REFUTED}  # of a published figure; the others have the same names


class Evidence(NamedTuple):
    """What claims are judged by: the conditions of each study, and how they compare."""

    conditions: Sequence[Condition]
    comparisons: Mapping[tuple[frozenset[int], str], Comparison]  # of each study's table, by both ids and the metric
    tests: int  # size of the family of the statements with bounds
    records: Sequence[Record] = ()  # of `tfstudy bench`
    ratio_tests: int = 1  # size of the family of the statements about ratios of speeds


class StatementVerdict(NamedTuple):
    """The verdict on a statement, and what it is based on."""

    statement: Statement
    conditions: tuple[Condition, ...]  # of, minus
    unused: int  # number of other conditions that the statement selects
    estimate: Estimate | None
    published: FigureVerdict | None  # of a published figure
    verdict: str
    reason: str
    pair: Pair | None = None  # what a ratio was measured by


class ClaimVerdict(NamedTuple):
    """The verdict on a claim, and those on its statements."""

    claim: Claim
    verdict: str
    reason: str
    statements: list[StatementVerdict]


def gather_evidence(
    claims: Sequence[Claim],
    studies: Iterable[Study],
    tests: int,
    records: Sequence[Record] = (),
    ratio_tests: int = 1,
) -> Evidence:
    """Return the evidence on these claims in the records of studies; a condition is of one study only."""
    known: list[Condition] = []
    comparisons: dict[tuple[frozenset[int], str], Comparison] = {}
    compared = {(one.of["task"], one.metric) for claim in claims for one in claim.statements if one.compares}
    for study in studies:
        whole = conditions(study.runs)
        known += _candidates(claims, study.runs, whole)
        main = main_metrics(whole)
        others = [main | {task: metric} for task, metric in compared if main.get(task, metric) != metric]
        for metrics in (main, *others):
            for comparison in compare_conditions(whole, metrics):
                comparisons[_key(comparison.first, comparison.second, metrics[comparison.first.task])] = comparison
    return Evidence(known, comparisons, tests, records, ratio_tests)


def _key(first: Condition, second: Condition, metric: str) -> tuple[frozenset[int], str]:
    return frozenset((id(first), id(second))), metric


def family_size(claims: Iterable[Claim]) -> int:
    """Return the number of statements that are tested together: with bounds on means, or on differences of means.

    What a study's table compares is not among them.
    """
    statements = (statement for claim in claims for statement in claim.statements)
    return max(1, sum(not (statement.published or statement.compares or statement.over) for statement in statements))


def timed_ratios(claims: Iterable[Claim]) -> int:
    """Return the number of statements about ratios of speeds: the size of their family."""
    return max(1, sum(statement.timed for claim in claims for statement in claim.statements))


def judge_claim(claim: Claim, evidence: Evidence) -> ClaimVerdict:
    """Return the verdict on a claim."""
    if not claim.statements:
        reason = "; ".join(filter(None, (f"tested by {claim.tested_by}", claim.note)))
        return ClaimVerdict(claim, claim.shown_as, reason, [])
    verdicts = [judge_statement(statement, claim.minimum_seeds, evidence) for statement in claim.statements]
    return ClaimVerdict(claim, *_claim_verdict(verdicts), verdicts)


def _claim_verdict(statements: Sequence[StatementVerdict]) -> tuple[str, str]:
    numbers = {verdict: [n for n, one in enumerate(statements, 1) if one.verdict == verdict] for verdict in VERDICTS}
    if len(statements) == 1:
        return statements[0].verdict, statements[0].reason
    if len(numbers[NOT_RUN]) == len(statements):
        return NOT_RUN, "; ".join(dict.fromkeys(one.reason for one in statements))
    if len(numbers[SUPPORTED]) == len(statements):
        return SUPPORTED, f"all {len(statements)} statements"
    reason = "; ".join(f"{verdict}: {_numbered(which)}" for verdict, which in numbers.items() if which)
    if numbers[SUPPORTED] and numbers[REFUTED]:
        return MIXED, reason
    return REFUTED if numbers[REFUTED] and not numbers[NOT_RUN] else UNDECIDED, reason


def _numbered(numbers: Sequence[int]) -> str:
    return f"statement{'s' * (len(numbers) > 1)} {', '.join(map(str, numbers))}"


def judge_statement(statement: Statement, minimum_seeds: int, evidence: Evidence) -> StatementVerdict:
    """Return the verdict on a statement."""
    if statement.published:
        return _judge_published(statement, evidence)
    if statement.over:
        return _judge_ratio(statement, evidence)
    pair, unused = select_conditions(statement, evidence.conditions, minimum_seeds)
    if not pair:
        reason = "no two runs share data and settings" if unused else "no finished run of this kind"
        return StatementVerdict(statement, (), unused, None, None, NOT_RUN, reason)
    # what the table of the study says of which of two conditions is higher
    if statement.compares and (comparison := evidence.comparisons.get(_key(pair[0], pair[1], statement.metric))):
        ordered = comparison if comparison.first is pair[0] else comparison.swapped()
        estimate = estimate_comparison(statement.bounds, ordered)
    else:
        try:
            estimate = estimate_statement(statement, pair, evidence.tests)
        except UserError as error:  # what an instrument measured can't be used
            verdict = NOT_RUN if isinstance(error, NotMeasuredError) else UNDECIDED
            return StatementVerdict(statement, pair, unused, None, None, verdict, str(error))
    decided = statement_verdict(statement, pair, estimate, minimum_seeds)
    return StatementVerdict(statement, pair, unused, estimate, None, *decided)


def _judge_published(statement: Statement, evidence: Evidence) -> StatementVerdict:
    found = judge_figure(figure_of(statement.published), evidence.conditions)
    verdict = AS_VERDICT.get(found.verdict, found.verdict)
    own = (found.condition,) if found.condition else ()
    return StatementVerdict(statement, own, 0, None, found, verdict, found.reason)


def _judge_ratio(statement: Statement, evidence: Evidence) -> StatementVerdict:
    pair, unused = find_pair(statement.of, statement.over, evidence.records)
    if not pair:
        return StatementVerdict(statement, (), 0, None, None, NOT_RUN, "no measurement of this kind")
    measured = estimate_ratio(statement, pair, evidence.ratio_tests)
    if measured.more_seeds:
        least = measured.interval.n + measured.more_seeds
        verdict = UNDECIDED, f"{measured.interval.n} of at least {least} repeats"
    elif measured.side == ACROSS:
        verdict = UNDECIDED, f"the interval includes {measured.bound:g}"
    else:
        decided, reason = _decided(measured)
        verdict = decided, reason.replace("whole interval", "ratio") if measured.interval.method == EXACT else reason
    return StatementVerdict(statement, (), unused, measured, None, *verdict, pair)


def _decided(measured: Estimate) -> tuple[str, str]:
    if measured.side == WITHIN:
        return SUPPORTED, "the whole interval lies within the bounds"
    return REFUTED, f"the whole interval lies {measured.side} {measured.bound:g}"


def statement_verdict(
    statement: Statement, pair: Sequence[Condition], measured: Estimate, minimum_seeds: int
) -> tuple[str, str]:
    """Return the verdict on a statement that was measured, and the reason, given the minimum number of seeds."""
    n = measured.interval.n
    if statement.metric != DIVERGED and (lost := sum(len(condition.diverged) for condition in pair)):
        return UNDECIDED, f"{lost} diverged, and the mean would only be over the other runs"
    if n < minimum_seeds:
        more = max(minimum_seeds - n, measured.more_seeds or 0)
        return UNDECIDED, f"{n} of at least {minimum_seeds} seeds; about {more} more needed"
    if measured.side == ACROSS:
        more = measured.more_seeds or 0
        needed = f"; about {more} more seed{'s' * (more != 1)} needed" if more else ""
        return UNDECIDED, f"the interval includes {measured.bound:g}{needed}"
    return _decided(measured)


# Conditions of a statement: selected by name and settings, never by their results


def _candidates(claims: Iterable[Claim], runs: Sequence[RunRecord], whole: Sequence[Condition]) -> list[Condition]:
    """Return the conditions of a study that claims may be about: on `whole` test sets, and by the tags they name."""
    by_tag: dict[str, set[tuple[str, str]]] = {"": set()}  # the tasks and split schemes that are named with each tag
    for statement in (statement for claim in claims for statement in claim.statements if not statement.over):
        for selector in filter(None, (statement.of, statement.minus)):
            by_tag.setdefault(selector.get("tag", ""), set()).add((selector["task"], selector["split"]))
    out = [condition for condition in whole if (condition.task, condition.split) in by_tag[""]]
    for tag in sorted(by_tag.keys() - {""}):
        out += conditions([run for run in runs if (run.result.task, run.result.split) in by_tag[tag]], tag)
    return out


def select_conditions(
    statement: Statement, known: Sequence[Condition], minimum_seeds: int = 1
) -> tuple[tuple[Condition, ...], int]:
    """Return the condition that a statement selects, or the two, and the number of others that it selects too.

    Conditions of fewer seeds are selected only if there are no others: a run of today must not hide a study that
    decides. Of several it is the one that is closest to its preset, then the one with most seeds.
    """
    everything, unused = _select(statement, known)
    enough = [condition for condition in known if len(condition.every_run) >= minimum_seeds]
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
    selected = {id(condition) for bucket in comparable for side in bucket for condition in side}
    return pair, len(selected - {id(condition) for condition in pair})


def _joint_distance(pair: tuple[Condition, Condition], statement: Statement) -> tuple[object, ...]:
    sides = zip(pair, (statement.of, statement.minus), strict=True)
    both = [preset_distance(condition, selector) for condition, selector in sides]
    return sum(one[0] for one in both), max(one[1] for one in both), [one[2:] for one in both]


def matching(known: Sequence[Condition], selector: Selector) -> list[Condition]:
    """Return the conditions that have these names and settings."""
    wanted = without_rows(selector)
    return [condition for condition in known if all(_value(condition, key) == wanted[key] for key in wanted)]


def _value(condition: Condition, key: str) -> object:
    return getattr(condition, CONDITION_KEYS[key]) if key in CONDITION_KEYS else condition.config.get(key)


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
    changed = condition.changed_settings().items()
    settings = frozenset((key, value) for key, value in changed if key.startswith(sections) and key not in free)
    # a study compares its own conditions
    return settings, condition.study if statement.compares else ""
