"""Judge claims by the records: a frame with a row for each statement, and its numbers.

There is a function for each kind of statement: `of_mean`, `of_difference`, `of_ratio`, `judge_figure`. p is that of
the deciding bound: the violated one, or else the nearer one. A statement is decided if its q is below .05: supported if
the number is within the bounds, else refuted. With fewer seeds than the minimum, or if a run diverged, it is open.

- A statement that one of two conditions is higher has the p and q of this comparison in the table of their study, and
  is open where these do not decide. All others that are judged together are one family: q is p adjusted for their
  number (Benjamini & Hochberg 1995). The claims of tfstudy are always judged together, whichever are printed.
- Ratios are of what one `tfstudy bench` measured, one setting over another. Speeds are compared round by round, and the
  median of their ratios is tested by signs. Memory and FLOPs are the same in every repeat: their ratios are exact, have
  no p, and are within the bounds or not.
"""

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tfstudy.analysis import claim_files as files
from tfstudy.analysis import stats, summary
from tfstudy.analysis.frame import Study, as_frame
from tfstudy.analysis.labels import IMPLIED, Condition, distance
from tfstudy.analysis.published import NOT_RUN, OPEN, REFUTED, SUPPORTED, VERDICTS, figure_of, judge_figure
from tfstudy.analysis.stats import ALPHA, EXACT, Interval
from tfstudy.analysis.summary import rows_of
from tfstudy.errors import UserError
from tfstudy.performance.record import Record
from tfstudy.plugins import command
from tfstudy.runs.schema import METRIC_NAMES, Measurement
from tfstudy.runs.store import read_measurement, saved_instruments
from tfstudy.tasks.scoring import wilson

if TYPE_CHECKING:
    import pandas as pd

Row = dict[str, Any]
NUMBERS = ("mean", "low", "high", "n", "interval", "bound", "inside", "p", "test", "q")  # of a statement, see `judge`
UNMEASURED: Row = dict.fromkeys(NUMBERS, math.nan) | {
    "verdict": "", "n": 0, "interval": "", "inside": False, "test": "", "least": 0, "diverged": 0, "conditions": (),
    "reason": "",
}  # fmt: skip


def judge(claims: Sequence[files.Claim], studies: Iterable[Study], records: Sequence[Record] = ()) -> "pd.DataFrame":
    """Return a row for each statement of these claims, whose tests are one family, by studies and `tfstudy bench`.

    Columns: `claim` (its id), `number` (from 1 within it), `statement`, `verdict`; `mean` (or difference, or ratio) of
    `n` seeds or rounds, with its 95 % interval `low`, `high` by the method `interval`; `bound` (the deciding one) and
    `inside` (the mean is strictly above or below a single bound, or between two or on one); `p` (two-sided, against
    that bound) by `test`, `q` (p adjusted; of a comparison, that of its study); `least` (the minimum of `n`),
    `diverged` (runs); `conditions` (of, minus), and `reason` (of an open one, or why nothing was measured). nan is
    unknown.
    """
    known: list[Condition] = []
    compared: dict[Hashable, Any] = {}  # comparisons of each study's table, by the keys of both conditions and metric
    sides = [side for claim in claims for one in claim.statements if not one.over for side in (one.of, one.minus)]
    tagged = sorted({(side["tag"], side["task"]) for side in sides if side and side["tag"]})
    for study in (study for study in studies if study.runs):
        whole = summary.conditions(study.runs)
        known += rows_of(whole)
        for tag, task in tagged:  # a condition for each value of a tag that a statement names
            known += rows_of(summary.conditions([run for run in study.runs if run.result.task == task], tag))
        for pair in rows_of(summary.pairs(whole)):
            both = whole.loc[[pair.first, pair.second]]
            compared[frozenset(both["key"]), both["metric"].iloc[0]] = pair
    rows: list[Row] = []
    for claim in claims:
        for number, one in enumerate(claim.statements, 1):
            if one.published:
                own = [c for c in known if one.study in ("", Path(c.study).name)]
                found = judge_figure(figure_of(one.published), own)
            elif one.over:
                found = of_ratio(one, records)
            else:
                found = of_conditions(one, claim.minimum_seeds, known, compared)
            rows.append(UNMEASURED | {"claim": claim.id, "number": number, "statement": one} | found)
    family = [row for row in rows if not row["verdict"] and math.isnan(row["q"])]
    for row, q in zip(family, stats.q_values([row["p"] for row in family]), strict=True):
        row["q"] = float(q)
    return as_frame([row if row["verdict"] else row | _decided(row) for row in rows])


