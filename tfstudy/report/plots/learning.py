"""How training went: losses and validation metrics by step."""

import csv
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from tasks.errors import UserError
from tfstudy.analysis.collection import RunRecord
from tfstudy.analysis.conditions import Condition
from tfstudy.analysis.statistics import interval
from tfstudy.report.plots.layout import Picture, beside, canvas, legend, listed
from tfstudy.report.plots.lengths import experiments
from tfstudy.report.plots.series_style import Look, looks_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LEAST = 1e-6  # of a loss, so that it has a logarithm
Curves = dict[str, dict[int, list[float]]]  # metric and step to the value of each run


def learning(rows: Sequence[Condition]) -> Picture:
    """The training loss and the validation metrics by step, mean and 95 % interval over seeds.

    A loss is drawn on a logarithmic axis, so its mean is the geometric one.
    """
    once = list({(row.task, row.split, row.label): row for row in rows if row.runs}.values())
    curves = {id(row): curves_of(row.runs) for row in once}
    shown = [row for row in once if curves[id(row)]]
    if not shown:
        raise UserError("no finished run has metrics.csv with a training loss or a validation metric")
    ends = []
    for name, members in experiments(shown).items():
        last = [(row.label, curves[id(row)].get("train_loss", {})) for row in members]
        own = [f"{label} {_middle('train_loss', points[max(points)])[0]:.2g}" for label, points in last if points]
        ends += [f"{name}: {', '.join(own)}"] if own else []
    alt = f"Learning curves by step; the training loss at the last step, {listed(ends)}."
    return Picture("learning", lambda: _draw(shown, curves), alt)


def curves_of(runs: Sequence[RunRecord]) -> Curves:
    """The curves of these runs' `metrics.csv`; figures that are not finite are left out.

    `UserError` for a file that holds anything but steps, names and numbers.
    """
    out: Curves = {}
    for run in runs:
        path = run.path / "metrics.csv"
        try:
            lines = list(csv.reader(path.read_text(encoding="utf-8").splitlines()))[1:]
            found = [(int(step), metric, float(value)) for step, metric, value in lines]
        except FileNotFoundError:
            continue
        except (OSError, ValueError) as error:
            raise UserError(f"{path} can't be read: {error}") from None
        for step, metric, value in found:
            if (metric == "train_loss" or metric.startswith("validation_")) and math.isfinite(value):
                out.setdefault(metric, {}).setdefault(step, []).append(value)
    return out


def _draw(rows: Sequence[Condition], curves: Mapping[int, Curves]) -> "Figure":
    found, looks = experiments(rows), looks_of(rows)
    metrics = list(dict.fromkeys(metric for row in rows for metric in curves[id(row)]))
    width = 0.6 + 2.5 * len(metrics) + beside(looks)
    figure = canvas(width, 0.8 + 1.7 * len(found), "Learning curves: mean and 95 % interval over seeds")
    grid = figure.subplots(len(found), len(metrics), squeeze=False)
    for line, (name, members) in zip(grid, found.items(), strict=True):
        for axes, metric in zip(line, metrics, strict=True):
            drawn = [row for row in members if metric in curves[id(row)]]
            for row in drawn:
                _curve(axes, metric, curves[id(row)][metric], looks[row.label])
            axes.set(xlim=(0, None))
            if metric.endswith("loss"):
                _logarithmic(axes)
            if not drawn:
                axes.set_axis_off()
        line[0].set_ylabel(name)
    for axes, metric in zip(grid[0], metrics, strict=True):
        axes.set_title(metric.replace("_", " ") + (" (log)" if metric.endswith("loss") else " (%)"))
    for axes in grid[-1]:
        axes.set_xlabel("step (optimiser updates)")
    legend(figure, looks, kind="lines")
    return figure


def _curve(axes: "Axes", metric: str, points: Mapping[int, Sequence[float]], look: Look) -> None:
    steps = sorted(points)
    found = {step: _middle(metric, points[step]) for step in steps}
    marker = look.marker if len(steps) <= 25 else ""
    axes.plot(steps, [found[step][0] for step in steps], color=look.colour, ls=look.line, lw=1.3, marker=marker, ms=3)
    several = [step for step in steps if len(points[step]) > 1]
    low, high = [found[step][1] for step in several], [found[step][2] for step in several]
    axes.fill_between(several, low, high, color=look.colour, alpha=0.18, lw=0)


def _middle(metric: str, values: Sequence[float]) -> tuple[float, float, float]:
    """The mean over seeds and the ends of its interval: geometric for a loss, in per cent for a share."""
    if metric.endswith("loss"):
        found = interval([math.log(max(value, LEAST)) for value in values])
        return math.exp(found.mean), math.exp(found.low), math.exp(found.high)
    found = interval([100 * value for value in values])
    return found.mean, max(0.0, found.low), min(100.0, found.high)


def _logarithmic(axes: "Axes") -> None:
    """With a tick at each power of ten, or at 1, 2 and 5 of each where these are few."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axes.set_yscale("log")
    low, high = axes.get_ylim()
    if high / low < 50:
        axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.yaxis.set_minor_formatter(NullFormatter())
