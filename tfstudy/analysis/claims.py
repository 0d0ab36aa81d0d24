"""Judge claims by the records: a frame with a row for each statement, and its numbers.

A statement says between which bounds a mean over seeds lies, or a difference of two means; or it quotes a published
figure. Its p value is that against the deciding bound: the violated one, or else the nearer one. It is decided if its q
is below .05: supported if the mean is within the bounds, else refuted. With fewer than the minimum number of seeds, or
if a run diverged, it is open.

- A statement that one of two conditions is higher has the q of this comparison in the table of their study.
- All other statements that are judged together are one family: q is p adjusted for their number (Benjamini &
  Hochberg 1995). The claims of tfstudy are always judged together, whichever are printed.
- A statement that quotes a published figure is judged as in `analysis.published`.
- A statement about an instrument is judged by one number for each seed, of its saved measurement.
- Ratios are of what one `tfstudy bench` measured, one setting over another. Speeds are compared round by round, and the
  median of their ratios is tested by signs. Memory and FLOPs are the same in every repeat: their ratios are exact, have
  no p, and are within the bounds or not.
"""

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tfstudy.analysis import stats
from tfstudy.analysis.claim_files import (
    BENCH_SETTINGS,
    CONDITION_KEYS,
    ROWS,
    SIZES,
    TAKE,
    TAKES,
    TIME,
    Claim,
    Selector,
    Statement,
)
from tfstudy.analysis.frame import Study, as_frame
from tfstudy.analysis.labels import IMPLIED, Condition, distance
from tfstudy.analysis.published import AGREES, DIFFERS, figure_of, judge_figure
from tfstudy.analysis.stats import ALPHA, EXACT, Interval, Values
from tfstudy.analysis.summary import (
    BATCH_ORDER,
    DIVERGED,
    conditions,
    pairing_key,
    pairs,
    resolution,
    rows_of,
)
from tfstudy.errors import UserError
from tfstudy.performance.record import Record
from tfstudy.plugins import command
from tfstudy.runs.display import METRIC_NAMES
from tfstudy.runs.measurement_record import Measurement, read_measurement, saved_instruments
from tfstudy.tasks.scoring import wilson

if TYPE_CHECKING:
    import pandas as pd

Bounds = tuple[float, float]
SUPPORTED, REFUTED, OPEN, NOT_RUN = VERDICTS = ("supported", "refuted", "open", "not run")
OVER_SEEDS, SCORE = "Wilson over seeds", "score test"


class Estimate(NamedTuple):
    """A mean, a difference of means or a ratio, with its 95 % interval, tested against the bounds of a statement."""

    mean: float
    low: float
    high: float
    n: int
    interval: str  # how its ends were found
    bound: float  # the deciding one: the one that is violated, or else the one with the larger p
    inside: bool  # whether the mean is strictly above or below a single bound, or between two of them or on one
    p: float  # two-sided, against that bound; nan without a test
    test: str  # its name; empty without a test


# the columns of a statement that was not measured
UNMEASURED = dict.fromkeys(Estimate._fields, math.nan) | {
    "verdict": "", "n": 0, "interval": "", "inside": False, "test": "", "q": math.nan, "least": 0, "diverged": 0,
    "conditions": (), "reason": "",
}  # fmt: skip


class Evidence(NamedTuple):
    """What claims are judged by: the conditions of each study, and how they compare."""

    conditions: Sequence[Condition]
    comparisons: Mapping[Hashable, Any]  # of each study's table, by the keys of both conditions and the metric
    records: Sequence[Record] = ()  # of `tfstudy bench`


