"""`--kind length`, `--kind learning`: accuracy by length in and beyond training, and curves over training steps."""

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from statistics import geometric_mean, mean
from typing import Any, NamedTuple

from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

from tfstudy.analysis.frame import RunRecord
from tfstudy.analysis.labels import Condition
from tfstudy.analysis.stats import clipped, interval
from tfstudy.analysis.summary import length_threshold
from tfstudy.errors import UserError
from tfstudy.evaluation.breakdown import MIN_EXAMPLES, accuracy_by_length
from tfstudy.report.plots import layout, series
from tfstudy.runs.schema import Lengths
from tfstudy.runs.store import read_metrics

NO_INTERVAL = "One seed gives no interval."
ALTERNATING = "Where lines coincide, their colours alternate."
TOLERANCE = 0.5  # curves that are closer than this coincide
DASH = 3.5  # length of a dash of one colour where curves coincide, in line widths
MAX_MARKERS = 25  # longer curves have none
SUPERSCRIPTS = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")
MIN_LOSS = 1e-6  # smaller losses are drawn as this one, since the axis is logarithmic
TRAINING = "train_loss"
VALIDATION = ("validation_exact_match", "validation_loss")  # the first that was recorded is shown
NO_EXACT_MATCH = "Exact match on validation was not recorded over steps."

Points = Mapping[int, Sequence[float]]  # the value of each seed at each x
Curve = dict[int, float]  # step to a loss, or percent
Curves = dict[str, list[Curve]]  # by metric: a curve for each run


# Accuracy by length


def length(conditions: Sequence[Condition], sheet: layout.Sheet) -> layout.Plot:
    """Return exact match at every length, a panel for each split scheme, with the lengths of training shaded."""
    recorded = {condition.task for condition in conditions for run in condition.runs if run.result.lengths}
    measured = {c.experiment: [one for run in c.runs if (one := lengths_of(run, recorded))] for c in conditions}
    shown = [condition for condition in conditions if measured[condition.experiment]]
    if not shown:
        raise UserError("no finished run measured accuracy by length: none of their examples have the tag 'length'")
    groups, styles = series.group_by_split(shown), series.condition_styles(shown)
    trained = {name: trained_range(members) for name, members in groups.items()}
    legend, seeds = series.legend_handles(styles, "lines"), [len(measured[c.experiment]) for c in shown]
    if max(seeds) > 1:
        legend.append(Patch(color="0.6", alpha=0.5, lw=0, label="95 % interval over seeds"))
    if any(trained.values()):
        legend.append(Patch(color="0.92", lw=0, label="lengths of training"))
    curves = {
        name: [(by_length(measured[c.experiment]), styles[c.label]) for c in members]
        for name, members in groups.items()
    }
    notes = [series.run_caption(shown), *([NO_INTERVAL] if min(seeds) == 1 else [])]
    notes += [ALTERNATING] if any(coincide([points for points, _ in own]) for own in curves.values()) else []
    figure, panels = layout.panels(sheet, "Exact match by length", len(groups), legend=legend, notes=notes)
    for axes, name in zip(panels, groups, strict=True):
        if ends := trained[name]:
            axes.axvspan(ends[0] - 0.5, ends[1] + 0.5, color="0.92", lw=0, zorder=0)
        draw_percentages(axes, curves[name])
        axes.set(ylim=layout.PERCENT)
        layout.set_title(axes, name)
        axes.xaxis.set_major_locator(MaxNLocator(6, integer=True))
    layout.label_axes(panels, "length", "exact match (%)")
    ranges = {name: f" (trained on {ends[0]} to {ends[1]})" if ends else "" for name, ends in trained.items()}
    described = {f"{name}{ranges[name]}": members for name, members in groups.items()}
    thresholds = series.describe(described, lambda c: length_threshold(measured[c.experiment], "L50"))
    alt = f"Exact match by length; the length up to which at least 50 % are correct, {thresholds}."
    return layout.Plot("length", figure, f"{alt} {notes[0]}.")


def lengths_of(run: RunRecord, recorded: set[str]) -> Lengths:
    """Return accuracy by length as recorded or, for tasks that record none, by the tag `length` of all test sets."""
    if run.result.task in recorded:
        return run.result.lengths
    tests = [scores for scores in run.result.splits.values() if scores.role == "test"]
    numeric = [scores for scores in tests if all(value.isdecimal() for value in scores.slices.get("length", {}))]
    return accuracy_by_length(numeric)


