"""How far accuracy holds beyond the lengths of training."""

from collections.abc import Mapping, Sequence
from statistics import mean
from typing import TYPE_CHECKING

from tasks.errors import UserError
from tfstudy.analysis.conditions import Condition
from tfstudy.analysis.statistics import interval
from tfstudy.report.plots.layout import PERCENT, Picture, legend, listed, name_axes, panels
from tfstudy.report.plots.series_style import Look, looks_of
from tfstudy.report.tables import reach

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ENOUGH = 10  # examples of a length, as for L90 and L50 in tfstudy.evaluation, which would load torch
Curve = dict[int, list[float]]


def length(rows: Sequence[Condition]) -> Picture:
    """Exact match at every length, a panel an experiment; mean and 95 % interval over seeds, trained lengths shaded."""
    shown = [row for row in rows if row.test == "test" and curve(row)]
    if not shown:
        raise UserError("no run says its accuracy by length")
    held = []
    for name, members in experiments(shown).items():
        trained = trained_on(members)
        own = ", ".join(
            f"{row.label} {reach([r.result.lengths for r in row.runs if r.result.lengths], 'L50')}" for row in members
        )
        held.append(f"{name}{f' (trained on {trained[0]} to {trained[1]})' if trained else ''}: {own}")
    alt = f"Exact match by length; the length up to which at least 50 % are right, {listed(held)}."
    return Picture("length", lambda: _draw(shown), alt)


def curve(row: Condition) -> Curve:
    """Length to exact match in per cent of each run, of the lengths that have enough examples."""
    out: Curve = {}
    for run in row.runs:
        found = run.result.lengths.exact_match
        least = min(ENOUGH, max((part["n"] for part in found.values()), default=0))
        for text, part in found.items():
            if part["n"] >= least:
                out.setdefault(int(text), []).append(100 * part["exact_match"])
    return dict(sorted(out.items()))


def trained_on(rows: Sequence[Condition]) -> tuple[int, int] | None:
    """The shortest and longest length of the validation split, which is in distribution; None if there is none."""
    parts = [run.result.splits["validation"] for row in rows for run in row.runs if "validation" in run.result.splits]
    lengths = [int(value) for part in parts for value in part.by.get("length", {})]
    return (min(lengths), max(lengths)) if lengths else None


def experiments(rows: Sequence[Condition]) -> dict[str, list[Condition]]:
    """The rows of each experiment, whatever they are tested on."""
    several = len({row.task for row in rows}) > 1
    out: dict[str, list[Condition]] = {}
    for row in rows:
        out.setdefault(f"{row.task} {row.split}" if several else row.split, []).append(row)
    return out


def _draw(rows: Sequence[Condition]) -> "Figure":
    from matplotlib.patches import Patch

    found, looks = experiments(rows), looks_of(rows)
    figure, axes = panels(len(found), "Exact match by length", [*looks, "95 % interval over seeds"])
    for one, (name, members) in zip(axes, found.items(), strict=True):
        _panel(one, members, looks)
        one.set_title(name)
    name_axes(axes, "length (as the task counts it)", "exact match (%)")
    several = any(len(row.runs) > 1 for row in rows)
    bands = [Patch(color="0.6", alpha=0.5, lw=0, label="95 % interval over seeds")] if several else []
    legend(figure, looks, [*bands, Patch(color="0.92", lw=0, label="lengths trained on")], "lines")
    return figure


def _panel(axes: "Axes", rows: Sequence[Condition], looks: Mapping[str, Look]) -> None:
    from matplotlib.ticker import MaxNLocator

    if trained := trained_on(rows):
        axes.axvspan(trained[0] - 0.5, trained[1] + 0.5, color="0.92", lw=0, zorder=0)
    for number, row in enumerate(rows):
        points, look = curve(row), looks[row.label]
        width = 1.2 + 0.8 * max(0, min(len(rows), 4) - 1 - number)  # of equal curves all are seen
        marker = look.marker if len(points) <= 25 else ""
        means = [mean(values) for values in points.values()]
        axes.plot(
            list(points), means, color=look.colour, ls=look.line, lw=width, marker=marker, ms=3.5, mec="white", mew=0.4
        )
        band(axes, points, look.colour)
    axes.set(ylim=PERCENT)
    axes.xaxis.set_major_locator(MaxNLocator(6, integer=True))


def band(axes: "Axes", points: Mapping[int, Sequence[float]], colour: str) -> None:
    """The 95 % interval over seeds, in per cent, where there are several."""
    several = [place for place, values in points.items() if len(values) > 1]
    ends = [interval(points[place]) for place in several]
    low, high = [max(0.0, end.low) for end in ends], [min(100.0, end.high) for end in ends]
    axes.fill_between(several, low, high, color=colour, alpha=0.18, lw=0)
