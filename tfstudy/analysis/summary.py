"""Conditions and how they compare, as frames.

A condition is all runs with the same configuration except the seed, evaluated on one test set: one row of a table.
Every two conditions on the same examples, with the same amount of training data, are compared over seeds. All
comparisons of a study are one family of tests, so that its tables, figures and report, and the claims that compare two
of its conditions, show the same q and interval.
"""

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from statistics import fmean, median
from typing import TYPE_CHECKING, Any

from tfstudy.analysis import labels, stats
from tfstudy.analysis.frame import DEFAULT, RunRecord, as_frame, metrics_of
from tfstudy.analysis.stats import Difference, Interval
from tfstudy.errors import one_of
from tfstudy.runs.schema import Lengths, metric_name

if TYPE_CHECKING:
    import pandas as pd

AMOUNT = ("data.train_examples", "data.train_pairs")  # of a config: the amount of training data
# of a config: what decides the order of training, with the data
BATCH_ORDER = ("train.batch_size", "train.batch_tokens", "train.batching", "train.resampled_examples")
NOT_PAIRING = ("data.root", "model.dropout")  # decide neither the initial weights nor the order of training
NAMES = ("task", "split", "corpus", "arch", "preset")
DIVERGED, OVER_LENGTHS = "diverged", "token_accuracy_over_lengths"  # metrics of a condition besides those of test sets
SHOWN = 0.05  # points: a table shows no smaller difference, so none is called significant
A_TEST_NEEDS = "a test needs 2 seeds of both conditions, and none that diverged"
Names = tuple[str, ...]
Condition = labels.Condition  # a row of `conditions`


def conditions(runs: Iterable[RunRecord], by: str = "", metric: str = "") -> "pd.DataFrame":
    """Return the conditions of these runs in the order of a table; with the tag `by`, one for each of its values.

    Columns: `task`, `split`, `corpus`, `test`, `examples` (the digest of the examples, if others have the same
    names), `tag`, `value`; `arch`, `preset`, `settings` (what distinguishes it from others with the same names, by
    key), `experiment`, `label` (unique on the same examples), `preset_label`, `split_label`; `place` (what
    identifies the examples), `amount` (of training data, as set), `family` (the examples and the amount, or where
    none is set the `train_examples`: conditions of one family are compared), `key` (unique among all studies);
    `runs` (finished, by seed), `diverged`, `config` and `changed` (its settings other than defaults, both by dotted
    key), `study` (its folder), `parameters`, `seconds` (of training, the median), `L90`, `L50`, `count` (of
    examples; `counts` if runs differ), `wilson` (the interval within the first run).

    `values` has each metric in percent by seed, with `diverged` (100 or 0) among them. Of the main metric (see
    `main_metrics`) there are `metric`, `each_seed`, and the `mean` with its 95 % interval `low`, `high` by the method
    `interval`. nan is what is unknown.

    A condition whose runs all diverged has the test sets that other runs of its split scheme have.
    """
    experiments: dict[str, list[RunRecord]] = defaultdict(list)
    evaluated: dict[Names, list[RunRecord]] = defaultdict(list)  # finished runs by task, split scheme and corpus
    digests: dict[Names, set[str]] = defaultdict(set)  # of the examples of test sets with the same names
    named: dict[Names, dict[str, RunRecord]] = defaultdict(dict)  # a run of each experiment
    for run in runs:
        r = run.result
        data = (r.task, r.split, r.corpus)
        experiments[r.experiment].append(run)
        named[*data, r.arch, r.preset or DEFAULT].setdefault(r.experiment, run)
        if run.finished:
            evaluated[data].append(run)
        for test, scores in r.splits.items():
            digests[*data, test] |= {scores.examples} - {""}  # records of older code have none
    settings = {hash_: one for own in named.values() for hash_, one in labels.distinguishing(own).items()}
    rows: list[dict[str, Any]] = []
    for hash_, members in experiments.items():
        first, r = members[0], members[0].result
        finished = sorted((run for run in members if run.finished), key=lambda run: run.result.seed)
        diverged = [run for run in members if not run.finished]
        data = (r.task, r.split, r.corpus)
        places = {  # test set and value of the tag
            (test, value): None
            for run in finished or evaluated[data]
            for test, scores in run.result.splits.items()
            if scores.role == "test"
            for value in (scores.slices.get(by, {}) if by else [""])
        }
        names: dict[str, Any] = dict(zip(NAMES, (*data, r.arch, r.preset or DEFAULT), strict=True))
        of_runs = {
            "settings": settings[hash_], "experiment": hash_, "runs": finished, "diverged": diverged,
            "study": (finished or diverged)[0].study, "config": first.settings, "changed": first.changed,
            "parameters": finished[0].result.parameters if finished else 0,
            "train_examples": min(members, key=lambda run: run.result.seed).result.train_examples,
            "seconds": median(run.result.train_seconds for run in finished) if finished else math.nan,
        }  # fmt: skip
        lost = {run.result.seed: 100.0 * (not run.finished) for run in sorted(members, key=lambda run: run.result.seed)}
        for test, value in places or ({} if by else {("test", ""): None}):
            row = names | of_runs | _measured(finished, test, by, value)
            row["values"] |= {DIVERGED: lost}
            if len(digests[*data, test]) < 2:
                row["examples"] = ""
            rows.append(row | _labels(row))
    rows.sort(key=sort_key)
    main = main_metrics(rows, metric)
    for row in rows:
        each_seed = row["values"].get(main[row["task"]], {})
        mean, low, high, _, method = mean_interval(each_seed, main[row["task"]], row["wilson"])
        row |= {"metric": main[row["task"]], "each_seed": each_seed}
        row |= {"mean": mean, "low": low, "high": high, "interval": method}
    return as_frame(rows)