def verdict(statements: Sequence[Any]) -> str:
    """Return the verdict on a claim by its rows: that of the only one, or `3 supported, 1 refuted, 2 open`."""
    found = [one.verdict for one in statements]
    if len({*found}) == 1 and (len(found) == 1 or found[0] == NOT_RUN):
        return str(found[0])
    return ", ".join(f"{found.count(name)} {name}" for name in VERDICTS if name in found)


def _decided(row: Row) -> Row:
    """Return the verdict on what was measured, and the reason of one that more than q leaves open."""
    noun = "rounds" if row["statement"].over else "seeds"
    few = f"{row['n']} of at least {row['least']} {noun}" if row["n"] < row["least"] else ""
    lost = f"{row['diverged']} diverged, and the mean would only be over the other runs" if row["diverged"] else ""
    if row["interval"] == EXACT or (row["q"] < ALPHA and not few and not lost):
        return {"verdict": SUPPORTED if row["inside"] else REFUTED}
    return {"verdict": OPEN, "reason": lost or few}


# The kinds of statements, each as the columns of a row


def of_conditions(
    one: files.Statement, least: int, known: Sequence[Condition], compared: Mapping[Hashable, Any]
) -> Row:
    """Measure the condition that a statement selects, or the difference of two; or say why nothing was measured."""
    chosen = select_conditions(one, known, least)
    if not chosen:
        unlike = one.minus and all(matching(known, side) for side in (one.of, one.minus))
        return {"verdict": NOT_RUN, "reason": "no two runs share data and settings" if unlike else ""}
    lost = 0 if one.metric == summary.DIVERGED else sum(len(condition.diverged) for condition in chosen)
    row: Row = {"conditions": chosen, "least": least, "diverged": lost}
    try:
        for condition in chosen if one.instrument else ():
            if not measurements(condition, one.instrument):
                hint = command("measure", condition.study, one.instrument, "--save")
                return row | {"verdict": NOT_RUN, "reason": f"not measured: `{hint}`"}
        row |= of_difference(one, *chosen) if one.minus else of_mean(one, *chosen)
    except UserError as error:  # what an instrument measured can't be used
        return row | {"verdict": OPEN, "reason": str(error)}
    pair = compared.get((frozenset(condition.key for condition in chosen), one.metric)) if one.compares else None
    if pair:
        row |= {"p": pair.p, "q": pair.q}
        if pair.q < ALPHA and not pair.significant:
            row |= {"verdict": OPEN, "reason": f"a difference below {summary.SHOWN} points"}
    return row


def of_mean(one: files.Statement, condition: Condition) -> Row:
    """Test the mean of a condition against bounds: by Student's t, or a share that all seeds have by its score."""
    found = values_by_seed(condition, one, one.of)
    values, rounding = [*found.values()], 0.0 if one.instrument else summary.resolution(condition)
    finite = [bound for bound in one.bounds if math.isfinite(bound)]
    measured, count = summary.mean_interval(found, one.metric, condition.wilson), condition.count
    if one.instrument:
        measured = stats.interval(values)
    else:  # no percentage lies beyond 0 or 100, so that a bound there needs no test beside another one
        finite = [bound for bound in finite if 0 < bound < 100] or finite
    if one.metric == summary.DIVERGED:  # a share of the runs
        count = len(values)
        low, high = wilson(sum(value > 0 for value in values), count)
        measured = measured._replace(low=100 * low, high=100 * high, method="Wilson over seeds")
    if measured.method.startswith("Wilson"):
        p = {bound: stats.score_test(measured.mean / 100, count, bound / 100) for bound in finite}
        return _estimate(one.bounds, measured, p, "score test")
    p = {bound: stats.against(values, bound, rounding).p for bound in finite}
    return _estimate(one.bounds, measured, p, "t")


