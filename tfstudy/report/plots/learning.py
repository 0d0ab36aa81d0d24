"""`--kind learning`: losses and validation metrics over training steps."""

import csv
import math
from collections.abc import Sequence
from statistics import geometric_mean

from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from tasks.errors import UserError
from tfstudy.analysis.collection import RunRecord
from tfstudy.analysis.conditions import Condition
from tfstudy.report.plots import layout
from tfstudy.report.plots.series_style import condition_styles

MIN_LOSS = 1e-6  # smaller losses are drawn as this one, since the axis is logarithmic
Curves = dict[str, dict[int, list[float]]]  # metric and step to the value of each run: a loss, or percent


def plot(conditions: Sequence[Condition]) -> layout.Plot:
    """Return the training loss and the validation metrics by step: mean and 95 % interval over seeds.

    Losses are drawn on a logarithmic axis, with geometric means.
    """
    curves = {condition.experiment: read_curves(condition.runs) for condition in conditions}
    shown = [condition for condition in conditions if curves[condition.experiment]]
    if not shown:
        raise UserError("no finished run has a metrics.csv with a training loss or a validation metric")
    groups, styles = layout.group_by_split(shown), condition_styles(shown)
    metrics = list(dict.fromkeys(metric for condition in shown for metric in curves[condition.experiment]))
    title, cells = "Learning curves: mean and 95 % interval over seeds", [(n, m) for n in groups for m in metrics]
    legend = layout.legend_handles(styles, "lines")
    figure, panels = layout.panels(title, len(cells), (2.5, 1.75), len(metrics), legend)
    layout.label_axes(panels, "step (optimiser updates)", "")
    for number, (axes, (name, metric)) in enumerate(zip(panels, cells, strict=True)):
        if metric.endswith("loss"):
            axes.set_yscale("log")
        drawn = [condition for condition in groups[name] if metric in curves[condition.experiment]]
        for condition in drawn:
            points, style = curves[condition.experiment][metric], styles[condition.label]
            layout.draw_curve(axes, points, style, percent=not metric.endswith("loss"))
        if metric.endswith("loss"):
            _set_log_ticks(axes)
        axes.set(xlim=(0, None), ylabel="" if number % len(metrics) else name)
        if number < len(metrics):
            axes.set_title(metric.replace("_", " ") + (" (log)" if metric.endswith("loss") else " (%)"))
        if not drawn:
            axes.set_axis_off()

    def last_loss(condition: Condition) -> str:
        points = curves[condition.experiment].get("train_loss")
        return f"{geometric_mean(points[max(points)]):.2g}" if points else ""

    alt = f"Learning curves by step; the training loss at the last step, {layout.describe(groups, last_loss)}."
    return layout.Plot("learning", figure, alt)


def read_curves(runs: Sequence[RunRecord]) -> Curves:
    """Return the finite values in the `metrics.csv` of these runs; `UserError` for a file that is not such a table."""
    curves: Curves = {}
    for run in runs:
        path = run.path / "metrics.csv"
        try:
            lines = list(csv.reader(path.read_text(encoding="utf-8").splitlines()))[1:]
            entries = [(int(step), metric, float(value)) for step, metric, value in lines]
        except FileNotFoundError:
            continue
        except (OSError, ValueError) as error:
            raise UserError(f"cannot read {path}: {error}") from None
        for step, metric, value in entries:
            if (metric == "train_loss" or metric.startswith("validation_")) and math.isfinite(value):
                scaled = max(value, MIN_LOSS) if metric.endswith("loss") else 100 * value
                curves.setdefault(metric, {}).setdefault(step, []).append(scaled)
    return curves


def _set_log_ticks(axes: Axes) -> None:
    """Label each power of ten; on a short axis also 2 and 5 times each."""
    low, high = axes.get_ylim()
    if high / low < 50:
        axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.yaxis.set_minor_formatter(NullFormatter())