def rows_of(frame: "pd.DataFrame") -> list[Any]:
    """Return the rows of a frame, with its columns as attributes and the label of the index as `Index`."""
    return list(frame.itertuples())


def _measured(runs: Sequence[RunRecord], test: str, by: str, value: str) -> dict[str, Any]:
    """Return what finished runs measured on a test set, or on its examples with a value of the tag `by`."""
    whole = {run.result.seed: scores for run in runs if (scores := run.result.splits.get(test))}
    parts = {seed: one.slices.get(by, {}).get(value) if by else one for seed, one in whole.items()}
    known = {seed: part for seed, part in parts.items() if part and part.n}
    metrics = {seed: metrics_of(part) for seed, part in known.items()}
    lengths = [run.result.lengths for run in runs if run.result.lengths and test == "test" and not by]
    counts = {part.n for part in known.values()}
    return {
        "test": test, "tag": by, "value": value, "count": max(counts, default=0), "counts": counts,
        "examples": next((one.examples for one in whole.values() if one.examples), ""),
        "wilson": next((part.exact_match_interval for part in known.values()), None),
        "L90": length_threshold(lengths, "L90"), "L50": length_threshold(lengths, "L50"),
        "values": {
            name: {seed: 100 * own[name] for seed, own in metrics.items() if name in own}
            for name in dict.fromkeys(name for own in metrics.values() for name in own)
        },
    }  # fmt: skip


