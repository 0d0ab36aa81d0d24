"""Judge claims by the records: a frame with a row for each statement, and its numbers.

A statement says between which bounds a mean over seeds lies, or a difference of two means; or it quotes a published
figure. Its p value is that against the deciding bound: the violated one, or else the nearer one. It is decided if its q
is below .05: supported if the mean is within the bounds, else refuted. With fewer than the minimum number of seeds, or
if a run diverged, it is undecided.

- A statement that one of two conditions is higher takes the comparison of their study by its metric as it is: the same
  difference, interval and q as in the table and figures.
- All other statements that are judged together are one family: q is p adjusted for their number (Benjamini &
  Hochberg 1995). The claims of tfstudy are always judged together, whichever are printed.
- A statement that quotes a published figure is judged as in `analysis.published`.
- Ratios of memory and FLOPs are exact: they have no p, and are within the bounds or not.

The verdict on a claim is a count: `3 supported, 1 refuted, 2 open`.
"""

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tfstudy.analysis.claim_files import CONDITION_KEYS, Claim, Selector, Statement, without_rows
from tfstudy.analysis.estimates import (
    Estimate,
    NotMeasuredError,
    estimate_comparison,
    estimate_ratio,
    estimate_statement,
    find_pair,
)
from tfstudy.analysis.frame import RunRecord, Study, as_frame
from tfstudy.analysis.labels import IMPLIED, Condition, closest, distance
from tfstudy.analysis.published import AGREES, DIFFERS, figure_of, judge_figure
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

if TYPE_CHECKING:
    import pandas as pd

SUPPORTED, REFUTED, UNDECIDED, NOT_RUN = VERDICTS = ("supported", "refuted", "undecided", "not run")
AS_VERDICT = {AGREES: SUPPORTED, DIFFERS: REFUTED}  # the others have the same names
OPEN = (UNDECIDED, NOT_RUN)


class Evidence(NamedTuple):
    """What claims are judged by: the conditions of each study, and how they compare."""

    conditions: Sequence[Condition]
    comparisons: Mapping[tuple[str, str, str], Any]  # of each study's table, by both keys and the metric
    records: Sequence[Record] = ()  # of `tfstudy bench`


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


def judge(claims: Sequence[Claim], evidence: Evidence) -> "pd.DataFrame":
    """Return a row for each statement of these claims, whose tests are one family.

    Columns: `claim` (its id), `number` (from 1 within it), `statement`, `verdict`; `mean`, `low`, `high`, `n` and
    `interval` (its method), of a mean, a difference or a ratio; `bound` (the deciding one), `inside` (whether the mean
    is within the bounds), `p`, `test`, `q` (p adjusted; of a comparison, that of its study); `least` (the minimum
    number of seeds, or of rounds), `more` (seeds that are needed besides), `diverged` (runs); `conditions` (of, minus),
    `unused` (other conditions that it selects), `published` (the verdict on a figure), `ratio` (the records of a
    ratio), `problem` (why nothing was measured). nan is what is unknown.
    """
    rows: list[dict[str, Any]] = [
        {"claim": claim.id, "number": number, "statement": one} | measure(one, claim.minimum_seeds, evidence)
        for claim in claims
        for number, one in enumerate(claim.statements, 1)
    ]
    family = [row for row in rows if "mean" in row and "q" not in row]
    q = q_values([row["p"] for row in family])
    level = ALPHA * max(1, (q < ALPHA).sum()) / max(1, np.isfinite(q).sum())
    for row, adjusted in zip(family, q, strict=True):
        row["q"] = float(adjusted)
    return as_frame([UNMEASURED | row | (decide(row, level) if "mean" in row else {}) for row in rows])


def verdict(statements: Sequence[Any]) -> str:
    """Return the verdict on a claim by its rows: that of the only one, or `3 supported, 1 refuted, 2 open`."""
    found = [one.verdict for one in statements]
    if len({*found}) == 1 and (len(found) == 1 or found[0] == NOT_RUN):
        return str(found[0])
    counts = {name: found.count(name) for name in (SUPPORTED, REFUTED)} | {"open": sum(one in OPEN for one in found)}
    return ", ".join(f"{count} {name}" for name, count in counts.items() if count)


def measure(statement: Statement, minimum_seeds: int, evidence: Evidence) -> dict[str, Any]:
    """Return the columns of a statement: its numbers without a verdict, or why there are none, with the verdict."""
    if statement.published:
        found = judge_figure(figure_of(statement.published), evidence.conditions)
        own = (found.condition,) if found.condition else ()
        return {"verdict": AS_VERDICT.get(found.verdict, found.verdict), "conditions": own, "published": found}
    if statement.over:
        ratio, others = find_pair(statement.of, statement.over, evidence.records)
        if not ratio:
            return {"verdict": NOT_RUN, "problem": "no measurement of this kind"}
        return _columns(estimate_ratio(statement, ratio)) | {
            "unused": others, "ratio": ratio, "least": fewest_values(),
        }  # fmt: skip
    pair, unused = select_conditions(statement, evidence.conditions, minimum_seeds)
    if not pair:
        problem = "no two runs share data and settings" if unused else "no finished run of this kind"
        return {"verdict": NOT_RUN, "problem": problem, "unused": unused}
    lost = 0 if statement.metric == DIVERGED else sum(len(condition.diverged) for condition in pair)
    known = {"conditions": pair, "unused": unused, "least": minimum_seeds, "diverged": lost}
    # what the table of the study says of which of two conditions is higher
    comparison = evidence.comparisons.get((pair[0].key, pair[-1].key, statement.metric))
    if statement.compares and comparison:
        estimate = estimate_comparison(statement.bounds, comparison, *pair)
        q = comparison.q if comparison.significant or not comparison.tested else max(ALPHA, comparison.q)
        return known | _columns(estimate) | {"q": q}
    try:
        return known | _columns(estimate_statement(statement, pair))
    except UserError as error:  # what an instrument measured can't be used
        return known | {
            "verdict": NOT_RUN if isinstance(error, NotMeasuredError) else UNDECIDED, "problem": str(error),
        }  # fmt: skip


# the columns of a statement that was not measured
UNMEASURED = {
    "verdict": "", "mean": math.nan, "low": math.nan, "high": math.nan, "n": 0, "interval": "", "bound": math.nan,
    "inside": False, "p": math.nan, "test": "", "q": math.nan, "least": 0, "more": 0, "diverged": 0, "conditions": (),
    "unused": 0, "published": None, "ratio": None, "problem": "",
}  # fmt: skip


def _columns(found: Estimate) -> dict[str, Any]:
    mean, low, high, n, method = found.interval
    return {
        "mean": mean, "low": low, "high": high, "n": n, "interval": method, "bound": found.bound,
        "inside": found.inside, "p": found.p, "test": found.test, "effect": found.effect,
    }  # fmt: skip


def decide(row: Mapping[str, Any], level: float = ALPHA) -> dict[str, Any]:
    """Return the verdict on what was measured, and how many more seeds are needed for one.

    `level` is the p up to which the document decides.
    """
    needed = seeds_needed(row["effect"], row["test"] != "Welch", level) if row["q"] >= ALPHA else None
    more = max(1, needed - row["n"]) if needed else 0
    if row["interval"] == EXACT or (row["q"] < ALPHA and row["n"] >= row["least"] and not row.get("diverged")):
        return {"verdict": SUPPORTED if row["inside"] else REFUTED}
    return {"verdict": UNDECIDED, "more": max(row["least"] - row["n"], more)}


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