def gather_evidence(claims: Sequence[Claim], studies: Iterable[Study], records: Sequence[Record] = ()) -> Evidence:
    """Return the evidence on these claims in the records of studies; a condition is of one study only."""
    known: list[Condition] = []
    comparisons: dict[Hashable, Any] = {}
    statements = [one for claim in claims for one in claim.statements if not one.over]
    sides = [side for one in statements for side in (one.of, one.minus) if side]
    tagged = sorted({(side["tag"], side["task"]) for side in sides if side["tag"]})
    for study in (study for study in studies if study.runs):
        whole = conditions(study.runs)
        known += rows_of(whole)
        for tag, task in tagged:  # a condition for each value of a tag that a statement names
            known += rows_of(conditions([run for run in study.runs if run.result.task == task], tag))
        for pair in rows_of(pairs(whole)):
            both = whole.loc[[pair.first, pair.second]]
            comparisons[frozenset(both["key"]), both["metric"].iloc[0]] = pair
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
    for row, q in zip(family, stats.q_values([row["p"] for row in family]), strict=True):
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
        ratio = estimate_ratio(statement, evidence.records)
        return ratio._asdict() | {"least": stats.fewest_values()} if ratio else {"verdict": NOT_RUN}
    pair = select_conditions(statement, evidence.conditions, claim.minimum_seeds)
    if not pair:
        known = all(matching(evidence.conditions, side) for side in (statement.of, statement.minus or statement.of))
        unlike = known and statement.minus
        return {"verdict": NOT_RUN, "reason": "no two runs share data and settings" if unlike else ""}
    lost = 0 if statement.metric == DIVERGED else sum(len(condition.diverged) for condition in pair)
    row = {"conditions": pair, "least": claim.minimum_seeds, "diverged": lost}
    try:
        for condition in pair if statement.instrument else ():
            if not measurements(condition, statement.instrument):
                hint = command("measure", condition.study, statement.instrument, "--save")
                return row | {"verdict": NOT_RUN, "reason": f"not measured: `{hint}`"}
        row |= estimate_statement(statement, pair)._asdict()
    except UserError as error:  # what an instrument measured can't be used
        return row | {"verdict": OPEN, "reason": str(error)}
    # what the table of the study says of which of two conditions is higher
    comparison = evidence.comparisons.get((frozenset(one.key for one in pair), statement.metric))
    if statement.compares and comparison:
        decided = comparison.significant or not comparison.tested
        row |= {"p": comparison.p, "q": comparison.q if decided else max(ALPHA, comparison.q)}
    return row


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
    sides = [side for side in (statement.of, statement.minus) if side]
    members = [[(one, distance(one, side)) for one in matching(known, side)] for side in sides]
    shared = {one.key: _shared_settings(one, statement) for own in members for one, _ in own if len(sides) > 1}
    found = [pair for pair in product(*members) if len({shared.get(one.key) for one, _ in pair}) == 1]

    def joint(pair: tuple[tuple[Condition, Any], ...]) -> tuple[object, ...]:
        differing, outdated, *_ = zip(*(far for _, far in pair), strict=True)
        return sum(differing), max(outdated), [far for _, far in pair]

    return tuple(one for one, _ in min(found, key=joint)) if found else ()


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
        sections = ("data.", "decode.", "eval.", *(BATCH_ORDER if same_preset else ()))
    changed = condition.changed.items()
    settings = frozenset((key, str(value)) for key, value in changed if key.startswith(sections) and key not in free)
    # a study compares its own conditions
    return settings, condition.study if statement.compares else ""


# What a statement is judged by: a mean over seeds, a difference of two, or a ratio of what was measured


def estimate(bounds: Bounds, measured: Interval, p: Mapping[float, float], test: str) -> Estimate:
    """Return the estimate of what was measured, given its p against each bound."""
    (low, high), mean = bounds, measured.mean
    inside = low < mean < high if math.isinf(low) or math.isinf(high) else low <= mean <= high
    violated = low if mean < low else high
    if inside or violated not in p:
        violated = max(p, key=lambda bound: 2.0 if math.isnan(p[bound]) else p[bound])  # nan counts as the largest
    return Estimate(*measured, violated, inside, p[violated], "" if math.isnan(p[violated]) else test)


def estimate_statement(statement: Statement, pair: Sequence[Condition]) -> Estimate:
    """Test one condition, or the difference of two, against a statement."""
    name, selectors = statement.instrument, (statement.of, statement.minus)
    each = [values_by_seed(condition, statement, own) for condition, own in zip(pair, selectors, strict=False)]
    step = 0.0 if name or statement.metric == DIVERGED else max(map(resolution, pair))
    if name and len({one.digest for own in pair for one in measurements(own, name).values()}) > 1:
        raise UserError(f"runs were measured by {name} with different settings")
    first = [*each[0].values()]
    if len(each) > 1:
        paired = pairing_key(pair[0]) == pairing_key(pair[1]) and each[0].keys() == each[1].keys() and len(first) > 1
        return estimate_difference(statement.bounds, first, [*each[1].values()], paired, step, not name)
    known = None if name else _equal_values(pair[0], statement.metric)
    return estimate_mean(statement.bounds, first, known, step, not name)


def estimate_mean(
    bounds: Bounds, values: Values, known: Interval | None = None, resolution: float = 0.0, percent: bool = True
) -> Estimate:
    """Test a mean against bounds; `known` is Wilson's interval where all seeds have the same result."""
    finite = [bound for bound in bounds if math.isfinite(bound)]
    # no percentage lies beyond 0 or 100, so that a bound there needs no test beside another one
    possible = [bound for bound in finite if 0 < bound < 100 or not percent] or finite
    if known:
        p = {bound: stats.score_test(known.mean / 100, known.n, bound / 100) for bound in possible}
        return estimate(bounds, known._replace(n=len(values)), p, SCORE)
    tests = {bound: stats.against(values, bound, resolution) for bound in possible}
    bound, test = next(iter(tests.items()))
    whole = Interval(bound + test.mean, bound + test.low, bound + test.high, len(values), "t")
    p = {bound: one.p for bound, one in tests.items()}
    return estimate(bounds, stats.clipped(whole) if percent else whole, p, test.method)