def _labels(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the names of a condition, and what identifies its examples and amount of training data."""
    own, preset = labels.text(row["settings"]), row["preset"]
    place = tuple(row[key] for key in ("task", "split", "corpus", "test", "examples", "tag", "value"))
    amount = tuple(value if isinstance(value := row["config"].get(key), int) else 0 for key in AMOUNT)
    test = "" if row["test"] == "test" else row["test"].removeprefix("test_")
    return {
        "label": labels.name(row["arch"], preset, row["settings"]),
        "preset_label": f"{preset} {own}".rstrip(),
        "split_label": " ".join(filter(None, [row["split"], row["corpus"], test])),
        "place": place, "amount": amount,
        "family": (*place, *map(str, amount if any(amount) else [row["train_examples"]])),
        "key": f"{row['study']} {row['experiment']} {place}",
    }  # fmt: skip


def length_threshold(lengths: Sequence[Lengths], name: str) -> str:
    """Return the median of L90 or L50 over seeds: `>=15` if it is the longest length tested, `none` if no length is.

    The lower median is taken, so that it is known unless half of the seeds reach the longest length below it. Empty
    without lengths.
    """
    if not lengths:
        return ""
    measured = sorted((getattr(one, name) or 0, getattr(one, name) == one.longest_tested) for one in lengths)
    length, censored = measured[(len(measured) - 1) // 2]
    return "none" if not length else f">={length}" if censored else str(length)


def sort_key(row: Mapping[str, Any]) -> tuple[Any, ...]:
    """Order by split scheme, by the numbers in the names of test sets, by amount of training data, by architecture.

    Values of a tag are ordered by their size, numbers before words.
    """
    numbers, value = tuple(map(int, re.findall(r"\d+", row["test"]))), row["value"]
    size = (0, float(value), "") if re.fullmatch(r"-?\d+(\.\d+)?", value) else (1, 0.0, value)
    examples = (*(row[key] for key in ("task", "split", "corpus")), row["test"] != "test", numbers, row["test"])
    names = (row["arch"], row["preset"], labels.text(row["settings"], short=False))
    return *examples, row["examples"], size, row["amount"], *names


def main_metrics(rows: Iterable[Mapping[str, Any]], metric: str = "") -> dict[str, str]:
    """Return the metric by which each task is compared: the one given, else BLEU if measured, else its first one.

    `UserError` for a metric that was never measured.
    """
    out: dict[str, str] = {}
    every: dict[str, None] = {}
    for row in rows:
        measured = [name for name, own in row["values"].items() if own and name not in (DIVERGED, OVER_LENGTHS)]
        every |= dict.fromkeys(measured)
        if "bleu" in measured or not out.get(row["task"]):
            out[row["task"]] = "bleu" if "bleu" in measured else next(iter(measured), "")
    if metric:
        return dict.fromkeys(out, one_of("metric", metric, sorted(every)))
    return {task: first or "exact_match" for task, first in out.items()}


def mean_interval(each_seed: Mapping[int, float], metric: str, wilson: tuple[float, float] | None = None) -> Interval:
    """Return the mean in percent with its 95 % interval over seeds, between 0 and 100.

    With a single seed, or where all seeds have the same exact match, it is the interval within a run (Wilson, over its
    examples). Other metrics of a single seed have none: its ends are nan.
    """
    found = stats.interval(list(each_seed.values()))
    if len(set(each_seed.values())) == 1 and metric == "exact_match" and wilson:
        return found._replace(low=100 * wilson[0], high=100 * wilson[1], method="Wilson")
    return stats.clipped(found)


def mean_of(condition: Condition, metric: str) -> float:
    """Return the mean of any metric in percent; nan if it was not measured."""
    values = condition.values.get(metric, {}).values()
    return fmean(values) if values else math.nan


def test_set_labels(rows: Sequence[Condition]) -> dict[Names, str]:
    """Return, by `place`, the split scheme and test set, with the task and the metric if there are several of them."""
    tasks, metrics = {row.task for row in rows}, {row.metric for row in rows}
    return {
        row.place: f"{row.task} " * (len(tasks) > 1)
        + row.split_label
        + f" ({row.examples[:8]})" * bool(row.examples)
        + f", {metric_name(row.metric)}" * (len(metrics) > 1)
        for row in rows
    }


# Comparisons


def pairs(conditions: "pd.DataFrame") -> "pd.DataFrame":
    """Compare every two conditions of the same family by their main metric, in their order.

    Columns: `first` and `second`, which are labels of the index of `conditions`; `mean` (the difference), its 95 %
    interval `low`, `high`, `p` (nan if it can't be tested), `n`, `effect`, `method` (see `Difference`);
    `q` (p adjusted for all comparisons), `tested`, `significant` (q below .05, and a difference that a table shows),
    `level` (the p up to which this document decides, for the number of further seeds).

    Seeds are paired where both conditions have the same seeds and these decide the same initial weights and order of
    training, else the test is Welch's. A condition with a run that diverged is not tested: its mean would only be over
    the other runs.
    """
    import pandas as pd

    families: dict[Names, list[tuple[Condition, Any]]] = defaultdict(list)
    for row in rows_of(conditions):
        families[row.family].append((row, (pairing_key(row), row.each_seed.keys())))
    out = []
    for members in families.values():
        for (a, key), (b, other) in combinations(members, 2):
            x, y = [*a.each_seed.values()], [*b.each_seed.values()]
            whole, paired = not a.diverged and not b.diverged, key == other and len(x) > 1
            difference = stats.compare(x, y, paired, max(resolution(a), resolution(b)), whole)
            out.append({"first": a.Index, "second": b.Index} | stats.clipped(difference, -100.0)._asdict())
    frame = pd.DataFrame(out, columns=["first", "second", *Difference._fields])
    frame["q"] = stats.q_values(frame["p"].to_numpy(float))
    frame["tested"] = frame["q"].notna()
    frame["significant"] = (frame["q"] < stats.ALPHA) & (frame["mean"].abs() >= SHOWN)
    frame["level"] = stats.ALPHA * max(1, (frame["q"] < stats.ALPHA).sum()) / max(1, frame["tested"].sum())
    return frame


def pairing_key(condition: Condition) -> tuple[tuple[str, str], ...]:
    """Return the settings that decide, with the seed, the initial weights and the order of training.

    Conditions with the same key can be paired by seed. Different architectures share only the order, which does not
    make their results more similar.
    """
    changed = condition.changed
    keys = sorted(key for key in changed if key.startswith(("data.", "model.")) and key not in NOT_PAIRING)
    return (("arch", condition.arch), *((key, str(changed.get(key))) for key in (*keys, *BATCH_ORDER)))


def resolution(condition: Condition) -> float:
    """Return what one example is worth, in percent."""
    return 100 / (condition.count or 100)


def swapped(pair: Condition) -> Condition:
    """Return a row of `pairs` with its conditions in the other order."""
    opposite = {"mean": -pair.mean, "low": -pair.high, "high": -pair.low, "effect": -pair.effect}
    return pair._replace(first=pair.second, second=pair.first, **opposite)


def more_seeds(pair: Condition, each_seed: int) -> int | None:
    """Return how many more seeds an open difference of this size needs, given those of each condition now.

    More than `MAX_SEEDS` stands for any such number; None if it is decided or unknown.
    """
    if not pair.tested or pair.q < stats.ALPHA or not pair.effect or math.isnan(pair.effect):
        return None  # also of a difference that is too small for a table, which more seeds do not make larger
    needed = stats.seeds_needed(pair.effect, pair.method == "paired t", pair.level)
    return max(1, needed - each_seed) if needed else stats.MAX_SEEDS + 1


def letters(conditions: "pd.DataFrame", pairs: "pd.DataFrame") -> list[str]:
    """Return each condition's letters within its family, best first; empty if it was not tested."""
    tested, differing = pairs[pairs["tested"]], pairs[pairs["significant"]]
    known = {*tested["first"], *tested["second"]}
    ranked = [index for index in conditions.sort_values("mean", ascending=False, kind="stable").index if index in known]
    found: dict[Any, str] = {}
    for members in conditions.loc[ranked].groupby("family", sort=False).groups.values():
        own = differing[differing["first"].isin(members)]
        found |= stats.letter_groups(list(members), list(zip(own["first"], own["second"], strict=True)))
    return [found.get(index, "") for index in conditions.index]
