"""Judge claims by the records: a frame with a row for each statement, and its numbers.

A statement says between which bounds a mean over seeds lies, or a difference of two means; or it quotes a published
figure. Its p value is that against the deciding bound: the violated one, or else the nearer one. It is decided if its q
is below .05: supported if the mean is within the bounds, else refuted. With fewer than the minimum number of seeds, or
if a run diverged, it is open.

- A statement that one of two conditions is higher takes the comparison of their study by its metric as it is: the same
  difference, interval and q as in the table and figures.
- All other statements that are judged together are one family: q is p adjusted for their number (Benjamini &
  Hochberg 1995). The claims of tfstudy are always judged together, whichever are printed.
- A statement that quotes a published figure is judged as in `analysis.published`.
- Ratios of memory and FLOPs are exact: they have no p, and are within the bounds or not.
"""

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from tfstudy.analysis import estimates, summary
from tfstudy.analysis.claim_files import CONDITION_KEYS, ROWS, Claim, Selector, Statement
from tfstudy.analysis.estimates import Estimate
from tfstudy.analysis.frame import Study, as_frame
from tfstudy.analysis.labels import IMPLIED, Condition, closest, distance
from tfstudy.analysis.published import AGREES, DIFFERS, figure_of, judge_figure
from tfstudy.analysis.stats import ALPHA, EXACT, fewest_values, q_values
from tfstudy.errors import UserError
from tfstudy.performance.record import Record

if TYPE_CHECKING:
    import pandas as pd

SUPPORTED, REFUTED, OPEN, NOT_RUN = VERDICTS = ("supported", "refuted", "open", "not run")
# the columns of a statement that was not measured
UNMEASURED = dict.fromkeys(Estimate._fields, math.nan) | {
    "verdict": "", "n": 0, "interval": "", "inside": False, "test": "", "q": math.nan, "least": 0, "diverged": 0,
    "conditions": (), "reason": "",
}  # fmt: skip


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
    sides = [side for claim in claims for one in claim.statements for side in (one.of, one.minus) if "task" in side]
    tagged = sorted({(side["tag"], side["task"]) for side in sides if side["tag"]})
    for study in (study for study in studies if study.runs):
        whole = summary.conditions(study.runs)
        known += summary.rows_of(whole)
        for tag, task in tagged:  # a condition for each value of a tag that a statement names
            own = [run for run in study.runs if run.result.task == task]
            known += summary.rows_of(summary.conditions(own, tag))
        main = dict(zip(whole["task"], whole["metric"], strict=True))
        others = [main | {task: metric} for task, metric in compared if main.get(task, metric) != metric]
        for frame in (whole, *(summary.with_metrics(whole, metrics) for metrics in others)):
            rows = summary.rows_of(frame)
            for pair in (own for one in summary.rows_of(summary.pairs(frame)) for own in (one, summary.swapped(one))):
                comparisons[rows[pair.first].key, rows[pair.second].key, rows[pair.first].metric] = pair
    return Evidence(known, comparisons, records)


def judge(claims: Sequence[Claim], evidence: Evidence) -> "pd.DataFrame":
    """Return a row for each statement of these claims, whose tests are one family.

    Columns: `claim` (its id), `number` (from 1 within it), `statement`, `verdict`; those of an `Estimate`; `q` (p
    adjusted; of a comparison, that of its study); `least` (the minimum number of seeds, or of rounds), `diverged`
    (runs); `conditions` (of, minus), and `reason` (of an open one, or why nothing was measured). nan is unknown.
    """
    rows: list[dict[str, Any]] = [
        UNMEASURED | {"claim": claim.id, "number": number, "statement": one} | measure(one, claim, evidence)
        for claim in claims
        for number, one in enumerate(claim.statements, 1)
    ]
    family = [row for row in rows if not row["verdict"] and math.isnan(row["q"])]
    for row, q in zip(family, q_values([row["p"] for row in family]), strict=True):
        row["q"] = float(q)
    return as_frame([row if row["verdict"] else row | decide(row) for row in rows])


def verdict(statements: Sequence[Any]) -> str:
    """Return the verdict on a claim by its rows: that of the only one, or `3 supported, 1 refuted, 2 open`."""
    found = [one.verdict for one in statements]
    if len({*found}) == 1 and (len(found) == 1 or found[0] == NOT_RUN):
        return str(found[0])
    return ", ".join(f"{found.count(name)} {name}" for name in VERDICTS if name in found)


