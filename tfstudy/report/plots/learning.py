"""`--kind learning`: the training loss, and exact match or else the loss on validation, over training steps."""

import math
from collections.abc import Mapping, Sequence
from statistics import geometric_mean, mean

from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from tfstudy.analysis.collection import RunRecord
from tfstudy.analysis.conditions import Condition
from tfstudy.errors import UserError
from tfstudy.report.plots import captions, layout
from tfstudy.report.plots.grouping import group_by_split
from tfstudy.report.plots.panel_labels import label_axes, set_title
from tfstudy.report.plots.series_style import SeriesStyle, condition_styles
from tfstudy.runs.reader import read_metrics

SUPERSCRIPTS = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")
MIN_LOSS = 1e-6  # smaller losses are drawn as this one, since the axis is logarithmic
TRAINING = "train_loss"
VALIDATION = ("validation_exact_match", "validation_loss")  # the first that was recorded is shown
NO_EXACT_MATCH = "Exact match on validation was not recorded over steps."

Curve = dict[int, float]  # step to a loss, or percent
Curves = dict[str, list[Curve]]  # by metric: a curve for each run


def plot(conditions: Sequence[Condition], sheet: layout.Sheet) -> layout.Plot:
    """Return the training loss and a validation metric by step, a thin line for each seed and a thick one for the mean.

    Losses are drawn on a logarithmic axis, with geometric means.
    """
    curves = {condition.experiment: read_curves(condition.runs) for condition in conditions}
    shown = [condition for condition in conditions if curves[condition.experiment]]
    if not shown:
        raise UserError("no finished run has a metrics.csv with a training loss or a validation metric")
    groups, styles = group_by_split(shown), condition_styles(shown)
    recorded = {metric for condition in shown for metric in curves[condition.experiment]}
    validation = next((metric for metric in VALIDATION if metric in recorded), "")
    metrics = [metric for metric in (TRAINING, validation) if metric in recorded]
    notes = [captions.run_caption(shown)]
    notes += [NO_EXACT_MATCH] if validation == "validation_loss" else []
    several = any(len(own) > 1 for c in shown for own in curves[c.experiment].values())
    title, cells = "Learning curves", [(name, metric) for name in groups for metric in metrics]
    figure, panels = layout.panels(
        sheet, title, len(cells), (2.9, 1.75), len(metrics), _legend(layout.legend_handles(styles, "lines"), several),
        notes,
    )  # fmt: skip
    label_axes(panels, "step (optimiser updates)", "")
    for number, (axes, (name, metric)) in enumerate(zip(panels, cells, strict=True)):
        drawn = {c.label: curves[c.experiment][metric] for c in groups[name] if metric in curves[c.experiment]}
        _draw_panel(axes, metric, {label: (own, styles[label]) for label, own in drawn.items()})
        axes.set(ylabel="" if number % len(metrics) else name)
        if number < len(metrics):
            set_title(axes, _title(metric))
    last = captions.describe(groups, lambda c: _last_loss(curves[c.experiment]))
    return layout.Plot("learning", figure, f"Learning curves by step; the training loss at the last step, {last}.")


def _legend(handles: Sequence[Line2D], several: bool) -> list[Line2D]:
    """Return the handles of the conditions and, if there are several seeds, those of both kinds of lines."""
    for handle in handles:
        handle.set_marker("")
    kinds = ((1.6, 1.0, "mean over seeds\n(geometric for losses)"), (0.6, 0.5, "one seed")) if several else ()
    return [*handles, *(Line2D([], [], color="0.3", lw=lw, alpha=alpha, label=text) for lw, alpha, text in kinds)]


def _title(metric: str) -> str:
    name = metric.replace("_", " ").replace("train ", "training ")
    return name + (" (log)" if metric.endswith("loss") else " (%)")


def _draw_panel(axes: Axes, metric: str, series: Mapping[str, tuple[Sequence[Curve], SeriesStyle]]) -> None:
    is_loss = metric.endswith("loss")
    if is_loss:
        axes.set_yscale("log")
    for runs, style in series.values():
        for curve in runs if len(runs) > 1 else []:
            axes.plot(list(curve), list(curve.values()), color=style.colour, ls=style.line, lw=0.5, alpha=0.4)
        average = mean_curve(runs, is_loss)
        axes.plot(list(average), list(average.values()), color=style.colour, ls=style.line, lw=1.6, zorder=3)
    if is_loss:
        _set_log_ticks(axes)
    axes.set(xlim=(0, None))
    if not series:
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


def _power_of_ten(value: float, _: int | None = None) -> str:
    """Return `10⁻³`. Matplotlib's own label is mathematical text, which the theme turns off."""
    return "10" + f"{round(math.log10(value))}".translate(SUPERSCRIPTS)


def _set_log_ticks(axes: Axes) -> None:
    """Label each power of ten; on a short axis also 2 and 5 times each."""
    low, high = axes.get_ylim()
    if high / low < 50:
        axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    else:
        axes.yaxis.set_major_formatter(FuncFormatter(_power_of_ten))
    axes.yaxis.set_minor_formatter(NullFormatter())
