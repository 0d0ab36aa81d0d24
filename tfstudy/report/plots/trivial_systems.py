"""The results of trivial systems, such as copying the source, as lines through the rows of a plot."""

from collections.abc import Mapping, Sequence
from statistics import mean
from typing import Any

from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from tfstudy.analysis.conditions import Condition
from tfstudy.runs.schema import SplitScores

LINES = (":", "--", "-.")
HALF = 0.1  # inches: of the height of a line
COLOUR = "0.45"


def trivial_results(condition: Condition, metric: str) -> dict[str, float]:
    """Return the metric of each trivial system on the condition's test set in percent, the mean over its runs."""
    found: dict[str, list[float]] = {}
    for scores in condition.results_by_seed().values():
        for name, metrics in scores.baselines.items() if isinstance(scores, SplitScores) else ():
            if metric in metrics:
                found.setdefault(name, []).append(100 * metrics[metric])
    return {name: mean(values) for name, values in found.items()}


def line_styles(results: Sequence[Mapping[str, float]]) -> dict[str, dict[str, Any]]:
    """Return the style of each system's line, in the order in which the systems were recorded."""
    names = dict.fromkeys(name for own in results for name in own)
    return {name: {"color": COLOUR, "ls": LINES[i % len(LINES)], "lw": 1.1} for i, name in enumerate(names)}


def draw_lines(axes: Axes, results: Mapping[str, float], level: float, styles: Mapping[str, dict[str, Any]]) -> None:
    """Draw the line of each system through the row at this height."""
    for name, value in results.items():
        axes.plot([value, value], [level - HALF, level + HALF], **styles[name], zorder=2)


def line_handles(styles: Mapping[str, dict[str, Any]]) -> list[Line2D]:
    """Return the legend handles of the lines."""
    return [Line2D([], [], label=f"trivial system: {name}", **style) for name, style in styles.items()]