def of_difference(one: files.Statement, first: Condition, second: Condition) -> Row:
    """Test the difference of two conditions against bounds. If it is not paired, n is the smaller number of seeds."""
    x, y = values_by_seed(first, one, one.of), values_by_seed(second, one, one.minus)
    saved = [measurements(condition, one.instrument) for condition in (first, second) if one.instrument]
    if len({own.comparable for by_seed in saved for own in by_seed.values()}) > 1:
        raise UserError(f"runs were measured by {one.instrument} with different settings")
    paired = summary.pairing_key(first) == summary.pairing_key(second) and x.keys() == y.keys() and len(x) > 1
    rounding = 0.0 if one.instrument else max(summary.resolution(first), summary.resolution(second))

    def minus(bound: float) -> stats.Difference:
        return stats.compare([value - bound for value in x.values()], [*y.values()], paired, rounding)

    whole = minus(0.0) if one.instrument else stats.clipped(minus(0.0), -100.0)
    p = {bound: minus(bound).p for bound in one.bounds if math.isfinite(bound)}
    measured = Interval(*whole[:3], min(len(x), len(y)), whole.method)
    return _estimate(one.bounds, measured, p, whole.method)


def of_ratio(one: files.Statement, records: Sequence[Record]) -> Row:
    """Measure the ratio of two records of one command with as many repeats.

    Of several it is the pair with most repeats, and of these the latest.
    """
    sides = [[(record, own) for record in records if (own := _values(record, side))] for side in (one.of, one.over)]
    found = [
        ((len(a.seconds), a.machine.started), [first / second for first, second in zip(x, y, strict=True)])
        for (a, x), (b, y) in product(*sides)
        if a.machine == b.machine and len(a.seconds) == len(b.seconds)
    ]
    if not found:
        return {"verdict": NOT_RUN}
    _, each = max(found, key=lambda pair: pair[0])
    timed = files.TIME in (one.of["quantity"], one.over["quantity"])
    measured = stats.median_interval(each) if timed else Interval(each[0], each[0], each[0], 1, EXACT)
    p = {bound: stats.sign_test(each, bound) if timed else math.nan for bound in one.bounds if math.isfinite(bound)}
    return _estimate(one.bounds, measured, p, "signs") | {"least": stats.FEWEST_VALUES}


def _estimate(bounds: files.Bounds, measured: Interval, p: Mapping[float, float], test: str) -> Row:
    """Return the columns of what was measured, given its p against each bound that is tested."""
    (low, high), mean = bounds, measured.mean
    inside = low < mean < high if math.isinf(low) or math.isinf(high) else low <= mean <= high
    deciding = low if mean < low else high
    if inside or deciding not in p:
        deciding = max(p, key=lambda bound: 2.0 if math.isnan(p[bound]) else p[bound])  # nan counts as the largest
    tested = deciding, inside, p[deciding], "" if math.isnan(p[deciding]) else test
    return dict(zip(NUMBERS, (*measured, *tested), strict=False))


# What they are measured by: conditions, selected by name and settings, never by their results; and records


def select_conditions(
    statement: files.Statement, known: Sequence[Condition], minimum_seeds: int = 1
) -> tuple[Condition, ...]:
    """Return the condition that a statement selects, or the two (which share `_shared_settings`); empty without runs.

    Conditions of fewer seeds are selected only if there are no others: a run of today must not hide a study that
    decides. Of several it is the one that is closest to its preset, then the one with most seeds.
    """
    members = [
        [(one, distance(one), _shared_settings(one, statement)) for one in matching(known, side)]
        for side in (statement.of, statement.minus)
        if side
    ]
    found = [pair for pair in product(*members) if len({shared for *_, shared in pair}) == 1]

    def order(pair: tuple[tuple[Condition, Any, Hashable], ...]) -> tuple[object, ...]:
        few = any(len(one.runs) + len(one.diverged) < minimum_seeds for one, *_ in pair)
        far = [far for _, far, _ in pair]
        return few, sum(differing for differing, *_ in far), max(outdated for _, outdated, *_ in far), far

    return tuple(one for one, *_ in min(found, key=order)) if found else ()


