"""`--kind learning`: training loss and validation over training steps."""

import math
from collections.abc import Sequence
from textwrap import fill
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.lines import Line2D

from tfstudy.analysis.frame import RunRecord
from tfstudy.analysis.labels import Condition
from tfstudy.errors import UserError
from tfstudy.report.plots import layout, series
from tfstudy.runs.store import read_metrics

MIN_LOSS = 1e-6  # smaller losses are drawn as this one, since the axis is logarithmic
TRAINING = "train_loss"
VALIDATION = ("validation_exact_match", "validation_loss")  # the first that was recorded is shown
NO_EXACT_MATCH = "Exact match on validation was not recorded over steps."
MEAN: dict[str, Any] = {"lw": 1.6, "zorder": 3}
ONE_SEED: dict[str, Any] = {"lw": 0.6, "alpha": 0.45}


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
    cells = [(name, metric) for name in groups for metric in metrics]
    panels = layout.panels(sheet, "Learning curves", len(cells), (2.45, 1.3), len(metrics))
    panels.label("step (optimiser updates)", "")
    for number, (axes, (name, metric)) in enumerate(zip(panels.axes, cells, strict=True)):
        is_loss, drawn = metric.endswith("loss"), [c for c in groups[name] if metric in curves[c.experiment]]
        for condition in drawn:
            own, style = curves[condition.experiment][metric], styles[condition.label]
            for seed in own if own.shape[1] > 1 else []:
                axes.plot(own[seed].dropna(), color=style.colour, ls=style.line, **ONE_SEED)
            axes.plot(mean_curve(own, is_loss), color=style.colour, ls=style.line, **MEAN)
        axes.set(xlim=(0, None), ylabel="" if number % len(metrics) else fill(name, 20))
        if is_loss:
            axes.set_yscale("log")
        if is_loss and drawn:
            layout.set_log_ticks(axes.yaxis)
        if not drawn:
            axes.set_axis_off()
        if number < len(metrics):
            words = metric.replace("_", " ").replace("train ", "training ")
            axes.set_title(panels.lines(words + (" (log)" if is_loss else " (%)")))
    legend = series.legend_handles({label: style._replace(marker="") for label, style in styles.items()}, "lines")
    if any(own.shape[1] > 1 for c in shown for own in curves[c.experiment].values()):
        legend.append(Line2D([], [], color="0.3", label="mean over seeds\n(geometric for losses)", **MEAN))
        legend.append(Line2D([], [], color="0.3", label="one seed", **ONE_SEED))
    notes = [series.run_caption(shown), *[NO_EXACT_MATCH] * (validation == "validation_loss")]

    def last_loss(condition: Condition) -> str:
        own = curves[condition.experiment].get(TRAINING)
        return "" if own is None else f"{mean_curve(own, geometric=True).iloc[-1]:.2g}"

    alt = f"Learning curves by step; the training loss at the last step, {series.describe(groups, last_loss)}."
    return panels.plot("learning", alt, legend, notes)


def mean_curve(curves: pd.DataFrame, geometric: bool) -> pd.Series:
    """Return the mean over the runs that have a value, at each step."""
    return np.exp(np.log(curves).mean(axis=1)) if geometric else curves.mean(axis=1)


def read_curves(runs: Sequence[RunRecord]) -> dict[str, pd.DataFrame]:
    """Return, by metric, the finite values in the `metrics.csv` of these runs (columns) by step (rows).

    Losses are as they are, others in percent. Unreadable lines are left out.
    """
    found = [
        (name, number, step, max(value, MIN_LOSS) if name.endswith("loss") else 100 * value)
        for number, run in enumerate(runs)
        for step, name, value in read_metrics(run.path)
        if name in (TRAINING, *VALIDATION) and math.isfinite(value)
    ]
    frame = pd.DataFrame(found, columns=["metric", "run", "step", "value"])
    return {
        str(metric): own.pivot_table(index="step", columns="run", values="value", aggfunc="last")
        for metric, own in frame.groupby("metric")
    }
