"""`--kind length`: how accuracy changes with length, in and beyond the lengths of training."""

from collections.abc import Mapping, Sequence

from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from tfstudy.analysis.collection import RunRecord
from tfstudy.analysis.conditions import Condition
from tfstudy.errors import UserError
from tfstudy.evaluation import lengths
from tfstudy.report.plots import captions, layout
from tfstudy.report.plots.curves import coincide, draw_percentages
from tfstudy.report.plots.grouping import group_by_split, trained_range
from tfstudy.report.plots.panel_labels import label_axes, set_title
from tfstudy.report.plots.series_style import condition_styles
from tfstudy.report.table_lines import length_threshold
from tfstudy.runs.schema import Lengths

Measured = Mapping[str, Sequence[Lengths]]  # experiment to what each run measured
NO_INTERVAL = "One seed gives no interval."
ALTERNATING = "Where lines coincide, their colours alternate."


def plot(conditions: Sequence[Condition], sheet: layout.Sheet) -> layout.Plot:
    """Return exact match at every length, a panel for each split scheme, with the lengths of training shaded."""
    recorded = {condition.task for condition in conditions for run in condition.runs if run.result.lengths}
    measured = {c.experiment: [one for run in c.runs if (one := lengths_of(run, recorded))] for c in conditions}
    shown = [condition for condition in conditions if measured[condition.experiment]]
    if not shown:
        raise UserError("no finished run measured accuracy by length: none of their examples have the tag 'length'")
    groups, styles = group_by_split(shown), condition_styles(shown)
    trained = {name: trained_range(members, "length") for name, members in groups.items()}
    legend, seeds = layout.legend_handles(styles, "lines"), [len(measured[c.experiment]) for c in shown]
    if max(seeds) > 1:
        legend.append(Patch(color="0.6", alpha=0.5, lw=0, label="95 % interval over seeds"))
    if any(trained.values()):
        legend.append(Patch(color="0.92", lw=0, label="lengths of training"))
    curves = {
        name: [(mean_curve(measured[c.experiment]), styles[c.label]) for c in members]
        for name, members in groups.items()
    }
    notes = [captions.run_caption(shown), *([NO_INTERVAL] if min(seeds) == 1 else [])]
    notes += [ALTERNATING] if any(coincide([points for points, _ in own]) for own in curves.values()) else []
    figure, panels = layout.panels(sheet, "Exact match by length", len(groups), legend=legend, notes=notes)
    for axes, name in zip(panels, groups, strict=True):
        if ends := trained[name]:
            axes.axvspan(ends[0] - 0.5, ends[1] + 0.5, color="0.92", lw=0, zorder=0)
        draw_percentages(axes, curves[name])
        axes.set(ylim=layout.PERCENT)
        set_title(axes, name)
        axes.xaxis.set_major_locator(MaxNLocator(6, integer=True))
    label_axes(panels, "length", "exact match (%)")
    ranges = {name: f" (trained on {ends[0]} to {ends[1]})" if ends else "" for name, ends in trained.items()}
    described = {f"{name}{ranges[name]}": members for name, members in groups.items()}
    thresholds = captions.describe(described, lambda c: length_threshold(measured[c.experiment], "L50"))
    alt = f"Exact match by length; the length up to which at least 50 % are correct, {thresholds}."
    return layout.Plot("length", figure, f"{alt} {notes[0]}.")


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