def matching(known: Sequence[Condition], selector: files.Selector) -> list[Condition]:
    """Return the conditions that have these names and settings; which rows of an instrument it selects is left out."""
    wanted = [(key, value) for key, value in selector.items() if not key.startswith(files.ROWS)]
    return [
        one
        for one in known
        if all((getattr(one, k) if k in files.CONDITION_KEYS else one.config.get(k)) == value for k, value in wanted)
    ]


def _shared_settings(condition: Condition, statement: files.Statement) -> Hashable:
    """Return what two conditions must share to be compared.

    All data, decoding and evaluation settings, except those that the statement names; under presets of the same name
    also how batches are made, and for the same architecture all settings.
    """
    first, second = statement.of, statement.minus
    if not second:
        return ()
    same_preset = first["preset"] == second["preset"]
    free = {*first, *second, *IMPLIED}  # the split scheme is selected by name
    if not same_preset:  # the share of training data held out for validation is part of a preset
        free.add("data.validation_fraction")
    if same_preset and first["arch"] == second["arch"]:
        sections: tuple[str, ...] = ("",)
    else:
        sections = ("data.", "decode.", "eval.", *(summary.BATCH_ORDER if same_preset else ()))
    changed = condition.changed.items()
    settings = frozenset((key, str(value)) for key, value in changed if key.startswith(sections) and key not in free)
    # a study compares its own conditions
    return settings, condition.study if statement.compares else ""


def values_by_seed(condition: Condition, statement: files.Statement, selector: files.Selector) -> dict[int, float]:
    """Return by seed what a statement is about: a metric in percent, or what an instrument measured.

    Of an instrument it is the largest number, among the rows that a selector chooses, of each run with a saved
    measurement. Rows of a metric of test sets, such as BLEU, are shares of 1 in the record and in percent here.
    `UserError` if no measurement has such a row, or if a file is broken.
    """
    if not statement.instrument:
        return dict(condition.values.get(statement.metric, {}))
    wanted = {key.removeprefix(files.ROWS): value for key, value in selector.items() if key.startswith(files.ROWS)}
    factor = 100 if wanted.get("metric") in METRIC_NAMES else 1
    chosen = {
        seed: [float(row[one.chart.value]) for row in one.rows() if wanted.items() <= row.items()]
        for seed, one in measurements(condition, statement.instrument).items()
    }
    if not any(chosen.values()):
        rows = ", ".join(f"{key} {value}" for key, value in wanted.items())
        raise UserError(f"{statement.instrument} has no row with {rows}")
    return {seed: factor * max(numbers) for seed, numbers in chosen.items() if numbers}


def measurements(condition: Condition, instrument: str) -> dict[int, Measurement]:
    """Return the measurements of the runs of a condition that have one, by seed."""
    runs = [run for run in condition.runs if instrument in saved_instruments(run.path)]
    return {run.result.seed: read_measurement(run.path, instrument) for run in runs}


def _values(record: Record, selector: files.Selector) -> list[float]:
    """Return the values of a quantity, one for each repeat or a single exact one; empty if another setting has them."""
    names = {key: getattr(record, key) for key in files.BENCH_KEYS if key not in files.BENCH_DEFAULTS}
    names |= {"variant": record.variant, "accelerator": record.machine.accelerator}
    if record.train or not names.items() <= selector.items():
        return []
    quantity = selector["quantity"]
    if quantity == files.TIME:
        return record.tokens_per_second
    own = record.flops if quantity.endswith("flops") else record
    value = getattr(own, quantity.removesuffix("_flops"), None)
    return [float(value)] if value else []
