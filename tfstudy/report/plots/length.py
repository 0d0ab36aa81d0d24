"""`--kind length`: exact match at every length, in and beyond training."""

from collections.abc import Sequence

import pandas as pd
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from tfstudy.analysis.frame import RunRecord
from tfstudy.analysis.labels import Condition
from tfstudy.analysis.stats import clipped, interval
from tfstudy.analysis.summary import length_threshold
from tfstudy.errors import UserError
from tfstudy.evaluation.breakdown import MIN_EXAMPLES, accuracy_by_length
from tfstudy.report.plots import layout, series
from tfstudy.runs.schema import Lengths

NO_INTERVAL = "One seed gives no interval."
ALTERNATING = "Where lines coincide, their colours alternate."
DASH = 3.5  # length of a dash of one colour where curves coincide, in line widths


def length(conditions: Sequence[Condition], sheet: layout.Sheet) -> layout.Plot:
    """Return exact match at every length, a panel for each split scheme, with the lengths of training shaded."""
    recorded = {condition.task for condition in conditions for run in condition.runs if run.result.lengths}
    measured = {c.experiment: [one for run in c.runs if (one := lengths_of(run, recorded))] for c in conditions}
    shown = [condition for condition in conditions if measured[condition.experiment]]
    if not shown:
        raise UserError("no finished run measured accuracy by length: none of their examples have the tag 'length'")
    groups, styles = series.group_by_split(shown), series.condition_styles(shown)
    trained = {name: trained_range(members) for name, members in groups.items()}
    panels = layout.panels(sheet, "Exact match by length", len(groups))
    for axes, (name, members) in zip(panels.axes, groups.items(), strict=True):
        if ends := trained[name]:
            axes.axvspan(ends[0] - 0.5, ends[1] + 0.5, color="0.92", lw=0, zorder=0)
        for number, condition in enumerate(members):
            style, curve = styles[condition.label], by_length(measured[condition.experiment])
            series.draw_line(axes, curve, style, markevery=(number, len(members)) if len(members) < 4 else 1)
            if style.line == "-" and len(members) > 1:  # seen where lines coincide: each has its turn
                dashes = (DASH * number, (DASH, DASH * (len(members) - 1)))
                axes.plot(curve["mean"], color=style.colour, lw=1.4, ls=dashes, zorder=4)
        axes.set(ylim=layout.PERCENT)
        axes.set_title(panels.lines(name))
        axes.xaxis.set_major_locator(MaxNLocator(6, integer=True))
    panels.label("length", "exact match (%)")
    seeds, legend = [len(measured[c.experiment]) for c in shown], series.legend_handles(styles, "lines")
    if max(seeds) > 1:
        legend.append(Patch(color="0.6", alpha=0.5, lw=0, label="95 % interval over seeds"))
    if any(trained.values()):
        legend.append(Patch(color="0.92", lw=0, label="lengths of training"))
    caption = series.run_caption(shown)
    notes = [caption, *[NO_INTERVAL] * (min(seeds) == 1), *[ALTERNATING] * (len(styles) > 1)]
    ranges = {name: f" (trained on {ends[0]} to {ends[1]})" if ends else "" for name, ends in trained.items()}
    described = {f"{name}{ranges[name]}": members for name, members in groups.items()}
    thresholds = series.describe(described, lambda c: length_threshold(measured[c.experiment], "L50"))
    alt = f"Exact match by length; the length up to which at least 50 % are correct, {thresholds}. {caption}."
    return panels.plot("length", alt, legend, notes)


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


def by_length(measured: Sequence[Lengths]) -> pd.DataFrame:
    """Return the mean exact match over runs in percent with its interval, at the lengths with enough examples."""
    curve: dict[int, list[float]] = {}
    for one in measured:
        enough = min(MIN_EXAMPLES, max((part["n"] for part in one.exact_match.values()), default=0))
        for tokens, part in one.exact_match.items():
            if part["n"] >= enough:
                curve.setdefault(int(tokens), []).append(100 * part["exact_match"])
    found = [clipped(interval(values)) for values in curve.values()]
    return pd.DataFrame(
        found, index=pd.Index(curve.keys()), columns=["mean", "low", "high", "n", "method"]
    ).sort_index()