def trained_range(conditions: Sequence[Condition]) -> tuple[int, int] | None:
    """Return the smallest and largest length in validation, which is in distribution; None without tags."""
    splits = [run.result.splits.get("validation") for condition in conditions for run in condition.runs]
    known = [
        int(value) for scores in splits if scores for value in scores.slices.get("length", {}) if value.isdecimal()
    ]
    return (min(known), max(known)) if known else None


def by_length(measured: Sequence[Lengths]) -> dict[int, list[float]]:
    """Return the exact match of each run in percent, by length, for the lengths that have enough examples."""
    curve: dict[int, list[float]] = {}
    for one in measured:
        enough = min(MIN_EXAMPLES, max((part["n"] for part in one.exact_match.values()), default=0))
        for tokens, part in one.exact_match.items():
            if part["n"] >= enough:
                curve.setdefault(int(tokens), []).append(100 * part["exact_match"])
    return dict(sorted(curve.items()))


# Curves of several series in one panel, visible even where they coincide


class Stretch(NamedTuple):
    """A part of a curve on which the same other curves coincide with it."""

    x: list[int]
    curves: tuple[int, ...]  # that coincide, including itself


def draw_percentages(axes: Axes, curves: Sequence[tuple[Points, series.SeriesStyle]]) -> None:
    """Draw the mean over seeds and, of several seeds, a band for its 95 % interval.

    Where curves coincide, their colours alternate.
    """
    means = [_means(points) for points, _ in curves]
    for number, (points, style) in enumerate(curves):
        if any(len(values) > 1 for values in points.values()):
            ends = [clipped(interval(values)) for values in points.values()]
            low, high = [end.low for end in ends], [end.high for end in ends]
            axes.fill_between(list(points), low, high, color=style.colour, alpha=0.18, lw=0)
        own, parts = means[number], stretches(means, number)
        common = any(len(part.curves) > 1 for part in parts)
        line: dict[str, Any] = {"color": style.colour, "lw": 1.4, "ls": "none" if common else style.line}
        if len(own) <= MAX_MARKERS:  # curves with the same value take turns in having a marker
            same = [_coinciding(means, number, x) for x in own]
            turns = [at for at, x in enumerate(own) if same[at][sorted(own).index(x) % len(same[at])] == number]
            line |= {"marker": style.marker, "ms": 3.5, "mec": "white", "mew": 0.4, "markevery": turns}
        axes.plot(list(own), list(own.values()), zorder=3, **line)
        for part in parts if common else []:
            rank, count = part.curves.index(number), len(part.curves)
            dashes = (DASH * (count - rank), (DASH, DASH * (count - 1))) if count > 1 else style.line
            axes.plot(part.x, [own[x] for x in part.x], color=style.colour, lw=1.4, ls=dashes, zorder=2.5)


def coincide(curves: Sequence[Points]) -> bool:
    """Whether any two curves coincide on some part."""
    means = [_means(points) for points in curves]
    return any(len(stretch.curves) > 1 for number in range(len(means)) for stretch in stretches(means, number))


def _means(points: Points) -> dict[int, float]:
    return {x: mean(values) for x, values in points.items()}


def stretches(curves: Sequence[Mapping[int, float]], number: int) -> list[Stretch]:
    """Return the parts of a curve, in their order, each with the curves that coincide on it."""
    out: list[Stretch] = []
    for start, end in pairwise(curves[number]):
        same = tuple(sorted(set(_coinciding(curves, number, start)) & set(_coinciding(curves, number, end))))
        if out and out[-1].curves == same:
            out[-1].x.append(end)
        else:
            out.append(Stretch([start, end], same))
    return out


def _coinciding(curves: Sequence[Mapping[int, float]], number: int, x: int) -> list[int]:
    """Return the curves that have this curve's value at x, itself included."""
    own = curves[number][x]
    return [other for other, curve in enumerate(curves) if x in curve and abs(curve[x] - own) <= TOLERANCE]


# Curves over training steps


