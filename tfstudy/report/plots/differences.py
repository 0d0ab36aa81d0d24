"""`--kind differences`: which conditions differ, and by how much."""

from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from tasks.errors import UserError
from tfstudy.analysis.comparisons import Comparison, compare_conditions
from tfstudy.analysis.conditions import Condition, main_metrics, test_set_label
from tfstudy.report.markup import MINUS, p_equals, signed
from tfstudy.report.plots import layout
from tfstudy.report.plots.series_style import architecture_colours

MAX_COMPARISONS = 60  # in one plot
MAX_LETTERS = 56  # of two labels on one line
NOTES = (
    "intervals are not corrected for the number of tests",
    "colour: the condition with the higher mean; in brackets: further seeds needed",
)


def plot(conditions: Sequence[Condition]) -> layout.Plot:
    """Return the difference of every two conditions on the same examples, with its 95 % interval and corrected p."""
    metrics = main_metrics(conditions)
    comparisons = compare_conditions(conditions, metrics)
    tested = [comparison for comparison in comparisons if comparison.tested]
    if not tested:
        raise UserError("no two conditions on the same test set have 2 seeds each, so no difference can be tested")
    smallest = sorted(range(len(tested)), key=lambda number: tested[number].p)[:MAX_COMPARISONS]
    shown = [tested[number] for number in sorted(smallest)]
    groups: dict[str, list[Comparison]] = {}
    for comparison in shown:
        groups.setdefault(test_set_label(comparison.first, conditions), []).append(comparison)
    notes = [f"difference in {layout.metric_label(metrics).replace('(%)', '(points)')}", *NOTES]
    notes += [f"{n} pairs with a single seed are not tested"] if (n := len(comparisons) - len(tested)) else []
    notes += [f"the {len(shown)} smallest p of {len(tested)}"] if len(shown) < len(tested) else []
    title, xlabel = "Differences with 95 % intervals", "\n".join(notes)
    figure, [(axes, rows)] = layout.row_panels(title, groups, _pair_label, xlabel, 5.0, _legend(shown), max_columns=1)
    colours = architecture_colours(condition.arch for condition in conditions)
    for comparison, level in rows:
        _draw_difference(axes, comparison, level, colours)
    furthest = max(
        abs(end)
        for comparison in shown
        for end in (comparison.difference.low, comparison.difference.high, comparison.difference.mean)
    )
    limit = min(104.0, max(2.0, 1.06 * furthest))
    axes.axvline(0, color="0.3", lw=1)
    axes.set_xlim(-limit, limit)
    return layout.Plot("differences", figure, _alt(tested, conditions))


def _alt(tested: Sequence[Comparison], conditions: Sequence[Condition]) -> str:
    significant = [
        f"{test_set_label(c.first, conditions)}: {c.first.label} {signed(c.difference.mean)} points to "
        f"{c.second.label} ({p_equals(c.p)})"
        for c in tested
        if c.significant
    ]
    summary = f"{len(significant)} of {len(tested)} are significant{', ' * bool(significant)}{layout.join(significant)}"
    return f"Differences between conditions with 95 % intervals: {summary}."


def _legend(shown: Sequence[Comparison]) -> list[Line2D]:
    """Return handles for the marks that are drawn."""
    marks = {True: ("significant (Holm, .05)", "0.3"), False: ("undecided", "white")}
    drawn = [marks[decided] for decided in marks if any(comparison.significant is decided for comparison in shown)]
    return [Line2D([], [], marker="o", lw=1.5, color="0.3", mfc=face, label=label) for label, face in drawn]


def _pair_label(comparison: Comparison) -> str:
    """Return both conditions, on two lines if they are long."""
    first, second = layout.shorten(comparison.first.label), layout.shorten(comparison.second.label)
    return f"{first} {MINUS}{' ' if len(first + second) <= MAX_LETTERS else chr(10)}{second}"


def _draw_difference(axes: Axes, comparison: Comparison, level: float, colours: Mapping[str, str]) -> None:
    difference = comparison.difference
    colour = colours[(comparison.first if difference.mean > 0 else comparison.second).arch]
    face = colour if comparison.significant else "white"
    ends = [max(difference.low, -200), min(difference.high, 200)]
    axes.plot(ends, [level, level], color=colour, lw=1.5, solid_capstyle="butt")
    axes.plot(difference.mean, level, marker="o", ms=5.5, mfc=face, mec=colour, mew=1.3, zorder=3)
    seeds = comparison.more_seeds
    text = p_equals(comparison.p) + (f"  (+{seeds} seed{'s' * (seeds > 1)})" if seeds else "")
    axes.text(1.02, level, text, transform=axes.get_yaxis_transform(), va="center", fontsize=8)
