"""Plots of curves: exact match by length, training by step, results by the amount of training data."""

import math
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from tfstudy.analysis import labels
from tfstudy.analysis.frame import DEFAULT, RunRecord
from tfstudy.analysis.stats import clipped, interval, log_slope
from tfstudy.analysis.summary import AMOUNT, Condition, length_threshold, rows_of
from tfstudy.errors import UserError
from tfstudy.evaluation.breakdown import MIN_EXAMPLES, accuracy_by_length
from tfstudy.report.markup import MINUS, short_number
from tfstudy.report.plots import layout
from tfstudy.runs.schema import Lengths
from tfstudy.runs.store import read_metrics

# Length


def length(conditions: pd.DataFrame) -> layout.Plot:
    """Return exact match at every length, a panel for each split scheme, with the lengths of training shaded."""
    lengths = conditions["runs"].map(lambda runs: [one for one in map(lengths_of, runs) if one])
    frame = layout.in_panels(conditions.assign(lengths=lengths)[lengths.map(bool)], by_split=True)
    if frame.empty:
        raise UserError("no finished run measured accuracy by length: none of their examples have the tag 'length'")
    styles, trained = layout.styles_of(frame), {}
    panels = layout.panels("Exact match by length", frame["panel"].nunique())
    for axes, (name, own) in zip(panels.axes, frame.groupby("panel", sort=False), strict=True):
        ranges = {trained_range(runs) for runs in own["runs"]}
        if len(ranges) == 1 and (known := ranges.pop()):  # of all conditions
            trained[name] = f"{name} (trained on {known[0]} to {known[1]})"
            axes.axvspan(known[0] - 0.5, known[1] + 0.5, color="0.92", lw=0, zorder=0)
        for row in rows_of(own):
            layout.draw_line(axes, by_length(row.lengths), styles[row.label])
        axes.set(ylim=layout.percent_limits(own, 100))
        axes.set_title(panels.lines(str(name)))
        axes.xaxis.set_major_locator(MaxNLocator(6, integer=True))
    panels.label("length", "exact match (%)")
    seeds, legend = frame["lengths"].map(len), layout.legend_handles(styles, lines=True)
    legend += [Patch(color="0.6", alpha=0.5, lw=0, label="95 % interval over seeds")] * bool(seeds.max() > 1)
    legend += [Patch(color="0.92", lw=0, label="lengths of training")] * bool(trained)
    notes = [layout.run_caption(frame), *["One seed gives no interval."] * bool(seeds.min() == 1)]
    described = frame.assign(panel=frame["panel"].replace(trained))
    thresholds = layout.describe(described, lambda row: length_threshold(row.lengths, "L50"))
    alt = f"Exact match by length; the length up to which at least 50 % are correct, {thresholds}. {notes[0]}."
    return panels.plot("length", alt, legend, notes)


def trained_range(runs: Sequence[RunRecord]) -> tuple[int, int] | None:
    """Return the shortest and the longest length of validation, which are those of training, if they are known."""
    scores = [one for run in runs for one in run.result.splits.values() if one.role == "validation"]
    known = [int(length) for one in scores for length in one.slices.get("length", {}) if length.isdecimal()]
    return (min(known), max(known)) if known else None


def lengths_of(run: RunRecord) -> Lengths:
    """Return accuracy by length as recorded or, if it is not, by the tag `length` of all test sets."""
    tests = [scores for scores in run.result.splits.values() if scores.role == "test"]
    return run.result.lengths or accuracy_by_length(
        [one for one in tests if all(x.isdecimal() for x in one.slices.get("length", {}))]
    )


def by_length(measured: Sequence[Lengths]) -> pd.DataFrame:
    """Return the mean exact match over runs in percent with its interval, at the lengths with enough examples."""
    curve: dict[int, list[float]] = {}
    for one in measured:
        enough = min(MIN_EXAMPLES, max((part["n"] for part in one.exact_match.values()), default=0))
        for tokens, part in one.exact_match.items():
            if part["n"] >= enough:
                curve.setdefault(int(tokens), []).append(100 * part["exact_match"])
    found = {tokens: clipped(interval(values)) for tokens, values in sorted(curve.items())}
    return pd.DataFrame.from_dict(found, "index", columns=["mean", "low", "high", "n", "method"])


# Learning

