"""`--kind length`: how accuracy changes with length, in and beyond the lengths of training."""

from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from tasks.errors import UserError
from tfstudy.analysis.collection import RunRecord
from tfstudy.analysis.conditions import Condition
from tfstudy.evaluation import lengths
from tfstudy.report.plots import layout
from tfstudy.report.plots.series_style import Styles, condition_styles
from tfstudy.report.tables import length_threshold
from tfstudy.runs.schema import Lengths

Measured = Mapping[str, Sequence[Lengths]]  # experiment to what each run measured


def plot(conditions: Sequence[Condition]) -> layout.Plot:
    """Return exact match at every length, a panel for each split scheme, with the lengths of training shaded."""
    recorded = {condition.task for condition in conditions for run in condition.runs if run.result.lengths}
    measured = {c.experiment: [one for run in c.runs if (one := lengths_of(run, recorded))] for c in conditions}
    shown = [condition for condition in conditions if measured[condition.experiment]]
    if not shown:
        raise UserError("no finished run measured accuracy by length: none of their examples have the tag 'length'")
    groups, styles = layout.group_by_split(shown), condition_styles(shown)
    legend = layout.legend_handles(styles, "lines")
    if any(len(members) > 1 for members in measured.values()):
        legend.append(Patch(color="0.6", alpha=0.5, lw=0, label="95 % interval over seeds"))
    trained = {name: layout.trained_range(members, "length") for name, members in groups.items()}
    if any(trained.values()):
        legend.append(Patch(color="0.92", lw=0, label="lengths of training"))
    figure, panels = layout.panels("Exact match by length", len(groups), legend=legend)
    for axes, (name, members) in zip(panels, groups.items(), strict=True):
        if ends := trained[name]:
            axes.axvspan(ends[0] - 0.5, ends[1] + 0.5, color="0.92", lw=0, zorder=0)
        _draw_panel(axes, members, measured, styles)
        axes.set_title(name)
    layout.label_axes(panels, "length (as the task defines it)", "exact match (%)")
    ranges = {name: f" (trained on {ends[0]} to {ends[1]})" if ends else "" for name, ends in trained.items()}
    described = {f"{name}{ranges[name]}": members for name, members in groups.items()}
    thresholds = layout.describe(described, lambda c: length_threshold(measured[c.experiment], "L50"))
    alt = f"Exact match by length; the length up to which at least 50 % are correct, {thresholds}."
    return layout.Plot("length", figure, alt)


def lengths_of(run: RunRecord, recorded: set[str]) -> Lengths:
    """Return accuracy by length as recorded or, for tasks that record none, by the tag `length` of all test sets."""
    if run.result.task in recorded:
        return run.result.lengths
    tests = [scores for scores in run.result.splits.values() if scores.role == "test"]
    numeric = [scores for scores in tests if all(value.isdecimal() for value in scores.slices.get("length", {}))]
    return lengths.accuracy_by_length(numeric)


def mean_curve(measured: Sequence[Lengths]) -> dict[int, list[float]]:
    """Return the exact match of each run in percent, by length, for the lengths that have enough examples."""
    curve: dict[int, list[float]] = {}
    for one in measured:
        enough = min(lengths.MIN_EXAMPLES, max((part["n"] for part in one.exact_match.values()), default=0))
        for length, part in one.exact_match.items():
            if part["n"] >= enough:
                curve.setdefault(int(length), []).append(100 * part["exact_match"])
    return dict(sorted(curve.items()))


def _draw_panel(axes: Axes, conditions: Sequence[Condition], measured: Measured, styles: Styles) -> None:
    for number, condition in enumerate(conditions):
        width = 1.2 + 0.8 * max(0, min(len(conditions), 4) - 1 - number)  # so that equal curves are all visible
        curve = mean_curve(measured[condition.experiment])
        layout.draw_curve(axes, curve, styles[condition.label], percent=True, width=width)
    axes.set(ylim=layout.PERCENT)
    axes.xaxis.set_major_locator(MaxNLocator(6, integer=True))
