"""Judge claims by the records: supported, refuted, mixed, undecided, or not run.

A statement says between which bounds a mean over seeds lies, or a difference of two means; or it quotes a published
figure. It is supported if its whole interval lies within the bounds, and refuted if the whole interval lies outside.
With fewer than the minimum number of seeds, or if a run diverged, nothing is decided.

- A statement that one of two conditions is higher takes the comparison of their study by its metric as it is: the same
  difference, interval and p value as in the table and figures.
- All other statements with bounds are one family: those of all claims, run or not. Each interval has the level
  1 - .05/m, so that all of them together hold with 95 %, whichever claims are printed.
- A statement that quotes a published figure is judged as in `analysis.published`.
- All statements about ratios of speeds that `tfstudy bench` measured are one family of their own.

A claim is supported if all its statements are, mixed if some are supported and others refuted, and refuted if all were
run and all that were decided are refuted.
"""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from tfstudy.analysis.claim_files import CONDITION_KEYS, Claim, Selector, Statement, without_rows
from tfstudy.analysis.estimates import (
    ACROSS,
    WITHIN,
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
from tfstudy.analysis.stats import EXACT
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
    tests: int  # size of the family of the statements with bounds
    records: Sequence[Record] = ()  # of `tfstudy bench`
    ratio_tests: int = 1  # size of the family of the statements about ratios of speeds


class StatementVerdict(NamedTuple):
    """The verdict on a statement, and the numbers it is based on."""

    statement: Statement
    verdict: str
    reasons: tuple[str, ...]
    conditions: tuple[Condition, ...] = ()  # of, minus
    unused: int = 0  # number of other conditions that the statement selects
    estimate: Estimate | None = None
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


def gather_evidence(
    claims: Sequence[Claim],
    studies: Iterable[Study],
    tests: int,
    records: Sequence[Record] = (),
    ratio_tests: int = 1,
) -> Evidence:
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
    return Evidence(known, comparisons, tests, records, ratio_tests)


def family_size(claims: Iterable[Claim]) -> int:
    """Return the number of statements that are tested together: with bounds on means, or on differences of means.

    What a study's table compares is not among them.
    """
    statements = (statement for claim in claims for statement in claim.statements)
    return max(1, sum(not (statement.published or statement.compares or statement.over) for statement in statements))


def timed_ratios(claims: Iterable[Claim]) -> int:
    """Return the number of statements about ratios of speeds: the size of their family."""
    return max(1, sum(statement.timed for claim in claims for statement in claim.statements))


def judge(claim: Claim, evidence: Evidence) -> ClaimVerdict:
    """Return the verdict on a claim, with one on each of its statements."""
    if not claim.statements:
        reasons = tuple(filter(None, (f"tested by {claim.tested_by}", claim.note)))
        return ClaimVerdict(claim, claim.shown_as, reasons, [])
    verdicts = [judge_statement(statement, claim.minimum_seeds, evidence) for statement in claim.statements]
    return ClaimVerdict(claim, *_claim_verdict(verdicts), verdicts)


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


def judge_statement(statement: Statement, minimum_seeds: int, evidence: Evidence) -> StatementVerdict:
    """Return the verdict on a statement."""
    if statement.published:
        found = judge_figure(figure_of(statement.published), evidence.conditions)
        verdict, own = AS_VERDICT.get(found.verdict, found.verdict), (found.condition,) if found.condition else ()
        return StatementVerdict(statement, verdict, found.reasons, own, published=found)
    if statement.over:
        return _judge_ratio(statement, evidence)
    pair, unused = select_conditions(statement, evidence.conditions, minimum_seeds)
    if not pair:
        reason = "no two runs share data and settings" if unused else "no finished run of this kind"
        return StatementVerdict(statement, NOT_RUN, (reason,), unused=unused)
    # what the table of the study says of which of two conditions is higher
    key = (pair[0].key, pair[-1].key, statement.metric)
    if statement.compares and key in evidence.comparisons:
        estimate = estimate_comparison(statement.bounds, evidence.comparisons[key], *pair)
    else:
        try:
            estimate = estimate_statement(statement, pair, evidence.tests)
        except UserError as error:  # what an instrument measured can't be used
            verdict = NOT_RUN if isinstance(error, NotMeasuredError) else UNDECIDED
            return StatementVerdict(statement, verdict, (str(error),), pair, unused)
    decided = statement_verdict(statement, pair, estimate, minimum_seeds)
    return StatementVerdict(statement, *decided, pair, unused, estimate)


def _judge_ratio(statement: Statement, evidence: Evidence) -> StatementVerdict:
    pair, unused = find_pair(statement.of, statement.over, evidence.records)
    if not pair:
        return StatementVerdict(statement, NOT_RUN, ("no measurement of this kind",))
    measured = estimate_ratio(statement, pair, evidence.ratio_tests)
    if measured.more_seeds:
        least = measured.interval.n + measured.more_seeds
        decided = UNDECIDED, (f"{measured.interval.n} of at least {least} repeats",)
    elif measured.side == ACROSS:
        decided = UNDECIDED, (f"the interval includes {measured.bound:g}",)
    else:
        decided = _decided(measured, "ratio" if measured.interval.method == EXACT else "whole interval")
    return StatementVerdict(statement, *decided, unused=unused, estimate=measured, pair=pair)


def _decided(measured: Estimate, what: str = "whole interval") -> tuple[str, tuple[str]]:
    if measured.side == WITHIN:
        return SUPPORTED, (f"the {what} lies within the bounds",)
    return REFUTED, (f"the {what} lies {measured.side} {measured.bound:g}",)


def statement_verdict(
    statement: Statement, pair: Sequence[Condition], measured: Estimate, minimum_seeds: int
) -> tuple[str, tuple[str, ...]]:
    """Return the verdict on a statement that was measured, and the reasons, given the minimum number of seeds."""
    n, more = measured.interval.n, measured.more_seeds or 0
    if statement.metric != DIVERGED and (lost := sum(len(condition.diverged) for condition in pair)):
        return UNDECIDED, (f"{lost} diverged, and the mean would only be over the other runs",)
    if n < minimum_seeds:
        return UNDECIDED, (
            f"{n} of at least {minimum_seeds} seeds",
            f"about {max(minimum_seeds - n, more)} more needed",
        )
    if measured.side == ACROSS:
        further = (f"about {more} more seed{'s' * (more != 1)} needed",) if more else ()
        return UNDECIDED, (f"the interval includes {measured.bound:g}", *further)
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