MIN_LOSS = 1e-6  # smaller losses are drawn as this one, since the axis is logarithmic
TRAINING = "train_loss"
TITLES = {TRAINING: "training loss (log)", "validation_exact_match": "validation exact match (%)"}
MEAN: dict[str, Any] = {"lw": 1.6, "zorder": 3}
ONE_SEED: dict[str, Any] = {"lw": 0.6, "alpha": 0.45}


def learning(conditions: pd.DataFrame) -> layout.Plot:
    """Return training loss and exact match on validation by step, a thin line for each seed, a thick one for the mean.

    Losses are drawn on a logarithmic axis, with geometric means.
    """
    curves = read_curves(conditions.drop_duplicates("experiment"))
    frame = layout.in_panels(conditions.loc[[*dict.fromkeys(index for index, _ in curves)]], by_split=True)
    if frame.empty:
        raise UserError("no finished run has a metrics.csv with a training loss or exact match on validation")
    styles = layout.styles_of(frame)
    metrics = [metric for metric in TITLES if any(metric == own for _, own in curves)]
    cells = [(name, own, metric) for name, own in frame.groupby("panel", sort=False) for metric in metrics]
    panels = layout.panels("Learning curves", len(cells), len(metrics), ratio=0.38)
    panels.label("step (optimiser updates)", "")
    for number, (axes, (name, own, metric)) in enumerate(zip(panels.axes, cells, strict=True)):
        for row in rows_of(own):
            if (grid := curves.get((row.Index, metric))) is not None:
                look = {key: value for key, value in styles[row.label].items() if key != "marker"}
                if grid.shape[1] > 1:
                    axes.plot(grid.interpolate(limit_area="inside"), **look, **ONE_SEED)
                axes.plot(mean_curve(grid, metric), **look, **MEAN, marker="." * (len(grid) == 1))
        axes.set(xlim=(0, None), ylabel="" if number % len(metrics) else str(name))
        if not axes.lines:
            axes.set_axis_off()
        elif metric == TRAINING:
            axes.set_yscale("log")
            layout.set_log_ticks(axes.yaxis)
        if number < len(metrics):
            axes.set_title(TITLES[metric])
    legend = layout.legend_handles(styles, lines=True, markers=False)
    if any(grid.shape[1] > 1 for grid in curves.values()):
        legend.append(Line2D([], [], color="0.3", label="mean over seeds\n(geometric for losses)", **MEAN))
        legend.append(Line2D([], [], color="0.3", label="one seed", **ONE_SEED))

    def last_loss(row: Condition) -> str:
        grid = curves.get((row.Index, TRAINING))
        return "" if grid is None else f"{mean_curve(grid, TRAINING).iloc[-1]:.2g}"

    alt = f"Learning curves by step; the training loss at the last step, {layout.describe(frame, last_loss)}."
    return panels.plot("learning", alt, legend, [layout.run_caption(frame)])


def mean_curve(curves: pd.DataFrame, metric: str) -> "pd.Series[float]":
    """Return the mean over the runs that have a value, at each step: of losses the geometric mean."""
    return np.exp(np.log(curves).mean(axis=1)) if metric == TRAINING else curves.mean(axis=1)


def read_curves(conditions: pd.DataFrame) -> dict[tuple[Any, str], pd.DataFrame]:
    """Return the finite values in the `metrics.csv` of the runs, by condition (its index) and metric: steps by seeds.

    Losses are as they are, other metrics in percent. Unreadable lines are left out.
    """
    found = [
        (row.Index, metric, step, run.result.seed, max(x, MIN_LOSS) if metric == TRAINING else 100 * x)
        for row in rows_of(conditions)
        for run in row.runs
        for step, metric, x in read_metrics(run.path)
        if metric in TITLES and math.isfinite(x)
    ]
    frame = pd.DataFrame(found, columns=["condition", "metric", "step", "seed", "value"])
    return {
        (index, str(metric)): own.pivot_table("value", "step", "seed", aggfunc="last")
        for (index, metric), own in frame.groupby(["condition", "metric"], sort=False)
    }


# Data

SIZE_SUFFIX = re.compile(r"_p\d+$|_num\d+_rep\d+$")  # the end of a split's name that gives the amount of training data
FITTED = "mean over seeds; numbers: points for\nten times as many, log-linear fit [95 %]"