def measure(statement: Statement, claim: Claim, evidence: Evidence) -> dict[str, Any]:
    """Return the columns of a statement: its numbers without a verdict, or why there are none, with the verdict."""
    if statement.published:
        found = judge_figure(figure_of(statement.published), evidence.conditions)
        said = {AGREES: SUPPORTED, DIFFERS: REFUTED}.get(found.verdict, found.verdict)  # the others have the same names
        ours = dict(zip(Estimate._fields, found.ours or (), strict=False))
        return ours | {"conditions": (found.condition,) * bool(ours), "verdict": said, "reason": found.reason}
    if statement.over:
        records = estimates.find_records(statement.of, statement.over, evidence.records)
        if not records:
            return {"verdict": NOT_RUN}
        return estimates.estimate_ratio(statement, records)._asdict() | {"least": fewest_values()}
    pair = select_conditions(statement, evidence.conditions, claim.minimum_seeds)
    if not pair:
        known = all(matching(evidence.conditions, side) for side in (statement.of, statement.minus or statement.of))
        unlike = known and statement.minus
        return {"verdict": NOT_RUN, "reason": "no two runs share data and settings" if unlike else ""}
    lost = 0 if statement.metric == summary.DIVERGED else sum(len(condition.diverged) for condition in pair)
    row = {"conditions": pair, "least": claim.minimum_seeds, "diverged": lost}
    # what the table of the study says of which of two conditions is higher
    comparison = evidence.comparisons.get((pair[0].key, pair[-1].key, statement.metric))
    if statement.compares and comparison:
        q = comparison.q if comparison.significant or not comparison.tested else max(ALPHA, comparison.q)
        return row | estimates.estimate_comparison(statement.bounds, comparison, *pair)._asdict() | {"q": q}
    try:
        return row | estimates.estimate_statement(statement, pair)._asdict()
    except UserError as error:  # what an instrument measured can't be used
        missing = isinstance(error, estimates.NotMeasuredError)
        return row | {"verdict": NOT_RUN if missing else OPEN, "reason": str(error)}


def decide(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the verdict on what was measured, and the reason of one that more than q leaves open."""
    noun = "rounds" if row["statement"].over else "seeds"
    few = f"{row['n']} of at least {row['least']} {noun}" if row["n"] < row["least"] else ""
    lost = f"{row['diverged']} diverged, and the mean would only be over the other runs" if row["diverged"] else ""
    if row["interval"] == EXACT or (row["q"] < ALPHA and not few and not lost):
        return {"verdict": SUPPORTED if row["inside"] else REFUTED}
    return {"verdict": OPEN, "reason": lost or few}


# Conditions of a statement: selected by name and settings, never by their results


def select_conditions(
    statement: Statement, known: Sequence[Condition], minimum_seeds: int = 1
) -> tuple[Condition, ...]:
    """Return the condition that a statement selects, or the two (which share `_shared_settings`); empty without runs.

    Conditions of fewer seeds are selected only if there are no others: a run of today must not hide a study that
    decides. Of several it is the one that is closest to its preset, then the one with most seeds.
    """
    enough = [condition for condition in known if len(condition.runs) + len(condition.diverged) >= minimum_seeds]
    return _select(statement, enough) or _select(statement, known)


def _select(statement: Statement, known: Sequence[Condition]) -> tuple[Condition, ...]:
    firsts = matching(known, statement.of)
    if not statement.minus:
        return (closest(firsts, statement.of),) if firsts else ()
    buckets: dict[Hashable, tuple[list[Condition], list[Condition]]] = {}
    for side, members in enumerate((firsts, matching(known, statement.minus))):
        for condition in members:
            buckets.setdefault(_shared_settings(condition, statement), ([], []))[side].append(condition)
    sides = (statement.of, statement.minus)
    found = [tuple(map(closest, bucket, sides)) for bucket in buckets.values() if all(bucket)]

    def joint(pair: tuple[Condition, ...]) -> tuple[object, ...]:
        both = [distance(condition, selector) for condition, selector in zip(pair, sides, strict=True)]
        return sum(one[0] for one in both), max(one[1] for one in both), [one[2:] for one in both]

    return min(found, key=joint) if len(found) > 1 else found[0] if found else ()


def matching(known: Sequence[Condition], selector: Selector) -> list[Condition]:
    """Return the conditions that have these names and settings; which rows of an instrument it selects is left out."""
    wanted = [(key, value) for key, value in selector.items() if not key.startswith(ROWS)]
    return [
        one
        for one in known
        if all((getattr(one, k) if k in CONDITION_KEYS else one.config.get(k)) == value for k, value in wanted)
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
        sections = ("data.", "decode.", "eval.", *(summary.BATCH_ORDER if same_preset else ()))
    changed = summary.changed_settings(condition).items()
    settings = frozenset((key, value) for key, value in changed if key.startswith(sections) and key not in free)
    # a study compares its own conditions
    return settings, condition.study if statement.compares else ""