def estimate_difference(
    bounds: Bounds, first: Values, second: Values, paired: bool = True, resolution: float = 0.0, percent: bool = True
) -> Estimate:
    """Test a difference of means against bounds. If it is not paired, n is the smaller number of seeds."""
    x, finite = np.asarray(first, float), [bound for bound in bounds if math.isfinite(bound)]
    whole, *tests = (stats.compare(x - bound, second, paired, resolution) for bound in (0.0, *finite))
    whole = stats.clipped(whole, -100.0) if percent else whole
    n, p = min(len(first), len(second)), {bound: one.p for bound, one in zip(finite, tests, strict=True)}
    return estimate(bounds, Interval(*whole[:3], n, whole.method), p, whole.method)


def _equal_values(condition: Condition, metric: str) -> Interval | None:
    """Return the interval of a share where all seeds have the same one: Wilson's, over examples or over seeds."""
    values = list(condition.values.get(metric, {}).values())
    if metric == DIVERGED and values:  # a share of the runs
        count, share, method = len(values), sum(value > 0 for value in values) / len(values), OVER_SEEDS
    elif metric == "exact_match" and len(set(values)) == 1:
        count, share, method = condition.count, values[0] / 100, "Wilson"
    else:
        return None
    low, high = wilson(round(share * count), count)
    return Interval(100 * share, 100 * low, 100 * high, count, method)


def values_by_seed(condition: Condition, statement: Statement, selector: Selector) -> dict[int, float]:
    """Return by seed what a statement is about: a metric in percent, or what an instrument measured.

    Of an instrument it is the number of each run with a saved measurement, of the rows that a selector chooses. Rows of
    a metric of test sets, such as BLEU, are shares of 1 in the record and in percent here, as everywhere else.
    `UserError` if no measurement has such a row, or if a file is broken.
    """
    if not statement.instrument:
        return dict(condition.values.get(statement.metric, {}))
    wanted = {key.removeprefix(ROWS): value for key, value in selector.items() if key.startswith(ROWS) and key != TAKE}
    take, factor = TAKES[selector.get(TAKE, "mean")], 100 if wanted.get("metric") in METRIC_NAMES else 1
    chosen = {
        seed: [float(row[one.chart.value]) for row in one.rows() if wanted.items() <= row.items()]
        for seed, one in measurements(condition, statement.instrument).items()
    }
    if not any(chosen.values()):
        rows = ", ".join(f"{key} {value}" for key, value in wanted.items())
        raise UserError(f"{statement.instrument} has no row with {rows}")
    return {seed: factor * take(numbers) for seed, numbers in chosen.items() if numbers}


def measurements(condition: Condition, instrument: str) -> dict[int, Measurement]:
    """Return the measurements of the runs of a condition that have one, by seed."""
    runs = [run for run in condition.runs if instrument in saved_instruments(run.path)]
    return {run.result.seed: read_measurement(run.path, instrument) for run in runs}


# Ratios of what `tfstudy bench` measured


def estimate_ratio(statement: Statement, records: Sequence[Record]) -> Estimate | None:
    """Return the ratio of two records of one command with as many repeats, beside the bounds; None without records.

    Of several it is the pair with most repeats, and of these the latest.
    """
    sides = [[(one, own) for one in records if (own := _values(one, side))] for side in (statement.of, statement.over)]
    pairs = [
        ((len(a.seconds), a.machine.started), x, y)
        for (a, x), (b, y) in product(*sides)
        if a.machine == b.machine and len(a.seconds) == len(b.seconds)
    ]
    if not pairs:
        return None
    _, first, second = max(pairs, key=lambda pair: pair[0])
    each = [a / b for a, b in zip(first, second, strict=True)]
    p = {bound: stats.sign_test(each, bound) for bound in statement.bounds if math.isfinite(bound)}
    if statement.timed:
        return estimate(statement.bounds, stats.median_interval(each), p, "signs")
    return estimate(statement.bounds, Interval(each[0], each[0], each[0], 1, stats.EXACT), p, "")._replace(p=math.nan)


def _values(record: Record, selector: Selector) -> list[float]:
    """Return the values of a quantity, one for each repeat or a single exact one; empty if another setting has them."""
    model, train = (
        {key.removeprefix(section): value for key, value in selector.items() if key.startswith(section)}
        for section in BENCH_SETTINGS
    )
    names = {key: getattr(record, key) for key in ("arch", "work", "variant", *SIZES)}
    names |= {"accelerator": record.machine.accelerator}
    if not (names.items() <= selector.items() and model.items() <= record.model.items() and train == record.train):
        return []
    quantity = selector["quantity"]
    if quantity == TIME:
        return record.tokens_per_second
    own = record.flops if quantity.endswith("flops") else record
    value = getattr(own, quantity.removesuffix("_flops"), None)
    return [float(value)] if value else []