def learning(conditions: Sequence[Condition], sheet: layout.Sheet) -> layout.Plot:
    """Return the training loss and a validation metric by step, a thin line for each seed and a thick one for the mean.

    Losses are drawn on a logarithmic axis, with geometric means.
    """
    curves = {condition.experiment: read_curves(condition.runs) for condition in conditions}
    shown = [condition for condition in conditions if curves[condition.experiment]]
    if not shown:
        raise UserError("no finished run has a metrics.csv with a training loss or a validation metric")
    groups, styles = series.group_by_split(shown), series.condition_styles(shown)
    recorded = {metric for condition in shown for metric in curves[condition.experiment]}
    validation = next((metric for metric in VALIDATION if metric in recorded), "")
    metrics = [metric for metric in (TRAINING, validation) if metric in recorded]
    notes = [series.run_caption(shown), *([NO_EXACT_MATCH] if validation == "validation_loss" else [])]
    legend = series.legend_handles({label: style._replace(marker="") for label, style in styles.items()}, "lines")
    if any(len(own) > 1 for c in shown for own in curves[c.experiment].values()):
        for width, alpha, text in ((1.6, 1.0, "mean over seeds\n(geometric for losses)"), (0.6, 0.5, "one seed")):
            legend.append(Line2D([], [], color="0.3", lw=width, alpha=alpha, label=text))
    cells = [(name, metric) for name in groups for metric in metrics]
    figure, panels = layout.panels(sheet, "Learning curves", len(cells), (2.9, 1.75), len(metrics), legend, notes)
    layout.label_axes(panels, "step (optimiser updates)", "")
    for number, (axes, (name, metric)) in enumerate(zip(panels, cells, strict=True)):
        drawn = {c.label: curves[c.experiment][metric] for c in groups[name] if metric in curves[c.experiment]}
        _draw_learning(axes, metric, drawn, styles)
        axes.set(ylabel="" if number % len(metrics) else name)
        if number < len(metrics):
            words = metric.replace("_", " ").replace("train ", "training ")
            layout.set_title(axes, words + (" (log)" if metric.endswith("loss") else " (%)"))
    last = series.describe(groups, lambda c: _last_loss(curves[c.experiment]))
    return layout.Plot("learning", figure, f"Learning curves by step; the training loss at the last step, {last}.")


def _draw_learning(axes: Axes, metric: str, drawn: Mapping[str, Sequence[Curve]], styles: series.Styles) -> None:
    is_loss = metric.endswith("loss")
    if is_loss:
        axes.set_yscale("log")
    for label, runs in drawn.items():
        look: dict[str, Any] = {"color": styles[label].colour, "ls": styles[label].line}
        for curve in runs if len(runs) > 1 else []:
            axes.plot(list(curve), list(curve.values()), **look, lw=0.5, alpha=0.4)
        average = mean_curve(runs, is_loss)
        axes.plot(list(average), list(average.values()), **look, lw=1.6, zorder=3)
    if is_loss:
        _set_log_ticks(axes)
    axes.set(xlim=(0, None))
    if not drawn:
        axes.set_axis_off()


def mean_curve(runs: Sequence[Curve], geometric: bool) -> Curve:
    """Return the mean over the runs that have a value, at each step."""
    average = geometric_mean if geometric else mean
    steps = sorted({step for curve in runs for step in curve})
    return {step: average([curve[step] for curve in runs if step in curve]) for step in steps}


def _last_loss(curves: Curves) -> str:
    average = mean_curve(curves.get(TRAINING, []), geometric=True)
    return f"{average[max(average)]:.2g}" if average else ""


def read_curves(runs: Sequence[RunRecord]) -> Curves:
    """Return the finite values in the `metrics.csv` of these runs; unreadable lines are left out."""
    curves: Curves = {}
    for run in runs:
        entries = read_metrics(run.path)
        for metric in (TRAINING, *VALIDATION):
            own = {step: value for step, name, value in entries if name == metric and math.isfinite(value)}
            if own:
                is_loss = metric.endswith("loss")
                scaled = {step: max(value, MIN_LOSS) if is_loss else 100 * value for step, value in own.items()}
                curves.setdefault(metric, []).append(scaled)
    return curves


def _set_log_ticks(axes: Axes) -> None:
    """Label each power of ten; on a short axis also 2 and 5 times each."""
    low, high = axes.get_ylim()
    if high / low < 50:
        axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    else:  # matplotlib's own label is mathematical text, which the theme turns off
        power = FuncFormatter(lambda value, _: "10" + f"{round(math.log10(value))}".translate(SUPERSCRIPTS))
        axes.yaxis.set_major_formatter(power)
    axes.yaxis.set_minor_formatter(NullFormatter())