def data(conditions: pd.DataFrame) -> layout.Plot:
    """Return the main metric against the number of training examples: each run, means, slopes of log-linear fits."""
    runs = sized_runs(conditions)
    slopes: dict[Any, str] = {}  # by panel and label
    for key, own in runs.groupby(["panel", "label"], sort=False):
        if own["size"].nunique() > 1:
            fit = log_slope(own["size"].tolist(), own["value"].tolist())
            ends = "" if math.isnan(fit.low) else f" [{fit.low:+.1f}, {fit.high:+.1f}]"
            slopes[key] = f"{fit.mean:+.1f}{ends}".replace("-", MINUS)
    if not slopes:
        raise UserError("no two conditions differ in their number of training examples only, so no trend can be drawn")
    runs = runs[runs["panel"].isin({panel for panel, _ in slopes})]
    shown = conditions.loc[runs["condition"].unique()]
    styles, metric = layout.styles_of(runs), layout.metric_label(shown)
    panels = layout.panels("The effect of more training examples", runs["panel"].nunique())
    for axes, (panel, members) in zip(panels.axes, runs.groupby("panel", sort=False), strict=True):
        lines = {str(label): own for label, own in members.groupby("label", sort=False)}
        archs = [own["arch"].iloc[0] for label, own in lines.items() if (panel, label) in slopes]
        for label, own in lines.items():
            style, arch = styles[label], own["arch"].iloc[0]
            axes.plot(own["size"], own["value"], **style | {"ls": ""}, ms=4.5, mew=0, alpha=0.8)
            if slope := slopes.get((panel, label)):
                name, whole = arch if archs.count(arch) == 1 else label, slope.replace(" ", "\N{NO-BREAK SPACE}")
                text = panels.lines(f"{name} {whole}")
                axes.plot(own.groupby("size")["value"].mean(), **style | {"marker": ""}, lw=1.1, label=text)
        axes.legend(
            title=panels.lines(str(panel)), loc="lower left", bbox_to_anchor=(0, 1), alignment="left", handlelength=0,
            labelcolor="linecolor", handletextpad=0, borderpad=0, labelspacing=0.2, title_fontsize=layout.POINTS,
        )  # fmt: skip
        sizes = sorted(set(members["size"]))
        layout.set_sizes(axes, sizes, list(map(short_number, sizes)))
        axes.set(ylim=layout.percent_limits(shown, runs["value"].max()))
    panels.label("training examples (log)", metric)
    legend = [*layout.legend_handles(styles), Line2D([], [], color="0.4", lw=1.1, label=FITTED)]
    said = layout.join([f"{panel}: {label} {slope}" for (panel, label), slope in slopes.items()])
    alt = f"Effect of more training examples on {metric}; points gained for ten times as many, {said}."
    return panels.plot("data", alt, legend, [layout.run_caption(shown)])


def sized_runs(conditions: pd.DataFrame) -> pd.DataFrame:
    """Return each run with its `size`, its `value` in percent, the `panel` and the series (`label`) it belongs to.

    A series has the runs that differ in their amount of training data, in a preset for each amount, and in their seed.
    """
    split = [SIZE_SUFFIX.sub("_*", row.split) + row.split_label.removeprefix(row.split) for row in rows_of(conditions)]
    sizes = [max((run.result.train_examples for run in runs), default=0) for runs in conditions["runs"]]
    frame = conditions.assign(panel=split, size=sizes)
    if frame["task"].nunique() > 1:
        frame["panel"] = frame["task"] + " " + frame["panel"]
    found = []
    for (panel, arch), members in frame[frame["size"] > 0].groupby(["panel", "arch"], sort=False):
        one_preset = len(members[["size", "preset"]].drop_duplicates()) == members["size"].nunique()
        for row in rows_of(members):
            keys = {*labels.differing(row).difference(AMOUNT), labels.OUTDATED, "experiment"}
            own = {key: value for key, value in row.settings.items() if key in keys}
            label = labels.name(str(arch), DEFAULT if one_preset else row.preset, own)
            found += [
                (panel, label, arch, row.Index, run.result.train_examples, row.each_seed[run.result.seed])
                for run in row.runs
                if run.result.train_examples and run.result.seed in row.each_seed
            ]
    return pd.DataFrame(found, columns=["panel", "label", "arch", "condition", "size", "value"])
